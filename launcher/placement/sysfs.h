/* SPDX-License-Identifier: Apache-2.0 */
/* sysfs.h - reads one-line files, such as those of sysfs. */
#ifndef LAUNCHER_PLACEMENT_SYSFS_H
#define LAUNCHER_PLACEMENT_SYSFS_H

#include <stddef.h>

/* Reads the first line of a file, without its newline.  `format` and its arguments are the path, as
 * for printf().  Returns 0, or -1 if the file is missing or empty, and then text is "". */
int sysfs_line(char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
