/* SPDX-License-Identifier: Apache-2.0 */
/* nodes_worker - says when things happen, for bench/nodes.
 *
 *   nodes_worker agent FILE COMMAND...   "T agent HOST PID", then it becomes COMMAND
 *   nodes_worker work FILE SECONDS       "T start HOST PID RANK/WORLD", then it waits;
 *                                        a signal: "T signal HOST PID NUMBER", and it dies
 *                                        of it, but of SIGUSR1 by exit 1: a failure
 *
 * T is in us since the epoch.  A line is one write() to a file that is only ever
 * appended to, so the lines of all hosts can share it. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void stamp(const char *file, const char *what, const char *more)
{
    struct timespec now;
    char host[64] = "", line[256];
    int fd, length;

    clock_gettime(CLOCK_REALTIME, &now);
    gethostname(host, sizeof host - 1);
    length = snprintf(line, sizeof line, "%lld%06ld %s %s %d %s\n", (long long)now.tv_sec,
                      now.tv_nsec / 1000, what, host, (int)getpid(), more);
    fd = open(file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0 || write(fd, line, (size_t)length) != length) {
        fprintf(stderr, "nodes_worker: %s: %s\n", file, strerror(errno));
        exit(1);
    }
    close(fd);
}

static const char *variable(const char *name)
{
    const char *value = getenv(name);

    return value ? value : "-";
}

static int work(const char *file, int seconds)
{
    static const int watched[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1 };
    const struct timespec stay = { .tv_sec = seconds };
    char more[128];
    sigset_t set;
    int got;

    sigemptyset(&set);
    for (size_t i = 0; i < sizeof watched / sizeof *watched; i++)
        sigaddset(&set, watched[i]);
    sigprocmask(SIG_BLOCK, &set, NULL); /* before "start": who reads that may signal at once */
    snprintf(more, sizeof more, "%s/%s", variable("RANK"), variable("WORLD_SIZE"));
    stamp(file, "start", more);

    do
        got = seconds > 0 ? sigtimedwait(&set, NULL, &stay) : -1;
    while (got < 0 && seconds > 0 && errno == EINTR);
    if (got < 0)
        return 0;
    snprintf(more, sizeof more, "%d", got);
    stamp(file, "signal", more);
    if (got == SIGUSR1)
        return 1;
    signal(got, SIG_DFL);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    raise(got);
    return 1;
}

int main(int argc, char **argv)
{
    if (argc == 4 && !strcmp(argv[1], "work"))
        return work(argv[2], atoi(argv[3]));
    if (argc >= 4 && !strcmp(argv[1], "agent")) {
        stamp(argv[2], "agent", "-");
        execvp(argv[3], argv + 3);
        fprintf(stderr, "nodes_worker: %s: %s\n", argv[3], strerror(errno));
        return 127;
    }
    fprintf(stderr, "usage: nodes_worker agent FILE COMMAND... | work FILE SECONDS\n");
    return 2;
}
