/* SPDX-License-Identifier: Apache-2.0 */
/* progress_line.h - finds the space for a progress line, which is rewritten in place on a terminal.
 */
#ifndef LAUNCHER_UTIL_PROGRESS_LINE_H
#define LAUNCHER_UTIL_PROGRESS_LINE_H

/* Returns how many characters a progress line may have.  A terminal breaks a longer line, and its
 * first part would not be rewritten.  Returns 0 if the descriptor is not a terminal, or if the
 * terminal can't rewrite a line (TERM=dumb). */
int progress_room(int fd);

#endif
