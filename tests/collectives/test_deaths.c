/* SPDX-License-Identifier: Apache-2.0 */
/* test_deaths.c - a rank is killed inside a call of two levels.
 *
 * CT_FAULT has two hosts, and kills the victim behind its n-th hand-over of its second call, so
 * that the first has made the connections.  Where the call has fewer, it dies after its calls.  All
 * others learn which rank died, in that call or in one of the next ones, and go on without it. */
#include "tests/harness.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/messaging/messages.h"

enum { CALLS = 4, MOST = 1 << 16, PHASES = 5, MOST_RANKS = 5 };
/* The most elements that two_shot sends as one piece to two ranks. */
enum { MANY = 2 * EAGER_MOST / sizeof(int32_t) };

struct death {
    const char *operation, *variable; /* of which `nodes` is the row */
    ct_status (*call)(ct_group *group, int32_t *send, int32_t *recv, size_t count);
    const char *hosts;
    int ranks;
};

struct run {
    const struct death *death;
    int victim, phase;
    size_t count; /* elements of a block */
};

static ct_status sums(ct_group *group, int32_t *send, int32_t *recv, size_t count)
{
    return ct_all_reduce(group, send, recv, count, CT_I32, CT_SUM, NULL);
}

static ct_status scatters_sums(ct_group *group, int32_t *send, int32_t *recv, size_t count)
{
    return ct_reduce_scatter(group, send, recv, count, CT_I32, CT_SUM, NULL);
}

static ct_status gathers(ct_group *group, int32_t *send, int32_t *recv, size_t count)
{
    return ct_all_gather(group, send, recv, count, CT_I32, NULL);
}

static ct_status meets(ct_group *group, int32_t *send, int32_t *recv, size_t count)
{
    (void)send;
    (void)recv;
    (void)count;
    return ct_barrier(group, NULL);
}

static const struct death deaths[] = {
    { "all_reduce", "CT_ALL_REDUCE", sums, "0.0.1.1", 4 },
    { "all_reduce", "CT_ALL_REDUCE", sums, "0.0.0.1.1", 5 },
    { "reduce_scatter", "CT_REDUCE_SCATTER", scatters_sums, "0.0.1.1", 4 },
    { "all_gather", "CT_ALL_GATHER", gathers, "0.1.0.1", 4 },
    { "barrier", "CT_BARRIER", meets, "0.0.1.1", 4 },
    { "barrier", "CT_BARRIER", meets, "0.0.0.1.1", 5 },
};

static ct_status make_calls(const struct run *run, ct_group *group, int calls)
{
    int32_t *const send = calloc(MOST_RANKS, run->count * sizeof *send + 1);
    int32_t *const recv = calloc(MOST_RANKS, run->count * sizeof *recv + 1);
    ct_status status = CT_OK;

    if (!send || !recv)
        abort();
    for (int i = 0; i < calls && status == CT_OK; i++)
        status = run->death->call(group, send, recv, run->count);
    free(send);
    free(recv);
    return status;
}

/* The rest of the victim, in a process that the harness does not wait for. */
static void victim_dies(const struct run *run)
{
    const pid_t pid = fork();
    int status = 0;

    if (pid == 0) {
        ct_group *group = program_group();

        if (group)
            make_calls(run, group, CALLS);
        raise(SIGKILL);
    }
    EXPECT(waitpid(pid, &status, 0) == pid);
    EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void go_on(ct_group *group)
{
    ct_group *left = NULL;
    int32_t sum = 1;

    if (!EXPECT_OK(ct_shrink_group(group, GROUP_TIMEOUT_MS, &left)))
        return;
    EXPECT(ct_size(left) == program_size() - 1);
    EXPECT_OK(ct_all_reduce(left, &sum, &sum, 1, CT_I32, CT_SUM, NULL));
    EXPECT(sum == program_size() - 1);
    EXPECT_OK(ct_destroy_process_group(left));
}

static void one_is_killed(ct_group *unused, void *arg)
{
    const struct run *run = arg;
    char who[16];
    ct_group *group;

    (void)unused;
    if (program_rank() == run->victim) {
        victim_dies(run);
        return;
    }
    if (!(group = program_group()))
        return;
    snprintf(who, sizeof who, "rank %d", run->victim);
    EXPECT_ERROR(make_calls(run, group, CALLS + 1), CT_ERR_PEER, who);
    go_on(group);
    EXPECT_OK(ct_destroy_process_group(group));
}

static void kill_in(const struct death *death, int victim, int phase, size_t count)
{
    struct run run = { death, victim, phase, count };
    char fault[120];

    snprintf(fault, sizeof fault, "hosts:%s;rank:%d,op:%s,call:2,phase:%d,kill", death->hosts,
             victim, death->operation, phase);
    setenv("CT_FAULT", fault, 1);
    run_programs(death->ranks, one_is_killed, &run);
}

/* The first rank of the first host, which speaks for it, and the last one of the second. */
static void who_is_left_of_a_call_of_two_levels_knows_who_died(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof deaths / sizeof *deaths; i++) {
        setenv(deaths[i].variable, "nodes", 1);
        for (int phase = 0; phase < PHASES; phase++) {
            kill_in(&deaths[i], 0, phase, 4);
            kill_in(&deaths[i], deaths[i].ranks - 1, phase, MOST);
        }
        unsetenv(deaths[i].variable);
    }
    unsetenv("CT_FAULT");
}

/* Of ten or more pieces: in the second to the fourth results of the one before are on their way. */
static void who_is_left_between_pieces_knows_it_too(void **state)
{
    static const struct death in_pieces = { "all_reduce", "CT_ALL_REDUCE", sums, "0.1", 2 };

    (void)state;
    setenv(in_pieces.variable, "two_shot", 1);
    for (int phase = 3; phase < 13; phase++)
        kill_in(&in_pieces, phase % 2, phase, 5 * MANY);
    unsetenv(in_pieces.variable);
    unsetenv("CT_FAULT");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_left_of_a_call_of_two_levels_knows_who_died),
        cmocka_unit_test(who_is_left_between_pieces_knows_it_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
