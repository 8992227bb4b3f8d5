/* SPDX-License-Identifier: Apache-2.0 */
/* test_host_list.c - hosts as --hosts, host files and Slurm name them, and Slurm's tasks of a node.
 */
#include "tests/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/values/host_list.h"
#include "config/values/slurm.h"

/* "a b:4": a host without slots has no colon; an address with colons is in brackets. */
static void shows(const struct host_list *list, const char *what, const char *expected)
{
    char got[2000] = "";

    for (int i = 0; i < list->count; i++) {
        const struct host_slots *host = &list->hosts[i];
        const int is_address = strchr(host->name, ':') != NULL;

        snprintf(got + strlen(got), sizeof got - strlen(got), "%s%s%s%s", i ? " " : "",
                 is_address ? "[" : "", host->name, is_address ? "]" : "");
        if (host->slots)
            snprintf(got + strlen(got), sizeof got - strlen(got), ":%d", host->slots);
    }
    if (strcmp(got, expected) != 0)
        fail_msg("%s: '%s' instead of '%s'", what, got, expected);
}

static void means(const char *text, const char *expected)
{
    struct host_list list;
    struct why why;

    if (host_list_parse(&list, text, &why) < 0)
        fail_msg("%s: %s", text, why.text);
    shows(&list, text, expected);
    host_list_free(&list);
}

static void is_refused(const char *text, const char *sentence)
{
    struct host_list list;
    struct why why;

    if (host_list_parse(&list, text, &why) == 0)
        fail_msg("%s is accepted", text);
    assert_int_equal(list.count, 0);
    assert_null(list.hosts);
    if (!strstr(why.text, sentence))
        fail_msg("%s: '%s' does not say '%s'", text, why.text, sentence);
}

static char path[64];

static void write_hosts(const char *text)
{
    FILE *file;

    snprintf(path, sizeof path, "/tmp/ctrun-hosts-%d", (int)getpid());
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void file_means(const char *text, const char *expected)
{
    struct host_list list;
    struct why why;

    write_hosts(text);
    if (host_list_read(&list, path, &why) < 0)
        fail_msg("%s: %s", text, why.text);
    shows(&list, text, expected);
    host_list_free(&list);
    unlink(path);
}

static void file_is_refused(const char *text, const char *sentence)
{
    struct host_list list;
    struct why why;

    write_hosts(text);
    if (host_list_read(&list, path, &why) == 0)
        fail_msg("%s is accepted", text);
    assert_null(list.hosts);
    if (!strstr(why.text, sentence) || !strstr(why.text, path))
        fail_msg("%s: '%s' does not say '%s'", text, why.text, sentence);
    unlink(path);
}

/* ---- A line of them ---------------------------------------------------------------- */

static void hosts_may_have_slots_users_and_addresses(void **state)
{
    (void)state;
    means("a,b:4", "a b:4");
    means("a:4 b\nc.example.org:1\n", "a:4 b c.example.org:1");
    means(" , a,,b , ", "a b");
    means("me@a:2", "me@a:2");
    means("größe:2,b", "größe:2 b");
    means("10.0.0.1:8,10.0.0.2", "10.0.0.1:8 10.0.0.2");
    means("[fd00::1]:2,fd00::2,[fe80::1%eth0]", "[fd00::1]:2 [fd00::2] [fe80::1%eth0]");
    means("me@fd00::1", "[me@fd00::1]");
}

static void ranges_are_expanded_as_slurm_writes_them(void **state)
{
    (void)state;
    means("node[01-03,7]:8", "node01:8 node02:8 node03:8 node7:8");
    means("n[008-011]", "n008 n009 n010 n011");
    means("r[1-2]n[1-2]x,z", "r1n1x r1n2x r2n1x r2n2x z");
    means("a[9-11]", "a9 a10 a11");
    means("a[3-3],b[5]", "a3 b5");
}

static void a_host_that_comes_again_has_more_slots(void **state)
{
    (void)state;
    means("a,a,b", "a:2 b");
    means("a:4,b,a:2", "a:6 b");
    means("n[1-2],n1:3", "n1:4 n2");
}

static void slips_of_the_fingers_are_named(void **state)
{
    (void)state;
    is_refused("", "no host is named");
    is_refused(" , ", "no host is named");
    is_refused("a:0", "'a:0': '0' is not a number of workers");
    is_refused("a:-1", "'-1' is not a number of workers");
    is_refused("a:", "'a:': '' is not a number of workers");
    is_refused("a:many,b", "'a:many': 'many' is not a number of workers");
    is_refused("a:99999999999", "'99999999999' is not a number of workers");
    is_refused("a:1000000,b,a", "a has more than 1000000 workers");
    is_refused("n[1-100000],m", "there are more than 100000 hosts");
    is_refused("b,a:4:5", "'a:4:5' names no host");
    is_refused("[a:b]", "'[a:b]' names no host");
    is_refused("a;b", "'a;b' names no host; write NAME, NAME:SLOTS or NAME[1-4]:SLOTS");
    is_refused("-oProxyCommand=x", "names no host"); /* ssh would take it for an option */
    is_refused("n[1-", "'n[1-': a bracket is not closed");
    is_refused("[::1", "a bracket is not closed");
    is_refused("n]", "'n]' names no host");
    is_refused("n[]", "'n[]': the brackets are empty");
    is_refused("n[1,]", "'n[1,]': '' is not a range of numbers");
    is_refused("n[,1]", "'' is not a range of numbers");
    is_refused("n[4-1]", "'n[4-1]': '4-1' is not a range of numbers");
    is_refused("n[a-c]", "'a-c' is not a range of numbers");
    is_refused("n[1-2-3]", "'1-2-3' is not a range of numbers");
    is_refused("n[1-100001]", "'1-100001' is not a range of numbers");
    is_refused("n[99999999999999999999]", "is not a range of numbers");
}

static void what_is_too_long_is_no_host(void **state)
{
    char name[3 * HOST_NAME];

    (void)state;
    memset(name, 'a', sizeof name);
    name[HOST_NAME - 1] = 0;
    means(name, name);
    name[HOST_NAME - 1] = 'a';
    name[HOST_NAME] = 0;
    is_refused(name, "is longer than a host name can be");
    name[HOST_NAME] = 'a';
    name[sizeof name - 1] = 0;
    is_refused(name, "is longer than a host name can be");
}

static void the_first_of_thousands_is_found_without_the_others(void **state)
{
    static const char *const lists[][2] = {
        { "rack[1-4]n[007-016,20]:3,b", "rack1n007" },
        { "node[00001-99999]", "node00001" },
        { "\n10.0.0.4\n10.0.0.5\n", "10.0.0.4" }, /* SKYPILOT_NODE_IPS */
        { "[10::1]:2,a", "10::1" },
        { "me@a:4", "a" },
    };
    char name[HOST_NAME];

    (void)state;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        assert_int_equal(host_list_first(lists[i][0], name, sizeof name), 0);
        assert_string_equal(name, lists[i][1]);
    }
    assert_int_equal(host_list_first("", name, sizeof name), -1);
    assert_int_equal(host_list_first("a[", name, sizeof name), -1);
    assert_int_equal(host_list_first("a[3-", name, sizeof name), -1);
    assert_int_equal(host_list_first("host", name, 4), -1); /* no room */
}

/* ---- Files ------------------------------------------------------------------------ */

static void host_files_of_five_kinds_are_read(void **state)
{
    (void)state;
    file_means("# a comment\n\n a \nb:4 # behind it\r\n", "a b:4");
    file_means("a slots=4 max_slots=8\nb slots = 2\nc max_slots=4\n", "a:4 b:2 c"); /* Open MPI */
    file_means("a:2\nb:2 binding=user:0\n", "a:2 b:2");                             /* hydra */
    file_means("h1\nh1\nh2\nh2\n", "h1:2 h2:2");                                /* PBS_NODEFILE */
    file_means("h1 4 all.q@h1 UNDEFINED\nh2 2 all.q@h2 <NULL>\n", "h1:4 h2:2"); /* PE_HOSTFILE */
    file_means("n[01-02] slots=2", "n01:2 n02:2");
    file_means("\xef\xbb\xbf"
               "a:4\r\nb\r\n",
               "a:4 b"); /* of an editor of Windows */
}

static void a_wrong_line_is_named_by_its_number(void **state)
{
    (void)state;
    file_is_refused("a\nb slots=two\n", ":2: 'slots=two': 'two' is not a number of workers");
    file_is_refused("a\n\nb:0\n", ":3: 'b:0': '0' is not a number of workers");
    file_is_refused("a slots=\n", ":1: 'slots=': '' is not a number of workers");
    file_is_refused("a 0\n", ":1: ");
    file_is_refused("a 4x\n", ":1: '4x' is not a number of workers");
    file_is_refused("n[2-1]\n", ":1: 'n[2-1]': '2-1' is not a range of numbers");
    file_is_refused("# nothing\n", "names no host");
    file_is_refused("", "names no host");
}

static void a_file_that_is_not_there_is_named(void **state)
{
    struct host_list list;
    struct why why;

    (void)state;
    assert_int_equal(host_list_read(&list, "/nowhere/hosts", &why), -1);
    assert_string_equal(why.text, "/nowhere/hosts: No such file or directory");
    assert_int_equal(host_list_read(&list, "/", &why), -1);
    assert_string_equal(why.text, "/: Is a directory");
}

/* ---- Slurm ------------------------------------------------------------------------- */

static void the_tasks_of_a_node_are_counted_through_repetitions(void **state)
{
    static const int tasks[] = { 2, 2, 2, 1, 4, 4 };

    (void)state;
    for (int node = 0; node < 6; node++)
        assert_int_equal(slurm_tasks_of_node("2(x3),1,4(x2)", node), tasks[node]);
    assert_int_equal(slurm_tasks_of_node("2(x3),1,4(x2)", 6), 0);
    assert_int_equal(slurm_tasks_of_node("2(x3),1", -1), 0);
    assert_int_equal(slurm_tasks_of_node("8", 0), 8);
    assert_int_equal(slurm_tasks_of_node("", 0), 0);
    assert_int_equal(slurm_tasks_of_node(NULL, 0), 0);
    assert_int_equal(slurm_tasks_of_node("x", 0), 0);
    assert_int_equal(slurm_tasks_of_node("2(x0),1", 1), 0);
    assert_int_equal(slurm_tasks_of_node("2(x", 1), 0);
    assert_int_equal(slurm_tasks_of_node("0,2", 1), 0);
}

static void the_port_of_a_step_is_its_own(void **state)
{
    int port;

    (void)state;
    unsetenv("SLURM_STEP_ID");
    setenv("SLURM_JOB_ID", "71", 1);
    assert_int_equal(slurm_step_port(), 0);
    setenv("SLURM_STEP_ID", "0", 1);
    port = slurm_step_port();
    assert_in_range(port, 20480, 28671);
    assert_int_equal(slurm_step_port(), port);
    setenv("SLURM_STEP_ID", "1", 1); /* may run beside step 0 */
    assert_int_not_equal(slurm_step_port(), port);
    setenv("SLURM_JOB_ID", "72", 1);
    setenv("SLURM_STEP_ID", "0", 1);
    assert_int_not_equal(slurm_step_port(), port);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_may_have_slots_users_and_addresses),
        cmocka_unit_test(ranges_are_expanded_as_slurm_writes_them),
        cmocka_unit_test(a_host_that_comes_again_has_more_slots),
        cmocka_unit_test(slips_of_the_fingers_are_named),
        cmocka_unit_test(what_is_too_long_is_no_host),
        cmocka_unit_test(the_first_of_thousands_is_found_without_the_others),
        cmocka_unit_test(host_files_of_five_kinds_are_read),
        cmocka_unit_test(a_wrong_line_is_named_by_its_number),
        cmocka_unit_test(a_file_that_is_not_there_is_named),
        cmocka_unit_test(the_tasks_of_a_node_are_counted_through_repetitions),
        cmocka_unit_test(the_port_of_a_step_is_its_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
