/* SPDX-License-Identifier: Apache-2.0 */
/* log_file.h - a file that gets workers' output. */
#ifndef LAUNCHER_STDIO_LOG_FILE_H
#define LAUNCHER_STDIO_LOG_FILE_H

#include <stddef.h>

struct log_file {
    int fd; /* -1: not open */
    char *path;
    int complained;
};

/* Makes the file, or empties it.  0; -1: the error is logged. */
int log_file_open(struct log_file *file, const char *path);

/* Writes to the file.  What can't be written is lost; the first such error is logged. */
void log_file_write(struct log_file *file, const char *data, size_t size);

/* Reads the last bytes of the file, at most size.  Gives their number. */
size_t log_file_tail(const struct log_file *file, char *data, size_t size);

/* Closes the file, but keeps the path for log_file_tail(). */
void log_file_close(struct log_file *file);
void log_file_free(struct log_file *file);

#endif
