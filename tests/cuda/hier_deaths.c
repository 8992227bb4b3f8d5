/* SPDX-License-Identifier: Apache-2.0 */
/* hier_deaths.c - ranks that die in such a call; see hier.h. */
#include "tests/cuda/hier.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/cuda/device.h"

static ct_group *joined(void)
{
    ct_group_options options = CT_GROUP_OPTIONS_INIT;
    ct_group *group = NULL;
    ct_store *store = NULL;
    char path[200];

    options.timeout_ms = GROUP_TIMEOUT_MS;
    snprintf(path, sizeof path, "%s/hier", scratch());
    if (!EXPECT_OK(ct_store_file(path, GROUP_TIMEOUT_MS, &store)))
        return NULL;
    EXPECT_OK(ct_create_group(store, program_rank(), program_size(), &options, &group));
    EXPECT_OK(ct_store_close(store));
    return group;
}

struct death {
    const struct hier_run *run;
    const struct hier_call *call;
    const char *operation; /* what CT_FAULT calls it */
    int victim;
};

static ct_status make_calls(ct_group *group, const struct death *death, int calls)
{
    const size_t bytes = (size_t)program_size() * HIER_COUNT * sizeof(float);
    ct_status status = CT_OK;
    char *there;

    if (!hier_open(death->run, program_rank()))
        return CT_OK;
    there = device_alloc(2 * bytes, 0);
    for (int i = 0; i < calls && status == CT_OK; i++)
        status = hier_make(group, death->call, there, there + bytes);
    return status; /* the memory may still be read by others: it goes with the process */
}

static int lives_or_dies(const struct death *death)
{
    ct_group *const group = joined();
    char who[16];

    if (!group)
        return 0;
    snprintf(who, sizeof who, "rank %d", death->victim);
    if (program_rank() == death->victim) {
        make_calls(group, death, HIER_CALLS);
        raise(SIGKILL);
    }
    return EXPECT_ERROR(make_calls(group, death, HIER_CALLS + 1), CT_ERR_PEER, who)
           && EXPECT_OK(ct_destroy_process_group(group));
}

/* In a process that the harness does not wait for. */
static void one_is_killed(ct_group *unused, void *arg)
{
    const struct death *death = arg;
    const pid_t pid = fork();
    int how = 0;

    (void)unused;
    if (pid == 0)
        _exit(!lives_or_dies(death));
    EXPECT(waitpid(pid, &how, 0) == pid);
    if (program_rank() == death->victim)
        EXPECT(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
    else
        EXPECT(WIFEXITED(how) && WEXITSTATUS(how) == 0);
}

/* There are that many in the group's first call, and in any other one. */
enum { PHASES_FIRST = 12, PHASES = 6 };

static void kill_in(const struct death *death, int call)
{
    char fault[120];

    for (int phase = 1; phase <= (call == 1 ? PHASES_FIRST : PHASES); phase++) {
        snprintf(fault, sizeof fault, "%s;rank:%d,op:%s,call:%d,phase:%d,kill", death->run->hosts,
                 death->victim, death->operation, call, phase);
        hier_settings(death->run);
        setenv("CT_FAULT", fault, 1);
        run_programs(4, one_is_killed, (void *)(uintptr_t)death);
    }
}

void hier_kill_each(const struct hier_run *run, const struct hier_call *call, const char *operation,
                    int in_call)
{
    for (int victim = 0; victim < 3; victim++)
        kill_in(&(struct death){ run, call, operation, victim }, in_call);
}
