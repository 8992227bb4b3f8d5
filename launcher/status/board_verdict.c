/* SPDX-License-Identifier: Apache-2.0 */
/* board_verdict.c - makes one verdict over all nodes of those that the nodes have sent.
 *
 * A node knows why its own ranks wait, but of the ranks of other nodes only that they are not in
 * the call.  Here the verdicts about one call are joined, and the rows of the other nodes show what
 * the ranks do that are not in it. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/inspect/verdict_text.h"
#include "launcher/status/board.h"
#include "runtime/util/ranges.h"

#define MOST_CLAUSES 4    /* most clauses about ranks that are not in the call */
#define MOST_VERDICTS 256 /* most verdicts over all nodes */
#define RANKS_TEXT 16384  /* bytes of a list of ranks in a sentence */

/* The marks of a rank. */
enum { WAITS = 1, AWAITED = 2 };

/* A verdict in the making. */
struct judgement {
    struct board *board;
    const struct stuck_row *first;
    unsigned char *marks; /* [SNAPSHOT_RANKS] */
    struct text culprits;
    int64_t waited_ms;
    int clauses; /* number of clauses, of which the sentence has MOST_CLAUSES */
    int unnamed, waiting;
};

/* ---- Lists of ranks ------------------------------------------------------------------ */

/* Marks each rank of a list such as "0-2,5".  Returns their number.  A list from another node may
 * name the same ranks again and again, so the function ends after as many ranks as a job can have.
 */
static int mark_ranks(unsigned char *marks, const char *list, unsigned char mark)
{
    int count = 0;
    char *end;

    while (isdigit((unsigned char)*list) && count < SNAPSHOT_RANKS) {
        long rank = strtol(list, &end, 10), last = rank;

        if (*end == '-')
            last = strtol(end + 1, &end, 10);
        for (; rank <= last && rank < SNAPSHOT_RANKS; rank++, count++)
            marks[rank] |= mark;
        list = end + (*end == ',');
    }
    return count;
}

static int waits(const void *marks, int rank)
{
    return ((const unsigned char *)marks)[rank] == WAITS;
}

static int is_awaited(const void *marks, int rank)
{
    return ((const unsigned char *)marks)[rank] == AWAITED;
}

/* Adds "rank 3" or "ranks 0-2,5": the ranks that have exactly this mark. */
static void put_ranks(struct text *to, const unsigned char *marks, int mark)
{
    char list[RANKS_TEXT];
    const int count = ranges_print(0, SNAPSHOT_RANKS, mark == WAITS ? waits : is_awaited, marks,
                                   list, sizeof list);

    text_print(to, count == 1 ? "rank " : "ranks ");
    text_add(to, list, strlen(list));
}

/* ---- Ranks of other nodes ------------------------------------------------------------- */

static int is_problem(enum rank_stage stage)
{
    return stage == STAGE_BLOCKS || stage == STAGE_LEFT || stage == STAGE_FAILED
           || stage == STAGE_STOPPED;
}

/* True if the row shows the rank in the call of the verdict, as it may be there since a moment. */
static int is_in_it(const struct judgement *j, const struct rank_row *row)
{
    const char *const group = strstr(j->first->call, " of group ");
    const size_t length = group ? (size_t)(group - j->first->call) : strlen(j->first->call);

    return *j->first->key && !strncmp(row->now, j->first->call, length) && row->now[length] == ' ';
}

static void put_semicolon(struct judgement *j)
{
    if (j->culprits.used > 0)
        text_add(&j->culprits, "; ", 2);
}

/* Returns 1 if the sentence has room for another clause, which the caller must add. */
static int begin_clause(struct judgement *j)
{
    if (j->clauses++ >= MOST_CLAUSES)
        return 0;
    put_semicolon(j);
    return 1;
}

/* True if the line is about the call of the verdict. */
static int is_about_it(const struct judgement *j, const struct status_line *line)
{
    return line->kind == LINE_STUCK
           && (&line->stuck == j->first
               || (*j->first->key && !strcmp(line->stuck.key, j->first->key)));
}

/* True if the node itself says why its ranks are not in the call. */
static int says_why(const struct judgement *j, const struct board_node *node)
{
    for (int i = 0; i < node->lines; i++)
        if (is_about_it(j, &node->line[i]) && *node->line[i].stuck.culprits)
            return 1;
    return 0;
}

/* Adds what the ranks of `same` do: `count` ranks of the node that do the same as the rank of
 * `line`. */
static void put_ranks_like(struct judgement *j, const struct board_node *node,
                           const struct status_line *line, const unsigned char *same, int count)
{
    const struct rank_row *const row = &line->row;

    put_ranks(&j->culprits, same, AWAITED);
    text_print(&j->culprits, " (");
    if (count == 1)
        text_print(&j->culprits, "pid %d ", row->pid);
    text_print(&j->culprits, "on %.64s", node->line[0].text);
    if (*row->now && *row->now != '(')
        text_print(&j->culprits, ": %.200s", row->now);
    text_print(&j->culprits, ") %s not %s %s", count > 1 ? "have" : "has",
               *j->first->key ? "joined" : "made the call that matches", j->first->call);
}

/* Adds what the awaited ranks of this node do that do the same as the rank of `line`, and takes
 * their marks. */
static void say_ranks_like(struct judgement *j, struct board_node *node, struct status_line *line)
{
    unsigned char *const same = calloc(SNAPSHOT_RANKS, 1);
    int count = 0;

    for (int i = 0; i < node->lines && same; i++) {
        struct status_line *const other = &node->line[i];

        if (other->kind != LINE_RANK || other->row.rank >= SNAPSHOT_RANKS
            || j->marks[other->row.rank] != AWAITED || strcmp(other->row.now, line->row.now) != 0)
            continue;
        j->marks[other->row.rank] = 0;
        same[other->row.rank] = AWAITED;
        other->is_awaited = 1;
        count++;
    }
    if (count > 0)
        put_ranks_like(j, node, line, same, count);
    free(same);
}

/* Looks at each awaited rank.  Ranks without a row stay marked. */
static void look_at_awaited(struct judgement *j)
{
    for (int i = 0; i < j->board->nodes; i++) {
        struct board_node *const node = &j->board->node[i];
        const int is_said = says_why(j, node);

        for (int k = 0; k < node->lines; k++) {
            struct status_line *const line = &node->line[k];
            const int rank = line->row.rank;

            if (line->kind != LINE_RANK || rank >= SNAPSHOT_RANKS || j->marks[rank] != AWAITED)
                continue;
            if (is_problem(line->row.stage) && is_said)
                j->marks[rank] = 0;
            else if (is_in_it(j, &line->row))
                j->marks[rank] = WAITS;
            else if (begin_clause(j))
                say_ranks_like(j, node, line);
            else {
                line->is_awaited = 1;
                j->marks[rank] = 0;
            }
        }
    }
}

enum rank_stage board_stage(const struct status_line *line)
{
    const enum rank_stage stage = line->row.stage;

    if (!line->is_awaited)
        return stage;
    return stage == STAGE_RUNS || stage == STAGE_STARTS ? STAGE_BLOCKS
           : stage == STAGE_DONE                        ? STAGE_LEFT
                                                        : stage;
}

/* ---- Verdicts ------------------------------------------------------------------------ */

/* Takes the parts that a node has sent about the call. */
static void judgement_take(struct judgement *j, const struct stuck_row *stuck)
{
    const int before = j->waiting;

    j->waiting += mark_ranks(j->marks, stuck->waiting, WAITS);
    mark_ranks(j->marks, stuck->awaited, AWAITED);
    j->waited_ms = stuck->waited_ms > j->waited_ms ? stuck->waited_ms : j->waited_ms;
    j->unnamed = before == 0 ? stuck->unnamed : j->unnamed - (j->waiting - before);
    if (!*stuck->culprits
        || (j->culprits.used > 0
            && memmem(j->culprits.data, j->culprits.used, stuck->culprits,
                      strlen(stuck->culprits))))
        return; /* another node has said the same */
    if (begin_clause(j))
        text_add(&j->culprits, stuck->culprits, strlen(stuck->culprits));
}

/* Adds a verdict, which takes the text. */
static void add_verdict(struct board *board, struct text *text, int is_stuck)
{
    struct board_verdict *const grown =
        text->used == 0 ? NULL
                        : realloc(board->verdict, (size_t)(board->verdicts + 1) * sizeof *grown);

    if (!grown) {
        free(text->data);
        return;
    }
    board->verdict = grown;
    grown[board->verdicts++] = (struct board_verdict){ is_stuck, *text };
}

/* Writes the sentence: who is not in the call, then who waits. */
static void judgement_end(struct judgement *j)
{
    struct text text = { 0 };
    size_t begins;
    char time[32];
    int waits = 0, unknown = 0, is_stuck;

    for (int rank = 0; rank < SNAPSHOT_RANKS; rank++) {
        if (j->marks[rank] & WAITS)
            j->marks[rank] = WAITS;
        waits += j->marks[rank] == WAITS;
        unknown += j->marks[rank] == AWAITED;
    }
    if (j->clauses > MOST_CLAUSES)
        text_print(&j->culprits, "; %d more like these", j->clauses - MOST_CLAUSES);
    if (unknown > 0) {
        put_semicolon(j);
        text_print(&j->culprits, "the node of ");
        put_ranks(&j->culprits, j->marks, AWAITED);
        text_print(&j->culprits, " has not answered");
    }
    if (j->unnamed > 0 && j->culprits.used == 0)
        text_print(&j->culprits, "%d other %s of the group %s not in the call", j->unnamed,
                   j->unnamed > 1 ? "ranks" : "rank", j->unnamed > 1 ? "are" : "is");
    is_stuck = j->culprits.used > 0;
    describe_time((uint64_t)j->waited_ms * 1000000, time, sizeof time);
    text_add(&text, j->culprits.data, j->culprits.used);
    text_print(&text, is_stuck ? ". " : "no rank is missing: ");
    begins = text.used;
    put_ranks(&text, j->marks, WAITS);
    if (is_stuck && text.used > begins)
        text.data[begins] = 'R';
    text_print(&text, is_stuck ? " %s waited %s in %s" : " %s been for %s in %s",
               waits > 1 ? "have" : "has", time, j->first->call);
    if (*j->first->where)
        text_print(&text, " at %s", j->first->where);
    add_verdict(j->board, &text, is_stuck);
}

/* Makes the verdict of the line, and of the lines of later nodes about the same call. */
static void judge_line(struct board *board, int node, const struct status_line *line,
                       unsigned char *marks)
{
    struct judgement j = { .board = board, .first = &line->stuck, .marks = marks };
    struct text text = { 0 };

    memset(marks, 0, SNAPSHOT_RANKS);
    if (!*line->stuck.awaited && line->stuck.unnamed == 0) { /* the node knows it all */
        text_add(&text, line->text, strlen(line->text));
        add_verdict(board, &text,
                    *line->stuck.culprits || !*line->stuck.call
                        || !strcmp(line->stuck.key, "init"));
        return;
    }
    for (int i = node; i < board->nodes; i++)
        for (int k = 0; k < board->node[i].lines; k++) {
            const struct status_line *const other = &board->node[i].line[k];

            if (is_about_it(&j, other))
                judgement_take(&j, &other->stuck);
        }
    look_at_awaited(&j);
    judgement_end(&j);
    free(j.culprits.data);
}

/* True if an earlier node has sent a verdict about the same call. */
static int is_judged(const struct board *board, int node, const struct status_line *line)
{
    for (int i = 0; i < node && *line->stuck.key; i++)
        for (int k = 0; k < board->node[i].lines; k++)
            if (board->node[i].line[k].kind == LINE_STUCK
                && !strcmp(board->node[i].line[k].stuck.key, line->stuck.key))
                return 1;
    return 0;
}

void board_drop_verdicts(struct board *board)
{
    for (int i = 0; i < board->verdicts; i++)
        free(board->verdict[i].text.data);
    free(board->verdict);
    board->verdict = NULL;
    board->verdicts = 0;
}

void board_judge(struct board *board)
{
    unsigned char *const marks = calloc(SNAPSHOT_RANKS, 1);

    board_drop_verdicts(board);
    for (int i = 0; i < board->nodes; i++)
        for (int k = 0; k < board->node[i].lines; k++)
            board->node[i].line[k].is_awaited = 0;
    for (int i = 0; i < board->nodes && marks; i++)
        for (int k = 0; k < board->node[i].lines && board->verdicts < MOST_VERDICTS; k++) {
            const struct status_line *const line = &board->node[i].line[k];

            if (line->kind == LINE_STUCK && !is_judged(board, i, line))
                judge_line(board, i, line, marks);
        }
    free(marks);
}
