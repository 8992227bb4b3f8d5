/* SPDX-License-Identifier: Apache-2.0 */
/* progress_line.c - finds the width of a terminal.  It asks the terminal each time, since the size
 * of the window may have changed. */
#include "launcher/util/progress_line.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

int progress_room(int fd)
{
    const char *kind = getenv("TERM");
    struct winsize window = { 0 };

    if (!isatty(fd) || !kind || !strcmp(kind, "dumb"))
        return 0;
    /* script(1) and some other programs do not set the size of their terminal. */
    return ioctl(fd, TIOCGWINSZ, &window) == 0 && window.ws_col > 1 ? window.ws_col - 1 : 79;
}
