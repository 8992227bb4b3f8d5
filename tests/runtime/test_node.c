/* SPDX-License-Identifier: Apache-2.0 */
/* test_node.c - how the ranks of a host come to share memory, and when they do without. */
#include "tests/harness.h"

#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/default_group.h"
#include "runtime/descriptors.h"
#include "runtime/group.h"

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

/* A process of that user sends descriptors that nobody takes, for so long. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_wait_until_descriptors_can_be_passed),
        cmocka_unit_test(ranks_that_cant_pass_descriptors_use_sockets),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
