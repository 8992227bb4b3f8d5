/* SPDX-License-Identifier: Apache-2.0 */
/* standard_output.h - makes a command fail if its reader did not get all output. */
#ifndef LAUNCHER_UTIL_STANDARD_OUTPUT_H
#define LAUNCHER_UTIL_STANDARD_OUTPUT_H

/* Closes stdout at the end of a command that prints.  Returns `code`.  If something could not be
 * written, prints an error of `program` on stderr and returns 1. */
int standard_output_close(const char *program, int code);

#endif
