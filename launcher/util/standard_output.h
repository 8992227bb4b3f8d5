/* SPDX-License-Identifier: Apache-2.0 */
/* standard_output.h - what a command printed has reached its reader, or the command failed. */
#ifndef LAUNCHER_UTIL_STANDARD_OUTPUT_H
#define LAUNCHER_UTIL_STANDARD_OUTPUT_H

/* For the end of a command that prints: closes stdout.  Returns `code`; if something could not be
 * written a sentence of `program` is on stderr, and it is 1. */
int standard_output_close(const char *program, int code);

#endif
