/* SPDX-License-Identifier: Apache-2.0 */
/* trace_file.h - the JSON file of a trace, which ui.perfetto.dev and chrome://tracing open.
 *
 * The file is valid JSON after each trace_file_settle().  The next events overwrite the closing
 * line, and a new closing line follows them.  So a writer that is killed leaves a readable file,
 * and another process that knows *body can continue the file. */
#ifndef RUNTIME_TRACE_TRACE_FILE_H
#define RUNTIME_TRACE_TRACE_FILE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/util/error.h"
#include "runtime/util/text.h"

#define TRACE_FILE_HEAD "{\"traceEvents\":["
#define TRACE_FILE_TAIL "],\"displayTimeUnit\":\"ns\"}\n"

struct trace_file {
    int fd; /* -1 after a close or a failed write */
    const char *path;
    _Atomic int64_t own_body, *body; /* *body: file offset of the next event, perhaps shared */
    struct text pending;             /* the lines that are not written yet */
};

/* Writes to `path` the name of one of several files: name "run.json" and part "node1" make
 * "run.node1.json"; with part "" the name stays unchanged.  Returns the length, or -1 if `room` is
 * too small. */
int trace_file_name(char *path, size_t room, const char *name, const char *part);

/* Creates the file and locks it against other writers.  The offset of the next event is kept in
 * *body, or in *file if body is NULL. */
ct_status trace_file_open(struct trace_file *file, const char *path, _Atomic int64_t *body);
/* Opens a file that another process began, to continue it at *body. */
ct_status trace_file_resume(struct trace_file *file, const char *path, _Atomic int64_t *body);

/* Begins a line.  Returns the text to which the caller must add one event. */
struct text *trace_file_line(struct trace_file *file);

/* Writes the pending lines and the closing line to the file.  If writing fails, closes the file and
 * returns the error; later calls return CT_OK and write nothing. */
ct_status trace_file_settle(struct trace_file *file);
/* Closes the file and drops all lines that are still pending.  May be called twice. */
void trace_file_close(struct trace_file *file);

#endif
