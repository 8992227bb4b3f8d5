/* SPDX-License-Identifier: Apache-2.0 */
/* error_file.h - reads what a worker wrote to its TORCHELASTIC_ERROR_FILE before it failed.
 *
 * PyTorch's @record writes a Python exception there, in one of two shapes:
 *   {"message": {"message": M, "extraInfo": {"py_callstack": T, "timestamp": S}}}
 *   {"message": M, "timestamp": S}
 * jansson, loaded when there is a file to read, parses them.  Without jansson, the first bytes of
 * the file are shown as they are. */
#ifndef LAUNCHER_REPORT_ERROR_FILE_H
#define LAUNCHER_REPORT_ERROR_FILE_H

#include <stddef.h>

struct error_json {
    enum { ERROR_ABSENT, ERROR_BROKEN, ERROR_READ, ERROR_RAW } state;
    char *text; /* traceback, else message; the first bytes if ERROR_RAW; else NULL */
    int structured;
    double timestamp; /* seconds; 0: not in the file */
    double written;   /* time of the file, which is finer: PyTorch writes whole seconds */
    char *bytes;      /* the file, and a 0 after it */
    size_t size;
    char why[256]; /* ERROR_BROKEN, ERROR_RAW */
};

/* ERROR_ABSENT: there is no file, or it is empty.  error_json_free() must always follow. */
void error_json_read(struct error_json *error, const char *path);
void error_json_free(struct error_json *error);

/* Copies the error to the file `to`, and adds message.errorCode to a structured one.  -1: see
 * errno. */
int error_json_copy(const struct error_json *error, const char *to, int exit_code);

/* Writes an error of ctrun itself: structured, without a traceback. */
int error_json_write(const char *to, const char *message);

#endif
