/* SPDX-License-Identifier: Apache-2.0 */
/* run_tool.c - runs an external tool with a time limit, since a debugger may hang. */
#include "launcher/util/run_tool.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/util/clock.h"

#define MOST_OUTPUT (8u << 20)

int tool_is_there(const char *name)
{
    const char *path = getenv("PATH");
    char file[1024];

    while (path && *path) {
        const size_t length = strcspn(path, ":");

        snprintf(file, sizeof file, "%.*s/%s", (int)length, path, name);
        if (length > 0 && access(file, X_OK) == 0)
            return 1;
        path += length + (path[length] == ':');
    }
    return 0;
}

static _Noreturn void tool_child(char *const *argv, int out, pid_t parent)
{
    const int null = open("/dev/null", O_RDONLY);
    sigset_t none;

    prctl(PR_SET_PDEATHSIG, SIGKILL); /* the tool does not outlive the thread that runs it */
    if (getppid() != parent)
        _exit(127);
    setpgid(0, 0); /* so that kill(-pid) also ends the tool's children */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL); /* that thread may block all (thread.h) */
    if (dup2(null, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0
        && dup2(out, STDERR_FILENO) >= 0)
        execvp(argv[0], argv);
    _exit(127);
}

/* Reads until the tool has closed its output.  Returns 1, or 0 if that did not happen before the
 * deadline. */
static int read_all(int fd, int64_t deadline, struct text *out)
{
    char bytes[16384];

    for (;;) {
        struct pollfd ready = { fd, POLLIN, 0 };
        const int left = time_left_ms(deadline, 1000);
        ssize_t got;

        if (left == 0)
            return 0;
        if (poll(&ready, 1, left) <= 0)
            continue;
        got = read(fd, bytes, sizeof bytes);
        if (got == 0 || (got < 0 && errno != EINTR))
            return 1;
        if (got > 0 && out->used < MOST_OUTPUT)
            text_add(out, bytes, (size_t)got);
    }
}

int tool_run(char *const *argv, int seconds, struct text *out)
{
    int pipes[2], status = 0;
    const pid_t parent = getpid();
    pid_t pid;

    if (pipe2(pipes, O_CLOEXEC) < 0)
        return -1;
    pid = fork();
    if (pid == 0)
        tool_child(argv, pipes[1], parent);
    close(pipes[1]);
    if (pid > 0) {
        setpgid(pid, pid);
        if (!read_all(pipes[0], deadline_after((int64_t)seconds * 1000), out))
            kill(-pid, SIGKILL);
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
    }
    close(pipes[0]);
    return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
