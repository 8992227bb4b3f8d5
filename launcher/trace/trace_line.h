/* SPDX-License-Identifier: Apache-2.0 */
/* trace_line.h - reads the trace of a node or rank, line by line.
 *
 * Each line is an event in JSON that begins with the members that trace_json.c writes, with any
 * values.  A line is refused if it begins differently, if its "ts" is not a time, or if it is a
 * part without the five members of its clock.  The error message contains the file's name and the
 * line's number.  So the lines that were accepted can be copied into another file, which is then
 * also valid JSON. */
#ifndef LAUNCHER_TRACE_TRACE_LINE_H
#define LAUNCHER_TRACE_TRACE_LINE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "runtime/util/error.h"

struct token {
    const char *at; /* NULL if the line has no such token */
    size_t size;
};

/* A line of the trace.  Its tokens are valid until the next line is read. */
struct trace_line {
    /* the event, "{...}"; text.at is NULL at the end of the trace and of the file */
    struct token text;
    /* for ctrun_part, the last event of a node's part of a round: the name of its clock as JSON, or
     * null */
    struct token clock;
    /* the text to replace if the part is moved to another clock: a time, an error or a label */
    struct token moved;
    /* the new text for `moved`; NULL if the new text is the time `ns` plus the shift */
    const char *instead;
    int64_t process, ns; /* ns: the event's "ts", in ns */
    uint64_t wall_ns;    /* for ctrun_part, CLOCK_REALTIME minus the part's clock, in ns */
    int clocks;          /* number of members in the line that describe the clock */
};

struct trace_lines {
    const char *path;
    FILE *file;
    /* the last line; lines of ctrun have a few hundred bytes, but another file may be a single long
     * line */
    char data[64 << 10];
    size_t number; /* number of the last line that was read */
    int more;      /* 1 if another event follows, 0 if not, -1 if not known */
};

/* Opens a file, which must be a regular file, since it is read twice. */
ct_status trace_lines_open(struct trace_lines *lines, const char *path);
ct_status trace_lines_next(struct trace_lines *lines, struct trace_line *line);
/* Fails with an error message that contains the file's name and the line's number. */
ct_status trace_lines_fail(const struct trace_lines *lines, const char *what);
void trace_lines_close(struct trace_lines *lines);

#endif
