/* SPDX-License-Identifier: Apache-2.0 */
/* signals.c - which signals ctrun takes, and which dispositions workers get.
 *
 * All of them are blocked from the first moment to the last and read from a
 * descriptor by the event loop, so no handler exists and none is lost. */
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

    if (signals_hangup_is_ignored()) /* nohup means it */
        sigdelset(&set, SIGHUP);
    for (size_t i = 0; i < sizeof forwarded / sizeof *forwarded; i++)
        sigaddset(&set, forwarded[i]);
    sigaddset(&set, SIGCHLD);
    return set;
}

void signals_block(const struct options *options)
{
    sigset_t set = signals_watched(options);

    sigaddset(&set, SIGPIPE); /* a reader that left is an error code, not a death */
    sigaddset(&set, SIGXFSZ); /* and so is a file that may not grow (ulimit -f) */
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGCHLD, SIG_DFL); /* ignored, it would take exit codes from us */
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
