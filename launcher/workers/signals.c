/* SPDX-License-Identifier: Apache-2.0 */
/* signals.c - lists the signals that ctrun reads, and the signals whose disposition it resets for
 * workers.
 *
 * ctrun blocks the signals that it reads from its start to its end, and the event loop reads them
 * from a signalfd.  So ctrun has no signal handler and loses no signal. */
#include "launcher/workers/signals.h"

int signals_hangup_is_ignored(void)
{
    struct sigaction action;

    return sigaction(SIGHUP, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

sigset_t signals_watched(const struct options *options)
{
    static const int forwarded[] = { SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT };
    sigset_t set = options->signals.set;

    if (signals_hangup_is_ignored()) /* ignored by nohup */
        sigdelset(&set, SIGHUP);
    for (size_t i = 0; i < sizeof forwarded / sizeof *forwarded; i++)
        sigaddset(&set, forwarded[i]);
    sigaddset(&set, SIGCHLD);
    return set;
}

void signals_block(const struct options *options)
{
    sigset_t set = signals_watched(options);

    sigaddset(&set, SIGPIPE); /* write() to a closed pipe returns EPIPE instead */
    sigaddset(&set, SIGXFSZ); /* write() above ulimit -f returns EFBIG instead */
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGCHLD, SIG_DFL); /* if ignored, waitid() returns no exit codes */
}

void signals_ignored(sigset_t *ignored)
{
    sigemptyset(ignored);
    for (int number = 1; number < 32; number++) {
        struct sigaction action;

        if (number != SIGHUP && sigaction(number, NULL, &action) == 0
            && action.sa_handler == SIG_IGN)
            sigaddset(ignored, number);
    }
}
