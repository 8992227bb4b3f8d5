/* SPDX-License-Identifier: Apache-2.0 */
/* sysfs.c - reads the first line of a file. */
#include "launcher/placement/sysfs.h"

#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int sysfs_line(char *text, size_t size, const char *format, ...)
{
    char path[PATH_MAX];
    va_list args;
    ssize_t got;
    int fd;

    va_start(args, format);
    vsnprintf(path, sizeof path, format, args);
    va_end(args);
    *text = '\0';
    if ((fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
        return -1;
    got = read(fd, text, size - 1);
    close(fd);
    text[got > 0 ? got : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    return *text ? 0 : -1;
}
