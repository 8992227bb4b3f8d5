/* SPDX-License-Identifier: Apache-2.0 */
/* sysfs.h - files of one line, as the kernel writes them. */
#ifndef LAUNCHER_PLACEMENT_SYSFS_H
#define LAUNCHER_PLACEMENT_SYSFS_H

#include <stddef.h>

/* The first line of the file that the words name, without its end.  -1: the file is missing
 * or empty; then text is "". */
int sysfs_line(char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
