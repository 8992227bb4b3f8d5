/* SPDX-License-Identifier: Apache-2.0 */
/* log_file.h - a file that workers' output goes to. */
#ifndef LAUNCHER_STDIO_LOG_FILE_H
#define LAUNCHER_STDIO_LOG_FILE_H

#include <stddef.h>

struct log_file {
    int fd; /* -1: not open */
    char *path;
    int complained;
};

/* New, or emptied.  0, or -1 and the error is logged. */
int log_file_open(struct log_file *file, const char *path);

/* What does not go in is lost to the file; that is said once. */
void log_file_write(struct log_file *file, const char *data, size_t size);

/* The last bytes of it, at most size; how many. */
size_t log_file_tail(const struct log_file *file, char *data, size_t size);

/* The path stays, for log_file_tail(). */
void log_file_close(struct log_file *file);
void log_file_free(struct log_file *file);

#endif
