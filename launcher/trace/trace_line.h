/* SPDX-License-Identifier: Apache-2.0 */
/* trace_line.h - reads the trace of a node or rank again, line by line.
 *
 * Whatever runtime/trace/trace_json.c does not write just so is refused with the file's name and
 * the line's number.  So what was read may be copied into another file, and that one is JSON too.
 */
#ifndef LAUNCHER_TRACE_TRACE_LINE_H
#define LAUNCHER_TRACE_TRACE_LINE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "runtime/util/error.h"

struct span {
    const char *at; /* NULL: the line has none */
    size_t size;
};

enum trace_line_kind {
    LINE_SLICE = 1,
    LINE_OPEN, /* a slice without an end */
    LINE_SENT, /* an arrow's begin, and its end */
    LINE_TAKEN,
    LINE_INSTANT,
    LINE_NAME, /* or a label of a process or a thread */
    LINE_PART  /* the end of what a node did in a round */
};

/* The spans and `text` are valid until the next line is read. */
struct trace_line {
    enum trace_line_kind kind;
    struct span text; /* "{...}" */
    struct span ts, dur, wall;
    int64_t process, ns, dur_ns, id;
    int64_t monotonic_ns, realtime_ns; /* of LINE_PART: at one moment */
};

struct trace_lines {
    const char *path;
    FILE *file;
    char *data;
    size_t number; /* the line that was read last */
    int more;      /* another event follows: 1, 0; -1: maybe */
};

/* Of a regular file, since it is read twice. */
ct_status trace_lines_open(struct trace_lines *lines, const char *path);
/* line->kind 0: the trace is over, and so is the file. */
ct_status trace_lines_next(struct trace_lines *lines, struct trace_line *line);
/* The sentence names the file and the line. */
ct_status trace_lines_fail(const struct trace_lines *lines, const char *what);
void trace_lines_close(struct trace_lines *lines);

#endif
