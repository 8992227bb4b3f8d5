/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/cuda/deaths.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/util/clock.h"

/* How many survivors have their error.  A rank that ended before the others learnt of the death
 * would be one more that is gone, and a rank that was about to connect to it would name that one.
 */
static _Atomic int *told;

static int waits_for_the_others(void)
{
    const int64_t deadline = clock_ms() + 30000;

    atomic_fetch_add(told, 1);
    while (atomic_load(told) < program_size() - 1 && clock_ms() < deadline)
        usleep(1000);
    return EXPECT(atomic_load(told) == program_size() - 1);
}

static int lives_or_dies(const struct death *death)
{
    ct_group *const group = program_group();
    char who[16];

    if (!group)
        return 0;
    snprintf(who, sizeof who, "rank %d", death->victim);
    if (program_rank() == death->victim) {
        death->make(group, death->arg, death->calls);
        raise(SIGKILL);
    }
    return EXPECT_ERROR(death->make(group, death->arg, death->calls + 1), CT_ERR_PEER, who)
           && waits_for_the_others() && EXPECT_OK(ct_destroy_process_group(group));
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
    told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(told != MAP_FAILED);
    run_programs(p, one_is_killed, (void *)(uintptr_t)death);
    munmap((void *)told, sizeof *told);
}
