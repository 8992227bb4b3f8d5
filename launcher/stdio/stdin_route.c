/* SPDX-License-Identifier: Apache-2.0 */
/* stdin_route.c - standard input is handed on as it is, by its descriptor: nothing is read
 * ahead and nothing copied.
 *
 * Workers have sessions of their own, so nothing stops them from reading a terminal
 * that is not theirs: no SIGTTIN, no EIO.  In the foreground that is as it should be;
 * behind a shell's back (ctrun ... &) they would eat what is typed for the shell, and
 * get /dev/null instead. */
#include "launcher/stdio/stdin_route.h"

#include <fcntl.h>
#include <unistd.h>

#include "runtime/util/log.h"

static int is_away(void)
{
    const pid_t foreground = isatty(STDIN_FILENO) ? tcgetpgrp(STDIN_FILENO) : -1;

    return foreground > 0 && foreground != getpgrp();
}

void input_setup(struct input *input, const struct options *options)
{
    *input = (struct input){ &options->stdin_to, is_away(), -1 };
}

int input_null(struct input *input)
{
    if (input->null < 0)
        input->null = open("/dev/null", O_RDWR | O_CLOEXEC);
    return input->null;
}

int input_of(struct input *input, int rank)
{
    const struct stdin_to *to = input->to;
    const int is_it = to->kind == STDIN_ALL || (to->kind == STDIN_RANK && to->rank == rank);

    return is_it && !input->away ? -1 : input_null(input);
}

void input_check(const struct input *input, int world)
{
    if (input->to->kind == STDIN_RANK && input->to->rank >= world)
        log_line(LOG_WARN, "--stdin=%d: the ranks are 0 to %d; nobody reads standard input",
                 input->to->rank, world - 1);
}

void input_close(struct input *input)
{
    if (input->null >= 0)
        close(input->null);
    input->null = -1;
}
