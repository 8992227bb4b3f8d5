/* SPDX-License-Identifier: Apache-2.0 */
/* subreaper.c - kills descendants of workers that left the worker's process group.
 *
 * A worker's group is killed at its end, but a process that called setsid() is not in it.  ctrun is
 * a subreaper, so it, not init, becomes the parent of each descendant whose parent has ended.  So
 * at the end of a round all of ctrun's children are leftovers of its workers.
 *
 * This is different if ctrun is PID 1 of a container, where leftovers of `docker exec` become its
 * children, or if a shell that had children executed ctrun in its place.  Then ctrun kills only
 * processes with the round's generation in their environment: it may miss a process of the job, but
 * kills no other process. */
#include "launcher/workers/subreaper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/util/clock.h"

#define PATIENCE_MS 1000 /* for SIGKILL to take effect */
#define EXEC_MS 50       /* within an exec a process has no environment for a moment */

/* Reads a whole file of /proc, with a NUL after it, for free(); NULL: it can't be read. */
static char *read_file(const char *path, size_t *size)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t room = 4096;
    char *text = fd < 0 ? NULL : malloc(room + 1);
    ssize_t got = 0;

    *size = 0;
    while (text && (got = read(fd, text + *size, room - *size)) > 0) {
        *size += (size_t)got;
        if (*size == room) {
            char *more = realloc(text, (room *= 2) + 1);

            if (!more)
                break;
            text = more;
        }
    }
    if (fd >= 0)
        close(fd);
    if (text)
        text[*size] = '\0';
    return text;
}

/* Gives the pids of this thread's children, "12 345 ".  No other thread forks. */
static char *children(void)
{
    char path[64];
    size_t size;

    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    return read_file(path, &size);
}

/* Gives the next pid of the list; 0: at the end, or without a list. */
static pid_t next_pid(const char **at)
{
    char *end;
    const long pid = *at ? strtol(*at, &end, 10) : 0;

    if (pid > 0)
        *at = end;
    return (pid_t)pid;
}

void subreaper_start(struct subreaper *subreaper)
{
    char *before = children();

    subreaper->has_foreign_children = getpid() == 1 || (before && *before);
    free(before);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

/* Reaps all dead children, not only the one that a SIGCHLD names: pending signals merge. */
void subreaper_reap(int (*is_known)(const void *arg, pid_t pid), const void *arg)
{
    char *list = children();
    const char *at = list;

    for (pid_t pid; (pid = next_pid(&at)) > 0;)
        if (!is_known(arg, pid))
            waitpid(pid, NULL, WNOHANG);
    free(list);
}

/* Says whether the process has the generation in its environment.  -1: nothing to read, perhaps not
 * yet. */
static int has_generation(pid_t pid, const char *generation)
{
    char path[64], wanted[64];
    size_t size;
    char *variables;
    int has = -1;

    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    snprintf(wanted, sizeof wanted, "CT_GENERATION=%s", generation);
    variables = read_file(path, &size);
    if (size > 0)
        has = memmem(variables, size, wanted, strlen(wanted) + 1) != NULL;
    free(variables);
    return has;
}

/* Kills and reaps each child except the guard and foreign children.  Returns how many still live,
 * without those in *unsure. */
static int kill_once(const struct subreaper *subreaper, pid_t guard, const char *generation,
                     int *unsure)
{
    char *list = children();
    const char *at = list;
    int alive = 0;

    *unsure = 0;
    for (pid_t pid; (pid = next_pid(&at)) > 0;) {
        int ours = 1;

        if (pid == guard || waitpid(pid, NULL, WNOHANG) != 0)
            continue;
        if (subreaper->has_foreign_children)
            ours = has_generation(pid, generation);
        if (ours == 1)
            kill(pid, SIGKILL);
        alive += ours == 1;
        *unsure += ours == -1;
    }
    free(list);
    return alive;
}

/* Kills in passes: children of killed processes become ctrun's, and the next pass kills them. */
int subreaper_kill(const struct subreaper *subreaper, pid_t guard, const char *generation)
{
    const int64_t begin = clock_ms();
    int alive, unsure;

    for (;;) {
        const int64_t passed = clock_ms() - begin;

        alive = kill_once(subreaper, guard, generation, &unsure);
        if ((alive == 0 && (unsure == 0 || passed > EXEC_MS)) || passed > PATIENCE_MS)
            return alive;
        usleep(200);
    }
}
