/* SPDX-License-Identifier: Apache-2.0 */
/* standard_output.h - makes a command fail if its output could not be written completely. */
#ifndef LAUNCHER_UTIL_STANDARD_OUTPUT_H
#define LAUNCHER_UTIL_STANDARD_OUTPUT_H

/* Closes stdout at the end of a command that prints.  Returns `code`, or 1 after it has printed an
 * error message of `program` on stderr if something could not be written. */
int standard_output_close(const char *program, int code);

#endif
