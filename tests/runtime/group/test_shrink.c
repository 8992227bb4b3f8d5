/* SPDX-License-Identifier: Apache-2.0 */
/* test_shrink.c - which ranks are in the group of the survivors: all that came, also a slow one. */
#include "tests/marks.h"
#include "tests/harness.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SLOW_MS \
    7500 /* longer than a try of a small group may take, and than the others then wait */

static int is_stopped(pid_t pid)
{
    char path[48], line[400];
    const char *state = NULL;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    file = fopen(path, "re");
    if (file && fgets(line, sizeof line, file))
        state = strrchr(line, ')');
    if (file)
        fclose(file);
    return state && state[2] == 'T';
}

/* CT_FAULT stops this process in each try to make the group.  The first time it stands still for
 * long. */
static pid_t helper(void)
{
    const pid_t slow = getpid(), child = fork();

    if (child != 0)
        return child;
    alarm(DEADLINE_MS / 1000);
    while (!is_stopped(slow))
        nap(5);
    nap(SLOW_MS);
    for (;;) {
        kill(slow, SIGCONT);
        nap(5);
    }
}

static void one_is_slow(ct_group *unused, void *arg)
{
    ct_group *group = program_group(), *left = NULL;
    int32_t sum = 1;
    pid_t child = 0;

    (void)unused;
    (void)arg;
    if (!group)
        return;
    EXPECT_OK(ct_barrier(group, NULL));
    if (program_rank() == 3)
        rank_leaves();
    EXPECT_STATUS(ct_recv(group, &sum, 1, CT_I32, 3, 0, NULL), CT_ERR_PEER);
    if (program_rank() == 1) {
        setenv("CT_FAULT", "op:init,phase:1,stop", 1);
        child = helper();
    }
    if (EXPECT_OK(ct_shrink_group(group, GROUP_TIMEOUT_MS, &left))) {
        EXPECT(ct_size(left) == 3 && ct_rank(left) == program_rank());
        EXPECT_OK(ct_all_reduce(left, &sum, &sum, 1, CT_I32, CT_SUM, NULL));
        EXPECT(sum == 3);
        EXPECT_OK(ct_destroy_process_group(left));
    }
    EXPECT_OK(ct_destroy_process_group(group));
    if (child) {
        kill(child, SIGKILL);
        EXPECT(waitpid(child, NULL, 0) == child);
    }
}

static void a_rank_that_came_is_not_left_out_for_being_slow(void **state)
{
    (void)state;
    run_programs(4, one_is_slow, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rank_that_came_is_not_left_out_for_being_slow),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
