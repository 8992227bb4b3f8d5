/* SPDX-License-Identifier: Apache-2.0 */
/* test_processors.c - how many processors a process may use, with control groups as files under a
 * temporary folder. */
#include "tests/harness.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "runtime/shm/waiter.h"
#include "runtime/util/cgroup.h"

static char root[64];

/* The file, and the folders above it. */
static void write_file(const char *path, const char *content)
{
    char full[256];
    FILE *file;

    snprintf(full, sizeof full, "%s/%s", root, path);
    for (char *slash = full + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        assert_true(mkdir(full, 0700) == 0 || errno == EEXIST);
        *slash = '/';
    }
    file = fopen(full, "we");
    assert_non_null(file);
    fprintf(file, "%s\n", content);
    assert_int_equal(fclose(file), 0);
}

static int make_root(void **state)
{
    (void)state;
    strcpy(root, "/tmp/ct-groups-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
    char command[100];

    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", root);
    return system(command);
}

/* Of those that the affinity allows. */
static int at_most(int processors)
{
    cpu_set_t set;

    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    return processors < CPU_COUNT(&set) ? processors : CPU_COUNT(&set);
}

static void without_a_limit_the_affinity_counts(void **state)
{
    (void)state;
    assert_int_equal(processors_usable(root), at_most(CPU_SETSIZE));
    write_file("proc/self/cgroup", "0::/");
    write_file("sys/fs/cgroup/cpu.max", "max 100000");
    assert_int_equal(processors_usable(root), at_most(CPU_SETSIZE));
    write_file("sys/fs/cgroup/cpu.max", "99999900000 100000");
    assert_int_equal(processors_usable(root), at_most(CPU_SETSIZE));
}

static void the_limit_of_a_group_inside_another_counts(void **state)
{
    (void)state;
    write_file("proc/self/cgroup", "0::/slice/job/step");
    write_file("sys/fs/cgroup/slice/job/step/cpu.max", "max 100000");
    write_file("sys/fs/cgroup/slice/job/cpu.max", "100000 100000");
    write_file("sys/fs/cgroup/slice/cpu.max", "800000 100000");
    assert_int_equal(processors_usable(root), 1);
    assert_int_equal(cgroup_milli_cpus(root), 1000);
}

static void version_1_counts_too(void **state)
{
    (void)state;
    write_file("proc/self/cgroup", "4:cpu,cpuacct:/job");
    write_file("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "100000");
    write_file("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000");
    assert_int_equal(processors_usable(root), 1);
}

/* Two ranks that spin would use up the time of 1.9, and be stopped for the rest of each period. */
static void a_part_of_a_processor_is_none_but_for_the_first(void **state)
{
    (void)state;
    write_file("proc/self/cgroup", "0::/job");
    write_file("sys/fs/cgroup/job/cpu.max", "190000 100000");
    assert_int_equal(processors_usable(root), 1);
    assert_int_equal(cgroup_cpus(root), 2); /* workers */
    write_file("sys/fs/cgroup/job/cpu.max", "1000 1000000");
    assert_int_equal(processors_usable(root), 1);
    assert_int_equal(cgroup_milli_cpus(root), 1);
    write_file("sys/fs/cgroup/job/cpu.max", "250000 100000");
    assert_int_equal(processors_usable(root), at_most(2));
}

static void of_processes_and_memory_the_narrowest_group_counts(void **state)
{
    (void)state;
    write_file("proc/self/cgroup", "0::/slice/job");
    assert_int_equal(cgroup_pids_left(root), 0);
    write_file("sys/fs/cgroup/slice/job/pids.max", "max");
    write_file("sys/fs/cgroup/slice/job/pids.current", "7");
    assert_int_equal(cgroup_pids_left(root), 0);
    write_file("sys/fs/cgroup/slice/pids.max", "100");
    write_file("sys/fs/cgroup/slice/pids.current", "60");
    assert_int_equal(cgroup_pids_left(root), 40);
    write_file("sys/fs/cgroup/slice/job/pids.max", "7");
    assert_int_equal(cgroup_pids_left(root), 1); /* none, which 0 does not say */
    write_file("sys/fs/cgroup/slice/memory.max", "1000000");
    write_file("sys/fs/cgroup/slice/memory.current", "400000");
    assert_int_equal(cgroup_memory_left(root), 600000);
}

#define IN_ROOT(test) cmocka_unit_test_setup_teardown(test, make_root, remove_root)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_ROOT(without_a_limit_the_affinity_counts),
        IN_ROOT(the_limit_of_a_group_inside_another_counts),
        IN_ROOT(version_1_counts_too),
        IN_ROOT(of_processes_and_memory_the_narrowest_group_counts),
        IN_ROOT(a_part_of_a_processor_is_none_but_for_the_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
