/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/cuda/deaths.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static ct_group *joined(void)
{
    ct_group_options options = CT_GROUP_OPTIONS_INIT;
    ct_group *group = NULL;
    ct_store *store = NULL;
    char path[200];

    options.timeout_ms = GROUP_TIMEOUT_MS;
    snprintf(path, sizeof path, "%s/deaths", scratch());
    if (!EXPECT_OK(ct_store_file(path, GROUP_TIMEOUT_MS, &store)))
        return NULL;
    EXPECT_OK(ct_create_group(store, program_rank(), program_size(), &options, &group));
    EXPECT_OK(ct_store_close(store));
    return group;
}

static int lives_or_dies(const struct death *death)
{
    ct_group *const group = joined();
    char who[16];

    if (!group)
        return 0;
    snprintf(who, sizeof who, "rank %d", death->victim);
    if (program_rank() == death->victim) {
        death->make(group, death->arg, death->calls);
        raise(SIGKILL);
    }
    return EXPECT_ERROR(death->make(group, death->arg, death->calls + 1), CT_ERR_PEER, who)
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

void one_of_them_dies(int p, const struct death *death)
{
    run_programs(p, one_is_killed, (void *)(uintptr_t)death);
}
