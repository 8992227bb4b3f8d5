/* SPDX-License-Identifier: Apache-2.0 */
/* What ctctl doctor makes of the findings of several hosts. */
#include "launcher/doctor/matrix.c"
#include "launcher/doctor/report.c"
#include "tests/harness.h"

#include <unistd.h>

#define KERNEL "6.1.0"

static void say_kernels(struct report *report, const char *of_the_second_host)
{
    report_add(report, 1, LEVEL_OK, "kernel", of_the_second_host, "make the hosts alike");
    report_add(report, 0, LEVEL_OK, "kernel", KERNEL, "make the hosts alike");
    report_add(report, 0, LEVEL_OK, "memory", "900 MiB", "");
    report_add(report, 1, LEVEL_OK, "memory", "800 MiB", "");
    report_finish(report);
}

static void hosts_that_differ_where_they_should_be_alike_get_a_warning_each(void **state)
{
    struct report report = { .hosts = 2 };

    (void)state;
    say_kernels(&report, "6.5.0");
    assert_int_equal(report.count, 4);
    for (int i = 0; i < 4; i++) {
        const int is_kernel = !strcmp(report.list[i].check, "kernel");

        assert_int_equal(report.list[i].level, is_kernel ? LEVEL_WARN : LEVEL_OK);
        assert_string_equal(report.list[i].remedy, is_kernel ? "make the hosts alike" : "");
    }
    assert_int_equal(report.worst, LEVEL_WARN);
    free(report.list);
}

static void hosts_that_are_alike_need_no_remedy(void **state)
{
    struct report report = { .hosts = 2 };

    (void)state;
    say_kernels(&report, KERNEL);
    for (int i = 0; i < 4; i++)
        assert_string_equal(report.list[i].remedy, "");
    assert_int_equal(report.worst, LEVEL_OK);
    free(report.list);
}

/* So that they are printed as one line, by the order of the hosts. */
static void hosts_with_the_same_finding_stand_together(void **state)
{
    struct report report = { .hosts = 3 };

    (void)state;
    report_add(&report, 2, LEVEL_FAIL, "tmp", "/tmp can't be written", "make it writable");
    report_add(&report, 1, LEVEL_FAIL, "nofile", "64 files", "ulimit -n");
    report_add(&report, 0, LEVEL_FAIL, "tmp", "/tmp can't be written", "make it writable");
    report_finish(&report);
    assert_int_equal(report.list[0].host, 1);
    assert_int_equal(report.list[1].host, 0);
    assert_int_equal(report.list[2].host, 2);
    assert_string_equal(report.list[2].remedy, "make it writable");
    free(report.list);
}

/* What report_print() prints of the FAILs. */
static void assert_fails_printed(const struct report *report, const char *lines)
{
    FILE *file = tmpfile();
    const int old = dup(STDOUT_FILENO);
    char text[400] = "";

    assert_non_null(file);
    fflush(stdout);
    dup2(fileno(file), STDOUT_FILENO);
    print_level(report, LEVEL_FAIL);
    fflush(stdout);
    dup2(old, STDOUT_FILENO);
    close(old);
    assert_true(pread(fileno(file), text, sizeof text - 1, 0) >= 0);
    fclose(file);
    assert_string_equal(text, lines);
}

/* 400 processes are enough for a host with few cores. */
static void the_same_text_can_be_wrong_on_one_host_only(void **state)
{
    static struct host_slots names[] = { { "h0", 0 }, { "h1", 0 }, { "h2", 0 } };
    static const enum finding_level levels[][3] = { { LEVEL_OK, LEVEL_FAIL, LEVEL_OK },
                                                    { LEVEL_FAIL, LEVEL_OK, LEVEL_FAIL } };
    static const char *const lines[] = { "FAIL h1, pids: 400\n       remedy: raise it\n",
                                         "FAIL h0, h2, pids: 400\n       remedy: raise it\n" };

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct report report = { .hosts = 3, .list_of_hosts = names };

        for (int host = 0; host < 3; host++)
            report_add(&report, host, levels[i][host], "pids", "400",
                       levels[i][host] == LEVEL_FAIL ? "raise it" : "");
        report_finish(&report);
        assert_fails_printed(&report, lines[i]);
        free(report.list);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_that_differ_where_they_should_be_alike_get_a_warning_each),
        cmocka_unit_test(hosts_that_are_alike_need_no_remedy),
        cmocka_unit_test(hosts_with_the_same_finding_stand_together),
        cmocka_unit_test(the_same_text_can_be_wrong_on_one_host_only),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
