/* SPDX-License-Identifier: Apache-2.0 */
/* sysfs.h - reads files of one line, as the kernel writes them. */
#ifndef LAUNCHER_PLACEMENT_SYSFS_H
#define LAUNCHER_PLACEMENT_SYSFS_H

#include <stddef.h>

/* Reads the first line of the file, without its end.  The path is made from format.  -1: the file
 * is missing or empty, and text is "". */
int sysfs_line(char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
