/* SPDX-License-Identifier: Apache-2.0 */
/* progress_line.h - a line on a terminal that is rewritten in place while something takes long. */
#ifndef LAUNCHER_UTIL_PROGRESS_LINE_H
#define LAUNCHER_UTIL_PROGRESS_LINE_H

/* Gives the largest number of characters in the line.  A longer line would break, and its first
 * part would stay.  0: the descriptor is not a terminal, or the terminal can't rewrite a line
 * (TERM=dumb). */
int progress_room(int fd);

#endif
