/* SPDX-License-Identifier: Apache-2.0 */
/* test_host_segment.c - how the ranks of a host come to share memory, and when they do without. */
#include "tests/harness.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/group/group.h"
#include "runtime/group/shm/shm_group.h"
#include "runtime/net/fd_passing.h"
#include "runtime/shm/shared_region.h"
#include "runtime/util/clock.h"

enum {
    ON_THEIR_WAY = 4 * 100, /* descriptors */
    FEW = 100,              /* of RLIMIT_NOFILE: less than that */
    NOBODY = 65534
};

/* The kernel bounds the descriptors on their way of users without rights alone. */
static int become_one_without_rights(void)
{
    return (geteuid() != 0 || setresuid(NOBODY, NOBODY, NOBODY) == 0)
           && prctl(PR_SET_DUMPABLE, 1) == 0; /* else we could not count our descriptors */
}

/* A process of that user sends descriptors for so long; no rank takes them. */
static pid_t fill_the_ways(int ms)
{
    int ready[2], ways[2], fds[FEW];
    pid_t filler;
    char byte;

    if (pipe(ready) < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ways) < 0)
        fail_msg("no pipe");
    for (int i = 0; i < FEW; i++)
        fds[i] = STDOUT_FILENO;
    filler = fork();
    if (filler == 0) {
        int sent = 0;

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (!become_one_without_rights())
            _exit(1);
        while (sent < ON_THEIR_WAY && send_fds(ways[0], fds, FEW, 0) == CT_OK)
            sent += FEW;
        if (sent < ON_THEIR_WAY || write(ready[1], "!", 1) != 1)
            _exit(1);
        nap(ms);
        _exit(0);
    }
    close(ready[1]);
    close(ways[0]);
    close(ways[1]);
    if (read(ready[0], &byte, 1) != 1)
        fail_msg("no descriptors are on their way");
    close(ready[0]);
    return filler;
}

struct joining {
    int timeout_ms;
    int shares;
};

static void join_with_few_descriptors(ct_group *unused, void *arg)
{
    const struct rlimit few = { FEW, FEW };
    const struct joining *joining = arg;
    ct_init_options options = CT_INIT_OPTIONS_INIT;
    int32_t sum = 1;

    (void)unused;
    options.timeout_ms = joining->timeout_ms;
    if (!EXPECT(setrlimit(RLIMIT_NOFILE, &few) == 0) || !EXPECT(become_one_without_rights())
        || !EXPECT_OK(ct_init_process_group(&options)))
        return;
    EXPECT((default_group()->mesh->node.base != NULL) == joining->shares);
    EXPECT_OK(ct_all_reduce(CT_WORLD, &sum, &sum, 1, CT_I32, CT_SUM, NULL));
    EXPECT(sum == ct_size(CT_WORLD));
    EXPECT_OK(ct_destroy_process_group(CT_WORLD));
}

static void join_while_the_ways_are_full(int ms, struct joining joining)
{
    const pid_t filler = fill_the_ways(ms);

    run_programs(3, join_with_few_descriptors, &joining);
    kill(filler, SIGKILL);
    waitpid(filler, NULL, 0);
}

static void ranks_wait_until_descriptors_can_be_passed(void **state)
{
    (void)state;
    join_while_the_ways_are_full(1000, (struct joining){ GROUP_TIMEOUT_MS, 1 });
}

static void ranks_that_cant_pass_descriptors_use_sockets(void **state)
{
    (void)state;
    join_while_the_ways_are_full(2 * GROUP_TIMEOUT_MS, (struct joining){ 5000, 0 });
}

/* ---- The memory ------------------------------------------------------------ */

/* Of the shared mappings of libct those that a core dump has, and how many there are. */
static int dumped_mappings(int *all)
{
    FILE *maps = fopen("/proc/self/smaps", "re");
    char line[500];
    int dumped = 0, is_ours = 0;

    *all = 0;
    while (maps && fgets(line, sizeof line, maps)) {
        if (strchr(line, '-') && strchr(line, '-') < strchr(line, ' '))
            *all += is_ours = strstr(line, "/memfd:ct") != NULL;
        dumped += is_ours && !strncmp(line, "VmFlags:", 8) && !strstr(line, " dd");
    }
    if (maps)
        fclose(maps);
    return dumped;
}

static void map_all_there_is(ct_group *group, void *arg)
{
    struct node *const node = &group->mesh->node;
    struct region_offer offer = { .bytes = 5000 };
    uint64_t members[NODE_SET_WORDS] = { 3 };
    int before, all;
    void *memory;

    (void)arg;
    EXPECT(dumped_mappings(&before) == 0);
    EXPECT(before >= 2); /* the node's and the control page */
    EXPECT_OK(ct_mem_alloc(group, 1 << 20, &memory));
    EXPECT(dumped_mappings(&all) == 0 && all == before + 1);
    offer.data = memory;
    regions_offer(node, &offer, 1, members);
    regions_cut_off(node, &offer, 1);
    EXPECT(dumped_mappings(&all) == 0 && all > before + 1);
    EXPECT_OK(ct_mem_free(group, memory));
}

static void shared_memory_is_in_no_core_dump(void **state)
{
    (void)state;
    run_processes(2, map_all_there_is, NULL);
}

static void make_it_smaller(ct_group *group, void *arg)
{
    const int fd = group->mesh->node.fd;

    (void)arg;
    EXPECT(ftruncate(fd, 0) < 0 && errno == EPERM);
    EXPECT(ftruncate(group->mesh->control.memory_fd, 0) < 0 && errno == EPERM);
    EXPECT(fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) < 0 && errno == EPERM);
    EXPECT_OK(ct_barrier(group, NULL));
}

static void no_rank_takes_shared_memory_away(void **state)
{
    (void)state;
    run_processes(2, make_it_smaller, NULL);
}

static void count_pages(ct_group *group, void *arg)
{
    const struct node *node = &group->mesh->node;
    struct stat file;

    (void)arg;
    EXPECT_OK(ct_barrier(group, NULL)); /* each rank has looked for messages of each */
    EXPECT(fstat(node->fd, &file) == 0);
    EXPECT(file.st_blocks * 512 < (blkcnt_t)node->size * 2 * 4096);
    EXPECT_OK(ct_barrier(group, NULL)); /* a rank that leaves tells the others */
}

static void a_pair_of_ranks_that_sends_nothing_has_no_page_of_its_own(void **state)
{
    (void)state;
    run_processes(16, count_pages, NULL);
}

/* A group and a region would note a rank behind the last one that fits. */
static void more_ranks_than_sets_hold(ct_group *unused, void *arg)
{
    enum { RANKS = NODE_MOST + 100 };
    const int members[] = { 0, RANKS - 1 };
    struct mesh *mesh = aligned_alloc(CACHE_PAIR, (sizeof *mesh / CACHE_PAIR + 1) * CACHE_PAIR);
    struct shm_group *shm = NULL;
    char file[4096];

    (void)unused;
    (void)arg;
    memset(mesh, 0, sizeof *mesh);
    mesh->size = mesh->node.size = RANKS;
    mesh->peers = calloc(RANKS, sizeof *mesh->peers);
    for (int i = 0; i < RANKS; i++)
        mesh->peers[i].local = i;
    mesh->node.base = (unsigned char *)file;
    mesh->node.head = calloc(1, sizeof *mesh->node.head);
    mesh->node.file_bytes = (uint64_t)1 << 60;
    EXPECT_OK(shm_group_create(mesh, members, 2, 0, 42, deadline_after(1000), NULL, &shm));
    EXPECT(shm == NULL);
    EXPECT(region_reserve(&mesh->node, 4096) == 0);
    free(mesh->node.head);
    free(mesh->peers);
    free(mesh);
}

static void a_host_of_more_ranks_than_sets_hold_does_without_common_slots_and_regions(void **state)
{
    (void)state;
    run_processes(1, more_ranks_than_sets_hold, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_wait_until_descriptors_can_be_passed),
        cmocka_unit_test(ranks_that_cant_pass_descriptors_use_sockets),
        cmocka_unit_test(shared_memory_is_in_no_core_dump),
        cmocka_unit_test(no_rank_takes_shared_memory_away),
        cmocka_unit_test(a_pair_of_ranks_that_sends_nothing_has_no_page_of_its_own),
        cmocka_unit_test(a_host_of_more_ranks_than_sets_hold_does_without_common_slots_and_regions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
