/* SPDX-License-Identifier: Apache-2.0 */
/* error_file.h - reads the error that a worker wrote to its TORCHELASTIC_ERROR_FILE before it
 * failed.
 *
 * PyTorch's @record writes a Python exception there, in one of two shapes:
 *   {"message": {"message": M, "extraInfo": {"py_callstack": T, "timestamp": S}}}
 *   {"message": M, "timestamp": S}
 * ctrun loads jansson to parse the file.  Without jansson, ctrun shows the first bytes of the file
 * unchanged. */
#ifndef LAUNCHER_REPORT_ERROR_FILE_H
#define LAUNCHER_REPORT_ERROR_FILE_H

#include <stddef.h>

struct error_json {
    enum { ERROR_ABSENT, ERROR_BROKEN, ERROR_READ, ERROR_RAW } state;
    char *text; /* traceback or message if ERROR_READ, first bytes if ERROR_RAW, or NULL */
    int structured;
    double timestamp; /* time in the file, in seconds since 1970; 0 if the file has none */
    /* Modification time of the file, in seconds since 1970.  This time has fractions, while
     * PyTorch's timestamp has whole seconds. */
    double written;
    char *bytes; /* contents of the file, followed by a 0 byte; NULL if there is no file */
    size_t size;
    char why[256]; /* reason for ERROR_BROKEN or ERROR_RAW */
};

/* Reads the file at `path`.  The state is ERROR_ABSENT if there is no file or the file is empty.
 * The caller must call error_json_free() in all cases. */
void error_json_read(struct error_json *error, const char *path);
void error_json_free(struct error_json *error);

/* Copies the error to the file `to`.  If the error is structured, adds message.errorCode to the
 * copy.  Returns 0, or -1 with errno set. */
int error_json_copy(const struct error_json *error, const char *to, int exit_code);

/* Writes an error of ctrun itself to the file `to`, in the structured shape without a traceback.
 * Returns 0, or -1 with errno set. */
int error_json_write(const char *to, const char *message);

#endif
