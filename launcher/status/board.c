/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/status/board.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/status/rank_row.h"
#include "runtime/util/clock.h"
#include "runtime/util/json_writer.h"

#define ANSWER_MOST (64 << 20)          /* most bytes of a node's answer */
#define MOST_LINES (4 * SNAPSHOT_LOCAL) /* most lines of a node's answer */
#define SAID_LINES 20

int board_set_nodes(struct board *board, int nodes)
{
    struct board_node *grown;

    for (int i = nodes; i < board->nodes; i++) {
        free(board->node[i].shown.data);
        free(board->node[i].line);
        free(board->node[i].coming.data);
    }
    if (nodes < board->nodes)
        board->nodes = nodes;
    grown = nodes > board->nodes ? realloc(board->node, (size_t)nodes * sizeof *grown) : NULL;
    if (!grown)
        return nodes > board->nodes ? -1 : 0;
    board->node = grown;
    while (board->nodes < nodes)
        board->node[board->nodes++] = (struct board_node){ .answered_ms = 0 };
    return 0;
}

void board_free(struct board *board)
{
    board_set_nodes(board, 0);
    board_drop_verdicts(board);
    free(board->node);
    *board = (struct board){ .nodes = 0 };
}

/* ---- Lines --------------------------------------------------------------------------- */

/* Splits an answer into lines, which are the line of the node, then its messages about stuck ranks,
 * then its ranks.  Returns the number of lines, or -1 if the text is not a valid answer, has more
 * than MOST_LINES lines, or memory runs out.  The caller frees *lines in both cases. */
static int read_lines(struct text *answer, struct status_line **lines)
{
    const size_t size = answer->used;
    struct status_line *line = NULL, *grown;
    char *at, *end;
    int count = 0;

    text_add(answer, "", 1);
    if (answer->used == size)
        return -1;
    for (at = answer->data; (end = strchr(at, '\n')); at = end + 1) {
        *end = '\0';
        if (count == MOST_LINES)
            break;
        grown = realloc(line, (size_t)(count + 1) * sizeof *line);
        if (!grown)
            break;
        line = grown;
        if (status_line_read(at, &line[count]) < 0
            || (count == 0) != (line[count].kind == LINE_NODE)
            || (count > 0 && line[count].kind < line[count - 1].kind))
            break;
        count++;
    }
    *lines = line;
    return count > 0 && at == answer->data + size ? count : -1;
}

int board_take(struct board *board, int node, unsigned look, int is_last, const char *text,
               size_t size)
{
    struct status_line *line = NULL;
    struct board_node *from;
    int lines;

    if (node < 0 || node >= board->nodes)
        return 0; /* the answer is from a node of another round */
    from = &board->node[node];
    if (look != from->coming_look)
        from->coming.used = 0; /* the other pieces of the earlier answer will not come */
    from->coming_look = look;
    if (from->coming.used + size <= ANSWER_MOST)
        text_add(&from->coming, text, size);
    if (!is_last)
        return 0;
    lines = read_lines(&from->coming, &line);
    if (lines < 0) {
        free(line);
        from->coming.used = 0;
        return -1;
    }
    free(from->shown.data);
    free(from->line);
    *from = (struct board_node){
        .shown = from->coming, .line = line, .lines = lines, .answered_ms = clock_ms(), .look = look
    };
    return 0;
}

int board_answers(const struct board *board)
{
    int answers = 0;

    for (int i = 0; i < board->nodes; i++)
        answers += board->node[i].answered_ms && board->node[i].look == board->look;
    return answers;
}

/* ---- JSON ---------------------------------------------------------------------------- */

/* Writes the lines of a text, which `end` separates, as a JSON array such as ["a","b"]. */
static void json_lines(struct json_text *json, const char *name, const char *text, char end)
{
    json_open(json, name, '[');
    while (*text) {
        const char *const stop = strchr(text, end);
        const size_t length = stop ? (size_t)(stop - text) : strlen(text);

        json_bytes(json, NULL, text, length);
        text += length + (stop != NULL);
    }
    json_close(json, ']');
}

static void board_json_rank(struct json_text *json, const struct status_line *line)
{
    const struct rank_row *const row = &line->row;
    const char process[] = { row->process, '\0' };

    json_open(json, NULL, '{');
    json_number(json, "rank", row->rank);
    json_number(json, "local_rank", row->local_rank);
    json_number(json, "pid", row->pid);
    json_string(json, "state", rank_stage_name(board_stage(line)));
    json_string(json, "process", process);
    json_number(json, "calls", (long)row->calls);
    json_number(json, "bytes", (long)row->bytes);
    json_thousandths(json, "in_calls_s", row->in_calls_ms);
    json_thousandths(json, "cpu_s", row->cpu_ms);
    json_string(json, "now", row->now);
    json_lines(json, "stdout", row->out, LINE_END);
    json_lines(json, "stderr", row->err, LINE_END);
    json_close(json, '}');
}

/* Writes a node.  The lines of its answer are in the order that read_lines() requires. */
static void json_node(struct json_text *json, const struct board_node *node)
{
    if (node->lines > 0) {
        json_thousandths(json, "answered_s_ago", clock_ms() - node->answered_ms);
        json_string(json, "host", node->line[0].text);
        json_number(json, "pid", node->line[0].pid);
        json_number(json, "restarts", node->line[0].restarts);
    } else
        json_null(json, "answered_s_ago");
    json_open(json, "ranks", '[');
    for (int i = 1; i < node->lines; i++)
        if (node->line[i].kind == LINE_RANK)
            board_json_rank(json, &node->line[i]);
    json_close(json, ']');
}

/* True if the page shows this line of ctrun's log.  The page shows ctrun's own messages and the
 * last lines of a failed rank, but not the rest of torchrun's report. */
static int is_shown(const char *line, size_t size)
{
    static const char sentence[] = "ctrun: ", last_words[] = "    | ";

    return (size >= strlen(sentence) && !memcmp(line, sentence, strlen(sentence)))
           || (size >= strlen(last_words) && !memcmp(line, last_words, strlen(last_words)));
}

/* Returns the size of the line up to the page's token, so that the page does not show the token.
 * Readers that the kernel identifies need no token, and could pass a token on to others. */
static size_t without_token(const char *line, size_t size)
{
    const char *const token = memmem(line, size, "?token=", 7);

    return token ? (size_t)(token - line) : size;
}

static void json_said(struct json_text *json, const struct text *said)
{
    struct text shown = { 0 };
    size_t from = 0;

    for (size_t i = 0, begin = 0; i < said->used; i++)
        if (said->data[i] == '\n') {
            if (is_shown(said->data + begin, i - begin)) {
                text_add(&shown, said->data + begin, without_token(said->data + begin, i - begin));
                text_add(&shown, "\n", 1);
            }
            begin = i + 1;
        }
    if (shown.used > 0) {
        from = shown.used;
        for (int lines = 0; from > 0; from--)
            if (shown.data[from - 1] == '\n' && ++lines > SAID_LINES)
                break;
    }
    text_add(&shown, "", 1);
    json_lines(json, "said", shown.data ? shown.data + from : "", '\n');
    free(shown.data);
}

void board_json(const struct board *board, const struct job_facts *facts, struct text *to)
{
    struct json_text json = { to, "", 0 };

    json_open(&json, NULL, '{');
    json_string(&json, "job", facts->job);
    json_string(&json, "program", facts->program);
    json_string(&json, "state", facts->state);
    json_string(&json, "version", facts->version);
    json_number(&json, "world", facts->world);
    json_number(&json, "restarts", facts->restarts);
    json_thousandths(&json, "started", (int64_t)(facts->started_s * 1000));
    json_thousandths(&json, "time", clock_ns(CLOCK_REALTIME) / 1000000);
    json_said(&json, facts->said);
    json_open(&json, "verdicts", '[');
    for (int i = 0; i < board->verdicts; i++) {
        json_open(&json, NULL, '{');
        json_bool(&json, "stuck", board->verdict[i].is_stuck);
        json_bytes(&json, "text", board->verdict[i].text.data, board->verdict[i].text.used);
        json_close(&json, '}');
    }
    json_close(&json, ']');
    json_open(&json, "nodes", '[');
    for (int i = 0; i < board->nodes; i++) {
        json_open(&json, NULL, '{');
        json_number(&json, "node", i);
        json_node(&json, &board->node[i]);
        json_close(&json, '}');
    }
    json_close(&json, ']');
    json_close(&json, '}');
}

/* ---- Prometheus ---------------------------------------------------------------------- */

/* Writes the value of a label as valid UTF-8, since Prometheus refuses a whole text if one byte of
 * it is not UTF-8. */
static void label_value(const char *from, char *value, size_t size)
{
    struct text plain = { 0 };
    size_t used = 0;

    text_add_utf8(&plain, from, strlen(from));
    for (size_t i = 0, length; i < plain.used; i += length) {
        length = json_character((const unsigned char *)plain.data + i, plain.used - i);
        if (length == 0 || used + length + 2 > size)
            break;
        if ((unsigned char)plain.data[i] < ' ')
            continue;
        if (plain.data[i] == '"' || plain.data[i] == '\\')
            value[used++] = '\\';
        memcpy(value + used, plain.data + i, length);
        used += length;
    }
    value[used] = '\0';
    free(plain.data);
}

static void print_head(struct text *to, const char *name, const char *type, const char *help)
{
    text_print(to, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* Returns the number of verdicts that name ranks for which others wait. */
static int stuck_verdicts(const struct board *board)
{
    int count = 0;

    for (int i = 0; i < board->verdicts; i++)
        count += board->verdict[i].is_stuck;
    return count;
}

/* The metrics of a rank. */
enum { STATE, CALLS, BYTES, IN_CALLS, CPU, METRICS };

static const struct {
    const char *name, *type, *help;
} metrics[METRICS] = {
    [STATE] = { "ctrun_rank_state", "gauge", "1 of the state that the rank is in." },
    [CALLS] = { "ctrun_rank_calls_total", "counter", "Calls of the rank since the last start." },
    [BYTES] = { "ctrun_rank_bytes_total", "counter",
                "Elements of those calls as the rank gave them, in bytes." },
    [IN_CALLS] = { "ctrun_rank_in_calls_seconds_total", "counter",
                   "Time that the rank was in calls, by ten looks a second." },
    [CPU] = { "ctrun_rank_cpu_seconds_total", "counter", "Processor time of the rank's process." },
};

static double board_value_of(const struct rank_row *row, int metric)
{
    const double values[METRICS] = { [STATE] = 1,
                                     [CALLS] = (double)row->calls,
                                     [BYTES] = (double)row->bytes,
                                     [IN_CALLS] = (double)row->in_calls_ms / 1000,
                                     [CPU] = (double)row->cpu_ms / 1000 };

    return values[metric];
}

static void print_ranks(const struct board_node *from, int node, int metric, struct text *to)
{
    char host[256] = "", state[64] = "";

    for (int i = 0; i < from->lines; i++) {
        const struct rank_row *const row = &from->line[i].row;

        if (from->line[i].kind == LINE_NODE)
            label_value(from->line[i].text, host, sizeof host);
        if (from->line[i].kind != LINE_RANK)
            continue;
        if (metric == STATE)
            snprintf(state, sizeof state, ",state=\"%s\"",
                     rank_stage_name(board_stage(&from->line[i])));
        text_print(to, "%s{rank=\"%d\",node=\"%d\",host=\"%s\"%s} %.17g\n", metrics[metric].name,
                   row->rank, node, host, state, board_value_of(row, metric));
    }
}

void board_metrics(const struct board *board, const struct job_facts *facts, struct text *to)
{
    char job[512], program[512];

    label_value(facts->job, job, sizeof job);
    label_value(facts->program, program, sizeof program);
    print_head(to, "ctrun_job_info", "gauge", "The job.");
    text_print(to, "ctrun_job_info{job=\"%s\",program=\"%s\",version=\"%s\"} 1\n", job, program,
               facts->version);
    print_head(to, "ctrun_world_size", "gauge", "Ranks of the job.");
    text_print(to, "ctrun_world_size %d\n", facts->world);
    print_head(to, "ctrun_restarts_total", "counter", "Restarts so far.");
    text_print(to, "ctrun_restarts_total %d\n", facts->restarts);
    print_head(to, "ctrun_start_time_seconds", "gauge", "When the job began.");
    text_print(to, "ctrun_start_time_seconds %.3f\n", facts->started_s);
    print_head(to, "ctrun_node_answer_age_seconds", "gauge",
               "How old is what the node's ctrun said last.");
    for (int i = 0; i < board->nodes; i++)
        if (board->node[i].answered_ms)
            text_print(to, "ctrun_node_answer_age_seconds{node=\"%d\"} %.3f\n", i,
                       (double)(clock_ms() - board->node[i].answered_ms) / 1000);
    print_head(to, "ctrun_stuck", "gauge", "Verdicts that name ranks for which others wait.");
    text_print(to, "ctrun_stuck %d\n", stuck_verdicts(board));
    for (int metric = 0; metric < METRICS; metric++) { /* lines of a metric must be together */
        print_head(to, metrics[metric].name, metrics[metric].type, metrics[metric].help);
        for (int i = 0; i < board->nodes; i++)
            print_ranks(&board->node[i], i, metric, to);
    }
}
