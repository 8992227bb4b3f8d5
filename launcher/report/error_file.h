/* SPDX-License-Identifier: Apache-2.0 */
/* error_file.h - what a worker wrote to its TORCHELASTIC_ERROR_FILE before it failed.
 *
 * PyTorch's @record leaves a Python exception there.  Two shapes:
 *   {"message": {"message": M, "extraInfo": {"py_callstack": T, "timestamp": S}}}
 *   {"message": M, "timestamp": S}
 * jansson reads them, opened when there is a file to read; without it the file's
 * first bytes are shown as they are. */
#ifndef LAUNCHER_REPORT_ERROR_FILE_H
#define LAUNCHER_REPORT_ERROR_FILE_H

#include <stddef.h>

struct error_json {
    enum { ERROR_ABSENT, ERROR_BROKEN, ERROR_READ, ERROR_RAW } state;
    char *text; /* traceback, else message; the first bytes if ERROR_RAW; else NULL */
    int structured;
    double timestamp; /* seconds; 0: none */
    double written;   /* the file's own time, finer: PyTorch's are whole seconds */
    char *bytes;      /* the file, and a 0 behind it */
    size_t size;
    char why[256]; /* ERROR_BROKEN, ERROR_RAW */
};

/* ERROR_ABSENT if there is no file, or an empty one.  error_json_free() is owed always. */
void error_json_read(struct error_json *error, const char *path);
void error_json_free(struct error_json *error);

/* Copies it to the file `to`, a structured one with message.errorCode.  -1 with errno. */
int error_json_copy(const struct error_json *error, const char *to, int exit_code);

/* A record of our own: a structured one without a traceback. */
int error_json_write(const char *to, const char *message);

#endif
