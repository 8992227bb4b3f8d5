/* SPDX-License-Identifier: Apache-2.0 */
/* trace_line.h - reads the trace of a node or rank, line by line.
 *
 * Each line is an event in JSON that begins with the members that trace_json.c writes, with any
 * values.  A line is refused, with the file's name and the line's number, if it does not begin so,
 * if its "ts" is not a time, or if it is a part without the five members of its clock.  So lines
 * that were read can be copied into another file, and that file is JSON, too. */
#ifndef LAUNCHER_TRACE_TRACE_LINE_H
#define LAUNCHER_TRACE_TRACE_LINE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "runtime/util/error.h"

struct token {
    const char *at; /* NULL: the line has no such token */
    size_t size;
};

/* Tokens are valid until the next line is read. */
struct trace_line {
    struct token text; /* "{...}"; none: the trace and the file are at their end */
    /* ctrun_part is the end of what a node did in a round; clock: its clock's name, or null */
    struct token clock;
    struct token moved;  /* the text to replace when the part moves: a time, error or label */
    const char *instead; /* the text for it; NULL: the later time */
    int64_t process, ns; /* ns: that time */
    uint64_t wall_ns;    /* of ctrun_part: CLOCK_REALTIME less its clock */
    int clocks;          /* number of its members that describe the clock */
};

struct trace_lines {
    const char *path;
    FILE *file;
    char data[64 << 10]; /* a line: ours have some hundred bytes; another file may be one line */
    size_t number;       /* number of the last line that was read */
    int more;            /* 1: another event follows; 0: none; -1: not known */
};

/* Opens a file, which must be a regular file, since it is read twice. */
ct_status trace_lines_open(struct trace_lines *lines, const char *path);
ct_status trace_lines_next(struct trace_lines *lines, struct trace_line *line);
/* Fails with a message that names the file and the line. */
ct_status trace_lines_fail(const struct trace_lines *lines, const char *what);
void trace_lines_close(struct trace_lines *lines);

#endif
