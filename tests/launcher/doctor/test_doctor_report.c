/* SPDX-License-Identifier: Apache-2.0 */
/* What ctctl doctor makes of the findings of several hosts. */
#include "launcher/doctor/matrix.c"
#include "launcher/doctor/report.c"
#include "tests/harness.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_that_differ_where_they_should_be_alike_get_a_warning_each),
        cmocka_unit_test(hosts_that_are_alike_need_no_remedy),
        cmocka_unit_test(hosts_with_the_same_finding_stand_together),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
