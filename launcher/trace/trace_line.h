/* SPDX-License-Identifier: Apache-2.0 */
/* trace_line.h - reads the trace of a node or rank again, line by line.
 *
 * Each line is an event in JSON that begins with the members of trace_json.c, whatever their values
 * are.  Any other line is refused with the file's name and the line's number; so are a "ts" that is
 * not a time, and a part that does not have the five members of its clock.  So what was read may be
 * copied into another file, and that one is JSON too. */
#ifndef LAUNCHER_TRACE_TRACE_LINE_H
#define LAUNCHER_TRACE_TRACE_LINE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "runtime/util/error.h"

struct token {
    const char *at; /* NULL: the line has none */
    size_t size;
};

/* Tokens are valid until the next line is read. */
struct trace_line {
    struct token text; /* "{...}"; none: the trace is over, and so is the file */
    /* of ctrun_part, the end of what a node did in a round: its name, or null */
    struct token clock;
    struct token moved;  /* what changes when the part is moved: a time, an error, or a label */
    const char *instead; /* stands there then; NULL: the later time */
    int64_t process, ns; /* ns: that time */
    uint64_t wall_ns;    /* of ctrun_part: CLOCK_REALTIME less that clock */
    int clocks;          /* how many of its members tell the clock */
};

struct trace_lines {
    const char *path;
    FILE *file;
    char data[64 << 10]; /* a line: ours have some hundred bytes, so no other file is read whole */
    size_t number;       /* the line that was read last */
    int more;            /* another event follows: 1, 0; -1: maybe */
};

/* Of a regular file, since it is read twice. */
ct_status trace_lines_open(struct trace_lines *lines, const char *path);
ct_status trace_lines_next(struct trace_lines *lines, struct trace_line *line);
/* The sentence names the file and the line. */
ct_status trace_lines_fail(const struct trace_lines *lines, const char *what);
void trace_lines_close(struct trace_lines *lines);

#endif
