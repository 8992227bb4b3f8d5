/* SPDX-License-Identifier: Apache-2.0 */
/* test_processors.c - how many processors the ranks of a host may use, with control groups as files
 * under a temporary folder, and with a kernel that has 4,096 processors. */
#include "tests/harness.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "runtime/group/group.h"
#include "runtime/shm/processors.h"
#include "runtime/util/cgroup.h"

/* ---- The kernel ----------------------------------------------------------------- */

enum { KERNEL_BITS = 4096 };
static unsigned char allowed[KERNEL_BITS / 8];

/* In place of the C library's.  As Linux does it refuses a mask that has no room for all bits. */
int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *mask)
{
    (void)pid;
    if (size < sizeof allowed) {
        errno = EINVAL;
        return -1;
    }
    memset(mask, 0, size);
    memcpy(mask, allowed, sizeof allowed);
    return 0;
}

static void allow(int first, int count)
{
    memset(allowed, 0, sizeof allowed);
    for (int cpu = first; cpu < first + count; cpu++)
        allowed[cpu / 8] = (unsigned char)(allowed[cpu / 8] | 1 << cpu % 8);
}

/* ---- Control groups ------------------------------------------------------------- */

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
    allow(0, 3);
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

static int usable(void)
{
    struct processors own;

    processors_own(&own, root);
    return processors_count(&own);
}

/* ---- One rank ------------------------------------------------------------------- */

static void without_a_limit_the_affinity_counts(void **state)
{
    (void)state;
    assert_int_equal(usable(), 3);
    write_file("proc/self/cgroup", "0::/");
    write_file("sys/fs/cgroup/cpu.max", "max 100000");
    assert_int_equal(usable(), 3);
    write_file("sys/fs/cgroup/cpu.max", "99999900000 100000");
    assert_int_equal(usable(), 3);
}

static void the_limit_of_a_group_inside_another_counts(void **state)
{
    (void)state;
    write_file("proc/self/cgroup", "0::/slice/job/step");
    write_file("sys/fs/cgroup/slice/job/step/cpu.max", "max 100000");
    write_file("sys/fs/cgroup/slice/job/cpu.max", "100000 100000");
    write_file("sys/fs/cgroup/slice/cpu.max", "800000 100000");
    assert_int_equal(usable(), 1);
    assert_int_equal(cgroup_milli_cpus(root), 1000);
}

static void version_1_counts_too(void **state)
{
    (void)state;
    write_file("proc/self/cgroup", "4:cpu,cpuacct:/job");
    write_file("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "100000");
    write_file("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000");
    assert_int_equal(usable(), 1);
}

/* Two ranks that spin would use up the time of 1.9, and be stopped for the rest of each period. */
static void a_part_of_a_processor_is_none_but_for_the_first(void **state)
{
    (void)state;
    write_file("proc/self/cgroup", "0::/job");
    write_file("sys/fs/cgroup/job/cpu.max", "190000 100000");
    assert_int_equal(usable(), 1);
    assert_int_equal(cgroup_cpus(root), 2); /* workers */
    write_file("sys/fs/cgroup/job/cpu.max", "1000 1000000");
    assert_int_equal(usable(), 1);
    assert_int_equal(cgroup_milli_cpus(root), 1);
    write_file("sys/fs/cgroup/job/cpu.max", "250000 100000");
    assert_int_equal(usable(), 2);
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

static void processors_above_1024_count(void **state)
{
    (void)state;
    allow(KERNEL_BITS - 5, 5);
    assert_int_equal(usable(), 5);
}

/* ---- The ranks of a host -------------------------------------------------------- */

enum { RANKS = 3 };

/* apart: each rank is bound to a processor of its own, else all are bound to the same one. */
static void join_from_one_processor(int apart)
{
    const long long limit = cgroup_milli_cpus(""); /* of this machine */
    const int spins = apart && (limit == 0 || limit >= RANKS * 1000);
    ct_init_options options = CT_INIT_OPTIONS_INIT;
    const struct mesh *mesh;

    allow(KERNEL_BITS - 10 + (apart ? program_rank() : 0), 1);
    options.timeout_ms = GROUP_TIMEOUT_MS;
    if (!EXPECT_OK(ct_init_process_group(&options)))
        return;
    mesh = default_group()->mesh;
    EXPECT(mesh->node.has_processors == spins);
    EXPECT((mesh->waiter.spins > 0) == spins);
    EXPECT_OK(ct_destroy_process_group(CT_WORLD));
}

static void join_bound_apart(ct_group *unused, void *arg)
{
    (void)unused;
    (void)arg;
    join_from_one_processor(1);
}

static void join_bound_together(ct_group *unused, void *arg)
{
    (void)unused;
    (void)arg;
    join_from_one_processor(0);
}

static void ranks_bound_to_a_processor_each_spin(void **state)
{
    (void)state;
    run_programs(RANKS, join_bound_apart, NULL);
    use_link("tcp");
    run_programs(RANKS, join_bound_apart, NULL);
    use_link(NULL);
}

static void ranks_bound_to_one_processor_do_not_spin(void **state)
{
    (void)state;
    run_programs(RANKS, join_bound_together, NULL);
}

/* Masks add up, time does not. */
static void the_least_limit_of_the_ranks_counts(void **state)
{
    struct processors all, more;

    (void)state;
    allow(0, 2);
    processors_own(&all, root);
    allow(1, 2);
    processors_own(&more, root);
    processors_add(&all, &more);
    assert_int_equal(processors_count(&all), 3);
    more.milli = 2500;
    processors_add(&all, &more);
    assert_int_equal(processors_count(&all), 2);
    more.milli = 0;
    processors_add(&all, &more);
    assert_int_equal(processors_count(&all), 2);
    more.milli = 900;
    processors_add(&all, &more);
    assert_int_equal(processors_count(&all), 1);
}

#define IN_ROOT(test) cmocka_unit_test_setup_teardown(test, make_root, remove_root)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_ROOT(without_a_limit_the_affinity_counts),
        IN_ROOT(the_limit_of_a_group_inside_another_counts),
        IN_ROOT(version_1_counts_too),
        IN_ROOT(of_processes_and_memory_the_narrowest_group_counts),
        IN_ROOT(processors_above_1024_count),
        IN_ROOT(the_least_limit_of_the_ranks_counts),
        cmocka_unit_test(ranks_bound_to_a_processor_each_spin),
        cmocka_unit_test(ranks_bound_to_one_processor_do_not_spin),
        IN_ROOT(a_part_of_a_processor_is_none_but_for_the_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
