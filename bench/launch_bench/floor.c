/* SPDX-License-Identifier: Apache-2.0 */
/* floor.c - spawn N, wait for N: what no launcher can do without. */
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "bench/launch_bench/modes.h"

extern char **environ;

/* Our worker wants its rank.  One variable more, and no copy of the others. */
int spawn_loop(char **words, int sessions)
{
    const int count = atoi(words[0]);
    posix_spawnattr_t how;
    int code = 0;
    pid_t pid;

    posix_spawnattr_init(&how);
    posix_spawnattr_setflags(&how, sessions ? POSIX_SPAWN_SETSID : 0);
    for (int i = 0; i < count; i++) {
        char rank[16] = { (char)('0' + i / 10), (char)('0' + i % 10) };

        setenv("RANK", rank, 1);
        if (posix_spawn(&pid, words[1], NULL, &how, words + 1, environ) != 0)
            code = 1;
    }
    posix_spawnattr_destroy(&how);
    while (waitpid(-1, NULL, 0) > 0)
        continue;
    return code;
}
