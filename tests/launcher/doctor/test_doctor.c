/* SPDX-License-Identifier: Apache-2.0 */
/* What ctctl doctor makes of what hosts say, of which not all run the program that it started. */
#include "launcher/doctor/doctor.c"
#include "tests/harness.h"

#include <unistd.h>

static struct host_slots names[] = { { "h0", 0 }, { "h1", 0 } };
static struct host_pair pairs[4];
static struct examined hosts[2];
static int lost[2];
static struct doctor d;

/* Two hosts that examine themselves. */
static int begin(void **state)
{
    (void)state;
    memset(pairs, 0, sizeof pairs);
    memset(hosts, 0, sizeof hosts);
    memset(lost, 0, sizeof lost);
    hosts[0].doctor = hosts[1].doctor = &d;
    d = (struct doctor){ .hosts = hosts,
                         .busy = 2,
                         .report = { .hosts = 2,
                                     .list_of_hosts = names,
                                     .lost = lost,
                                     .matrix = { .hosts = 2, .pairs = pairs } } };
    return 0;
}

static int end(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++)
        free(pairs[i].error);
    free(hosts[0].output.data);
    free(hosts[1].output.data);
    free(d.report.list);
    return 0;
}

static void host_sends(int host, enum frame_type type, const char *data)
{
    struct branch branch = { .count = 2 };

    doctor_from_branch(&d, &branch,
                       &(struct relay_frame){ type, host, 3, data, data ? strlen(data) : 0 });
}

static void host_says(int host, const char *text)
{
    host_sends(host, FRAME_OUTPUT, text);
}

static void assert_one_fail(int host, const char *text)
{
    int fails = 0;

    for (int i = 0; i < d.report.count; i++)
        if (d.report.list[i].level == LEVEL_FAIL) {
            fails++;
            assert_int_equal(d.report.list[i].host, host);
            assert_string_equal(d.report.list[i].text, text);
        }
    assert_int_equal(fails, 1);
}

/* What h1 sends is shown so. */
static void assert_shown(const char *sent, const char *shown)
{
    FILE *file = tmpfile();
    const int old = dup(STDERR_FILENO);
    char text[200] = "";

    assert_non_null(file);
    fflush(stderr);
    dup2(fileno(file), STDERR_FILENO);
    host_says(1, sent);
    host_sends(1, FRAME_ENDED, NULL);
    fflush(stderr);
    dup2(old, STDERR_FILENO);
    close(old);
    assert_true(pread(fileno(file), text, sizeof text - 1, 0) >= 0);
    fclose(file);
    assert_string_equal(text, shown);
    assert_one_fail(1, "its ctctl ended with 3");
}

static void a_line_that_means_nothing_is_shown_with_its_tabs(void **state)
{
    (void)state;
    assert_shown("sh:\tno\tctctl\n", "ctctl: h1: sh:\tno\tctctl\n");
}

static void the_last_line_is_shown_without_an_end(void **state)
{
    (void)state;
    assert_shown("rows are out\nof memory", "ctctl: h1: rows are out\nctctl: h1: of memory\n");
}

static void an_address_that_others_can_not_read_is_not_sent_to_them(void **state)
{
    (void)state;
    host_says(1, "listen\tnonsense\nlisten\t10.0.0.2 0\nlisten\t10.0.0.2 99999999999\nlisten\n");
    assert_string_equal(hosts[1].listens, "");
    host_says(1, "listen\t10.0.0.2 41000 7 7\n");
    assert_string_equal(hosts[1].listens, "10.0.0.2 41000");
    d.step = 1; /* the list has gone out */
    host_says(0, "listen\t10.0.0.1 41000\n");
    assert_string_equal(hosts[0].listens, "");
}

static void a_figure_that_is_no_number_does_not_count(void **state)
{
    (void)state;
    host_says(1, "pair\t0\tnan\t1e9\t0\t\t\npair\t0\t20\tinf\t0\t\t\npair\t0\t-1\t1e9\t0\t\t\n"
                 "pair\t0\t20\t1e9\t-9223372036854775808\t\t\n");
    assert_true(pairs[2].figure[TRIP_US] == 0);
    assert_true(pairs[2].figure[BYTES_PER_S] == 0);
    host_says(1, "pair\t0\t20\t1e9\t7\t\t\n");
    assert_true(pairs[2].figure[TRIP_US] == 20);
    assert_true(pairs[2].skew_ns == 7);
}

static void a_host_is_not_its_own_peer(void **state)
{
    (void)state;
    host_says(1, "pair\t1\t20\t1e9\t0\tremedy\tbroken\n");
    assert_true(pairs[3].figure[BYTES_PER_S] == 0);
    assert_int_equal(d.report.count, 0);
}

static void measure_all(void)
{
    host_says(0, "listen\t10.0.0.1 41000\npair\t1\t20\t1e9\t0\t\t\n");
    host_says(1, "listen\t10.0.0.2 41000\npair\t0\t20\t1e9\t0\t\t\n");
}

static void hosts_that_say_all_have_no_fail(void **state)
{
    (void)state;
    measure_all();
    diagnose(&d);
    assert_int_equal(d.report.worst, LEVEL_OK);
}

static void a_host_that_does_not_say_where_it_listens_fails(void **state)
{
    (void)state;
    host_says(0, "listen\t10.0.0.1 41000\n");
    host_says(1, "pair\t0\t20\t1e9\t0\t\t\n");
    diagnose(&d);
    assert_one_fail(1, "it did not say where it listens");
}

static void a_host_that_says_why_it_can_not_listen_has_one_fail(void **state)
{
    (void)state;
    host_says(0, "listen\t10.0.0.1 41000\n");
    host_says(1, "row\t2\taddress\tremedy\tno address\npair\t0\t20\t1e9\t0\t\t\n");
    diagnose(&d);
    assert_one_fail(1, "no address");
}

static void a_host_that_does_not_measure_fails(void **state)
{
    (void)state;
    measure_all();
    host_says(1, "pair\t0\t20\t0\t0\t\t\n"); /* pings, but no data */
    diagnose(&d);
    assert_one_fail(1, "it did not measure the way to h0");
}

static void a_host_with_too_many_findings_is_lost(void **state)
{
    (void)state;
    for (int i = 0; i < 300; i++)
        host_says(1, "row\t2\ttmp\tremedy\ttext\ndone\n");
    assert_int_equal(d.report.count, MOST_ROWS + 2 + 1);
    assert_int_equal(hosts[1].state, EXAMINED_GONE);
    assert_int_equal(lost[1], 1);
    assert_int_equal(d.busy, 1);
}

static void a_line_that_does_not_end_loses_its_host(void **state)
{
    static char part[1025];

    (void)state;
    memset(part, 'x', sizeof part - 1);
    for (int i = 0; i < 100; i++)
        host_says(1, part);
    assert_one_fail(1, "it sent a line that has no end");
    assert_true(hosts[1].output.used <= LONGEST_LINE + sizeof part);
    assert_int_equal(hosts[1].state, EXAMINED_GONE);
}

/* A third host is busy, so no step begins. */
static void a_host_that_stops_while_it_measures_is_not_said_to_be_out_of_reach(void **state)
{
    (void)state;
    d.busy = 3;
    hosts[0].state = EXAMINED_DONE;
    d.step = 2;
    time_is_over(-1, 0, &d);
    assert_one_fail(1, "it has not answered within 40 s while the hosts measured");
    assert_string_equal(d.report.list[0].remedy, "see what it does: top, dmesg");
}

static void a_host_that_does_not_begin_has_the_remedy_for_ssh(void **state)
{
    (void)state;
    d.busy = 3;
    hosts[0].state = EXAMINED_DONE;
    time_is_over(-1, 0, &d);
    assert_one_fail(1, "it has not answered within 40 s");
    assert_non_null(strstr(d.report.list[0].remedy, "ssh HOST ctctl --version"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_host_that_stops_while_it_measures_is_not_said_to_be_out_of_reach, begin, end),
        cmocka_unit_test_setup_teardown(a_host_that_does_not_begin_has_the_remedy_for_ssh, begin,
                                        end),
        cmocka_unit_test_setup_teardown(a_line_that_means_nothing_is_shown_with_its_tabs, begin,
                                        end),
        cmocka_unit_test_setup_teardown(the_last_line_is_shown_without_an_end, begin, end),
        cmocka_unit_test_setup_teardown(an_address_that_others_can_not_read_is_not_sent_to_them,
                                        begin, end),
        cmocka_unit_test_setup_teardown(a_figure_that_is_no_number_does_not_count, begin, end),
        cmocka_unit_test_setup_teardown(a_host_is_not_its_own_peer, begin, end),
        cmocka_unit_test_setup_teardown(hosts_that_say_all_have_no_fail, begin, end),
        cmocka_unit_test_setup_teardown(a_host_that_does_not_say_where_it_listens_fails, begin,
                                        end),
        cmocka_unit_test_setup_teardown(a_host_that_says_why_it_can_not_listen_has_one_fail, begin,
                                        end),
        cmocka_unit_test_setup_teardown(a_host_that_does_not_measure_fails, begin, end),
        cmocka_unit_test_setup_teardown(a_host_with_too_many_findings_is_lost, begin, end),
        cmocka_unit_test_setup_teardown(a_line_that_does_not_end_loses_its_host, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
