/* SPDX-License-Identifier: Apache-2.0 */
/* log_file.h - a file to which ctrun writes the output of workers. */
#ifndef LAUNCHER_STDIO_LOG_FILE_H
#define LAUNCHER_STDIO_LOG_FILE_H

#include <stddef.h>

struct log_file {
    int fd; /* -1 if the file is not open */
    char *path;
    int complained;
};

/* Creates the file, or empties an existing file.  Returns 0, or -1 after an error is logged. */
int log_file_open(struct log_file *file, const char *path);

/* Writes to the file.  Bytes that can't be written are lost.  Only the first such error is
 * logged. */
void log_file_write(struct log_file *file, const char *data, size_t size);

/* Reads the last bytes of the file, at most `size`.  Returns the number of bytes. */
size_t log_file_tail(const struct log_file *file, char *data, size_t size);

/* Closes the file, but remembers the path for log_file_tail(). */
void log_file_close(struct log_file *file);
void log_file_free(struct log_file *file);

#endif
