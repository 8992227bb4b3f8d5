/* SPDX-License-Identifier: Apache-2.0 */
/* trace_file.h - the JSON file of a trace: what ui.perfetto.dev and chrome://tracing open.
 *
 * The file is whole after each trace_file_settle(): the next events go over its last line,
 * and that is written again behind them.  So a writer that is killed leaves a file that
 * can be read, and who knows how far it was can go on with it. */
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
    _Atomic int64_t own_body, *body; /* where the next event goes; another process may look at it */
    struct text pending;
};

/* The name of one of several files: "run.json" and "node1" make "run.node1.json"; part "" is the
 * file itself.  Its length; -1: there is no room for it. */
int trace_file_name(char *path, size_t room, const char *name, const char *part);

/* A new file, which nobody else may write to meanwhile.  body: where to keep how far it is; NULL:
 * here. */
ct_status trace_file_open(struct trace_file *file, const char *path, _Atomic int64_t *body);
/* Goes on with the one that another process had begun. */
ct_status trace_file_resume(struct trace_file *file, const char *path, _Atomic int64_t *body);

/* Each event is one line: what is added to the text that this gives. */
struct text *trace_file_line(struct trace_file *file);

/* The first failure is said by ct_fail(); later ones are CT_OK, and nothing is written. */
ct_status trace_file_settle(struct trace_file *file);
void trace_file_close(struct trace_file *file); /* settled before; twice is fine */

#endif
