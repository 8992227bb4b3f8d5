/* SPDX-License-Identifier: Apache-2.0 */
/* test_processors.c - how many processors the ranks of a host may use, with control groups as files
 * under a temporary folder, and with a kernel that has 4,096 processors. */
#include "tests/harness.h"

#include <errno.h>
#include <pthread.h>
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

/* Replaces the C library's function.  Like Linux it refuses a mask without room for all bits. */
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

static int has(const unsigned char *mask, int cpu)
{
    return mask[cpu / 8] >> cpu % 8 & 1;
}

static void fill(unsigned char *mask, int first, int count)
{
    memset(mask, 0, KERNEL_BITS / 8);
    for (int cpu = first; cpu < first + count; cpu++)
        mask[cpu / 8] = (unsigned char)(mask[cpu / 8] | 1 << cpu % 8);
}

static unsigned char of_group[KERNEL_BITS / 8]; /* a cpuset */
static unsigned char chosen[KERNEL_BITS / 8];   /* what was asked for last, group or not */
static _Atomic int running_on;
static _Atomic int choices; /* times that a mask was chosen */

/* The process stays on its processor if the mask allows it. */
int sched_setaffinity(pid_t pid, size_t size, const cpu_set_t *mask)
{
    int first = -1;

    (void)pid;
    atomic_fetch_add(&choices, 1);
    assert_true(size >= sizeof chosen);
    memcpy(chosen, mask, sizeof chosen);
    for (int cpu = KERNEL_BITS - 1; cpu >= 0; cpu--)
        if (has(chosen, cpu) && has(of_group, cpu))
            first = cpu;
    if (first < 0) {
        errno = EINVAL;
        return -1;
    }
    for (size_t i = 0; i < sizeof allowed; i++)
        allowed[i] = chosen[i] & of_group[i];
    if (!has(allowed, running_on))
        running_on = first;
    return 0;
}

int pthread_setaffinity_np(pthread_t thread, size_t size, const cpu_set_t *mask)
{
    (void)thread;
    return sched_setaffinity(0, size, mask) == 0 ? 0 : errno;
}

int sched_getcpu(void)
{
    return running_on;
}

static void allow(int first, int count)
{
    fill(of_group, first, count);
    fill(allowed, first, count);
    memset(chosen, 0xff, sizeof chosen);
    running_on = first;
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

/* apart: each rank is bound to its own processor; 0: all ranks are bound to the same one. */
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

/* ---- Ranks that share a processor ------------------------------------------------ */

enum { FIRST = 3000, OURS = 1 }; /* our rank */

static struct doorbell bells[4];

/* Ranks 0, 2 and 3 are on processors 0, 1 and 2 of the mask, and our rank is on `processor`. */
static void stand_apart_from(int processor, int spins)
{
    const struct waiter waiter = {
        .bell = &bells[OURS], .bells = bells, .ranks = 4, .spins = spins
    };

    atomic_store(&bells[0].processor, 1 + FIRST);
    atomic_store(&bells[2].processor, 1 + FIRST + 1);
    atomic_store(&bells[3].processor, 1 + FIRST + 2);
    running_on = FIRST + processor;
    waiter_stand_apart(&waiter);
}

static void of_two_ranks_on_a_processor_one_moves(void **state)
{
    unsigned char before[sizeof allowed], all[sizeof chosen];

    (void)state;
    memset(all, 0xff, sizeof all);
    allow(FIRST, 6);
    memcpy(before, allowed, sizeof before);
    stand_apart_from(1, 1);
    assert_int_equal(running_on, FIRST + 3);
    assert_int_equal(atomic_load(&bells[OURS].processor), 1 + running_on); /* others see it */
    assert_memory_equal(allowed, before, sizeof before);
    assert_memory_equal(chosen, all, sizeof all); /* it grows with the group, as before */
}

static void a_mask_that_was_chosen_stays(void **state)
{
    unsigned char before[sizeof allowed];

    (void)state;
    allow(FIRST, 6);
    fill(allowed, FIRST, 5);
    memcpy(before, allowed, sizeof before);
    stand_apart_from(1, 1);
    assert_int_equal(running_on, FIRST + 3);
    assert_memory_equal(allowed, before, sizeof before);
    assert_memory_equal(chosen, before, sizeof before);
}

static void a_rank_that_need_not_or_cannot_move_stays(void **state)
{
    (void)state;
    allow(FIRST, 6);
    stand_apart_from(5, 1); /* no other rank is there */
    assert_int_equal(running_on, FIRST + 5);
    stand_apart_from(1, 0); /* there are fewer processors than ranks */
    assert_int_equal(running_on, FIRST + 1);
    fill(allowed, FIRST, 3); /* all are taken */
    stand_apart_from(1, 1);
    assert_int_equal(running_on, FIRST + 1);
    fill(allowed, FIRST + 1, 1); /* it is bound */
    stand_apart_from(1, 1);
    assert_int_equal(running_on, FIRST + 1);
}

static void a_rank_that_is_put_with_the_awaited_one_again_and_again_moves(void **state)
{
    struct waiter waiter = { .bell = &bells[OURS], .bells = bells, .ranks = 2, .spins = 1 };

    (void)state;
    allow(FIRST, 4);
    atomic_store(&bells[0].processor, 1 + FIRST);
    running_on = FIRST;
    for (int i = 1; i <= 64; i++) {
        struct wait wait = { .waiter = &waiter };

        assert_int_equal(running_on, FIRST);
        wait_look_at_rank(&wait, 0);
        assert_int_equal(wait.tired != 0, i < 64); /* it sleeps at once */
    }
    assert_int_equal(running_on, FIRST + 1);
}

/* Before each call the kernel puts all ranks on one processor.  At init all but one would move. */
static void stays_where_it_is_put(ct_group *unused, void *arg)
{
    int32_t one = 1, sum = 0;
    ct_work *work = NULL;
    int before;

    (void)unused;
    (void)arg;
    allow(FIRST, RANKS);
    if (!EXPECT_OK(ct_init_process_group(NULL)))
        return;
    before = choices;
    for (int i = 0; i < 4 * RANKS; i++) {
        running_on = FIRST;
        nap(program_rank() == i % RANKS ? 3 : 0); /* the others wait for it */
        EXPECT_OK(ct_all_reduce(CT_WORLD, &one, &sum, 1, CT_I32, CT_SUM, i % 2 ? &work : NULL));
        if (i % 2)
            EXPECT_OK(ct_wait(work));
        EXPECT(sum == RANKS && running_on == FIRST);
    }
    EXPECT_OK(ct_destroy_process_group(CT_WORLD));
    EXPECT(choices == before);
}

static void after_init_no_rank_is_moved(void **state)
{
    (void)state;
    run_programs(RANKS, stays_where_it_is_put, NULL);
    use_link("tcp");
    run_programs(RANKS, stays_where_it_is_put, NULL);
    use_link(NULL);
}

/* ---- Sums ------------------------------------------------------------------------ */

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
        cmocka_unit_test(of_two_ranks_on_a_processor_one_moves),
        cmocka_unit_test(a_mask_that_was_chosen_stays),
        cmocka_unit_test(a_rank_that_need_not_or_cannot_move_stays),
        cmocka_unit_test(a_rank_that_is_put_with_the_awaited_one_again_and_again_moves),
        cmocka_unit_test(after_init_no_rank_is_moved),
        cmocka_unit_test(ranks_bound_to_a_processor_each_spin),
        cmocka_unit_test(ranks_bound_to_one_processor_do_not_spin),
        IN_ROOT(a_part_of_a_processor_is_none_but_for_the_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
