/* SPDX-License-Identifier: Apache-2.0 */
/* signals.c - says which signals ctrun takes, and which dispositions workers get.
 *
 * ctrun blocks all these signals from its start to its end, and the event loop reads them from a
 * descriptor.  So there is no handler, and no signal is lost. */
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

    if (signals_hangup_is_ignored()) /* nohup wants it ignored */
        sigdelset(&set, SIGHUP);
    for (size_t i = 0; i < sizeof forwarded / sizeof *forwarded; i++)
        sigaddset(&set, forwarded[i]);
    sigaddset(&set, SIGCHLD);
    return set;
}

void signals_block(const struct options *options)
{
    sigset_t set = signals_watched(options);

    sigaddset(&set, SIGPIPE); /* a reader that left gives an error code and does not kill ctrun */
    sigaddset(&set, SIGXFSZ); /* and so does a file that may not grow (ulimit -f) */
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGCHLD, SIG_DFL); /* if it were ignored, we would get no exit codes */
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
