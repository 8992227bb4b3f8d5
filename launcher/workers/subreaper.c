/* SPDX-License-Identifier: Apache-2.0 */
/* subreaper.c - kills descendants of workers that left the worker's process group.
 *
 * ctrun kills a worker's process group when the worker ends, but a process that called setsid() is
 * not in that group.  ctrun is a subreaper, so ctrun, not init, becomes the parent of each
 * descendant whose parent has ended.  At the end of a round, all of ctrun's children were left by
 * workers.
 *
 * ctrun may have other children in two cases: if ctrun is PID 1 of a container, where processes
 * left by `docker exec` become its children, or if a shell with children executed ctrun by exec.
 * Then ctrun kills only processes with the round's generation in their environment.  So it may miss
 * a process of the job, but kills no foreign process. */
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

#define PATIENCE_MS 1000 /* longest time to wait for SIGKILL to take effect */
#define EXEC_MS 50       /* time to wait for the environment of a process that is in exec */

/* Returns the content of a file of /proc, with a NUL at its end, which the caller must free().
 * Returns NULL if the file can't be opened. */
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

/* Returns the pids of this thread's children, as "12 345 ", which the caller must free().  The
 * children of another thread are tools (run_tool.h), which that thread waits for. */
static char *children(void)
{
    char path[64];
    size_t size;

    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    return read_file(path, &size);
}

/* Returns the next pid of the list and advances *at; 0 at the end or if *at is NULL. */
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

/* Reaps all dead children, since one SIGCHLD may be for several children. */
void subreaper_reap(int (*is_known)(const void *arg, pid_t pid), const void *arg)
{
    char *list = children();
    const char *at = list;

    for (pid_t pid; (pid = next_pid(&at)) > 0;)
        if (!is_known(arg, pid))
            waitpid(pid, NULL, WNOHANG);
    free(list);
}

/* Returns 1 if the process has the generation in its environment, 0 if not, -1 if the environment
 * is not readable, perhaps during an exec. */
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

/* Kills or reaps each child except the guard and foreign children.  Returns the number of killed
 * children that are not reaped yet.  Sets *unsure to the number of children with an unreadable
 * environment. */
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

/* Kills in several passes, since the children of a killed process become ctrun's children. */
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
