/* SPDX-License-Identifier: Apache-2.0 */
/* print_version.h - prints what --version prints. */
#ifndef LAUNCHER_UTIL_PRINT_VERSION_H
#define LAUNCHER_UTIL_PRINT_VERSION_H

/* Prints "ctrun 0.2.0" and, on further lines, what this build is and what it can do on this
 * machine.  Programs may compare the first line. */
void print_version(const char *program);

#endif
