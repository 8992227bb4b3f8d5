/* SPDX-License-Identifier: Apache-2.0 */
/* rank_row.h - the ranks of a node on the status page, as text.  The text may come from another
 * ctrun.
 *
 *     node  pid restarts host
 *     stuck message [key waited-ms unnamed waiting awaited call where culprits]
 *                                      any number of these lines; the parts of the message
 *     rank  rank local-rank pid process-state stage calls bytes in-calls-ms cpu-ms now out err
 *
 * Each entry is a line, with a tab between fields.  Strings are UTF-8.  The only control character
 * in a string is LINE_END, which separates lines of output. */
#ifndef LAUNCHER_STATUS_RANK_ROW_H
#define LAUNCHER_STATUS_RANK_ROW_H

#include <stdint.h>

#include "launcher/inspect/rank_stage.h"
#include "runtime/util/text.h"

#define LINE_END '\x1e'

/* A verdict on the ranks of a node (struct verdict_parts). */
struct stuck_row {
    const char *key, *waiting, *awaited, *call, *where, *culprits; /* all "" if not known */
    int64_t waited_ms;
    int unnamed;
};

struct rank_row {
    int rank, local_rank, pid;
    char process; /* state letter as in ps; '-' if there is no such process */
    enum rank_stage stage;
    uint64_t calls, bytes; /* number of calls in this round, and their bytes */
    int64_t in_calls_ms, cpu_ms;
    const char *now, *out, *err; /* what the rank does; last lines of its stdout, stderr */
};

/* A line of the text, split into its fields. */
struct status_line {
    enum { LINE_NODE, LINE_STUCK, LINE_RANK } kind; /* an answer has the lines in this order */
    const char *text;                               /* host of LINE_NODE, message of LINE_STUCK */
    int pid, restarts;
    int is_awaited; /* set by board_judge(): ranks of another node wait for the rank of this row */
    struct stuck_row stuck;
    struct rank_row row;
};

void status_print_node(struct text *to, const char *host, int pid, int restarts);
void status_print_stuck(struct text *to, const char *sentence, const struct stuck_row *stuck);
void status_print_rank(struct text *to, const struct rank_row *row);

/* Splits a line that has no newline.  The strings in *what point into the line.  Returns 0, or -1
 * if the line is not valid. */
int status_line_read(char *line, struct status_line *what);

/* Adds the output of a program as a string of the text.  Removes escape sequences of terminals. */
void status_add_plain(struct text *to, const char *bytes, size_t size);

#endif
