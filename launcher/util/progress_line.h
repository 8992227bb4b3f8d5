/* SPDX-License-Identifier: Apache-2.0 */
/* progress_line.h - the line on a terminal that is rewritten in place while something takes long.
 */
#ifndef LAUNCHER_UTIL_PROGRESS_LINE_H
#define LAUNCHER_UTIL_PROGRESS_LINE_H

/* How many characters it may have there: a longer one would break, and its first part stay behind.
 * 0: no such line, the descriptor is no terminal, or one that can't rewrite a line (TERM=dumb). */
int progress_room(int fd);

#endif
