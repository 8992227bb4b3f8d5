/* SPDX-License-Identifier: Apache-2.0 */
/* progress_line.h - finds the room for a line on a terminal that is rewritten in place during a
 * long operation. */
#ifndef LAUNCHER_UTIL_PROGRESS_LINE_H
#define LAUNCHER_UTIL_PROGRESS_LINE_H

/* Returns the largest number of characters in the line.  The terminal would break a longer line,
 * and could not rewrite its first part.  Returns 0 if the descriptor is not a terminal, or if the
 * terminal can't rewrite a line (TERM=dumb). */
int progress_room(int fd);

#endif
