/* SPDX-License-Identifier: Apache-2.0 */
/* terminal_foreground.c - job control, as a shell does it for one job.
 *
 * The worker has a process group of its own in our session, and that group is the terminal's
 * foreground one: it may read, and Ctrl-C reaches it and not ctrun.  A stop of it would go
 * unnoticed by the shell, which knows only ctrun. */
#include "launcher/workers/terminal_foreground.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

int foreground_is_ours(void)
{
    return tcgetpgrp(STDIN_FILENO) == getpgrp();
}

/* From the background, tcsetpgrp() would stop us with SIGTTOU.  Who blocks it may go on. */
int foreground_give(pid_t group)
{
    sigset_t output, before;
    int status;

    sigemptyset(&output);
    sigaddset(&output, SIGTTOU);
    sigprocmask(SIG_BLOCK, &output, &before);
    status = tcsetpgrp(STDIN_FILENO, group);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return status;
}

void foreground_take(void)
{
    foreground_give(getpgrp());
}

int foreground_stopped(pid_t pid, int lent)
{
    siginfo_t info = { .si_pid = 0 };

    if (waitid(P_PID, (id_t)pid, &info, WSTOPPED | WNOHANG) < 0 || info.si_pid == 0)
        return lent;
    if (lent)
        foreground_take();
    kill(0, SIGTSTP); /* where no shell waits for us, the kernel passes over it */
    return foreground_continued(pid);
}

int foreground_continued(pid_t pid)
{
    const int lent = foreground_is_ours() && foreground_give(pid) == 0;

    kill(-pid, SIGCONT);
    return lent;
}
