/* SPDX-License-Identifier: Apache-2.0 */
/* trace_file.h - the JSON file of a trace: what ui.perfetto.dev and chrome://tracing open.
 *
 * The file is complete after each trace_file_settle(): the next events overwrite its last line,
 * which is written again behind them.  So a writer that is killed leaves a readable file, and
 * another process that knows *body can continue it. */
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
    int fd; /* -1: closed, or a disk that is full */
    const char *path;
    _Atomic int64_t own_body, *body; /* offset of the next event; another process may read it */
    struct text pending;
};

/* The name of one of several files: "run.json" and "node1" make "run.node1.json"; part "" is the
 * file itself.  Returns the length; -1: `room` is too small. */
int trace_file_name(char *path, size_t room, const char *name, const char *part);

/* Creates the file and locks it against other writers.  body: where to keep the offset; NULL: in
 * *file. */
ct_status trace_file_open(struct trace_file *file, const char *path, _Atomic int64_t *body);
/* Continues a file that another process began. */
ct_status trace_file_resume(struct trace_file *file, const char *path, _Atomic int64_t *body);

/* Begins a line: the caller adds one event to the text. */
struct text *trace_file_line(struct trace_file *file);

/* Writes the lines.  The first failure is returned; later calls return CT_OK and write nothing. */
ct_status trace_file_settle(struct trace_file *file);
void trace_file_close(struct trace_file *file); /* call settle before; twice is fine */

#endif
