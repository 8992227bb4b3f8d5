/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/status/board.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/status/rank_row.h"
#include "runtime/util/clock.h"
#include "runtime/util/json_writer.h"

#define ANSWER_MOST (64 << 20) /* bytes of a node's answer */
#define SAID_LINES 20

int board_set_nodes(struct board *board, int nodes)
{
    struct board_node *grown;

    for (int i = nodes; i < board->nodes; i++) {
        free(board->node[i].shown.data);
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
    free(board->node);
    *board = (struct board){ .nodes = 0 };
}

/* ---- Lines --------------------------------------------------------------------------- */

/* Calls visit for each line, until it returns -1; then that is the result.  -1 also: a line can't
 * be read. */
static int each_line(const struct text *text, int (*visit)(void *arg, const struct status_line *),
                     void *arg)
{
    char *copy = malloc(text->used + 1), *next;
    int result = copy ? 0 : -1;

    if (!copy)
        return -1;
    memcpy(copy, text->used ? text->data : "", text->used);
    copy[text->used] = '\0';
    for (char *line = copy; line < copy + text->used && result == 0; line = next) {
        struct status_line what;

        next = strchr(line, '\n');
        if (!next) {
            result = -1;
            break;
        }
        *next++ = '\0';
        result = status_line_read(line, &what);
        if (result == 0)
            result = visit(arg, &what);
    }
    free(copy);
    return result;
}

/* One line of the node itself, then its sentences, then its ranks. */
static int accept_line(void *arg, const struct status_line *line)
{
    int *const last = arg;

    if ((*last < 0) != (line->kind == LINE_NODE) || (int)line->kind < *last)
        return -1;
    *last = line->kind;
    return 0;
}

static int is_answer(const struct text *text)
{
    int last = -1;

    return each_line(text, accept_line, &last) == 0 && last >= 0;
}

int board_take(struct board *board, int node, unsigned look, int is_last, const char *text,
               size_t size)
{
    struct board_node *from;
    struct text before;

    if (node < 0 || node >= board->nodes)
        return 0; /* of another round */
    from = &board->node[node];
    if (look != from->coming_look)
        from->coming.used = 0; /* the rest of that answer will not come */
    from->coming_look = look;
    if (from->coming.used + size <= ANSWER_MOST)
        text_add(&from->coming, text, size);
    if (!is_last)
        return 0;
    if (!is_answer(&from->coming)) {
        from->coming.used = 0;
        return -1;
    }
    before = from->shown;
    from->shown = from->coming;
    from->coming = before;
    from->coming.used = 0;
    from->answered_ms = clock_ms();
    from->look = look;
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

/* "a<LINE_END>b" -> ["a","b"] */
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

static void json_seconds(struct json_text *json, const char *name, int64_t ms)
{
    json_thousandths(json, name, ms);
}

/* The members of a node stand before its ranks; its sentences lie between the two. */
struct node_writer {
    struct json_text *json;
    int part; /* 0: its own members, 1: in "stuck", 2: in "ranks" */
};

static void begin_part(struct node_writer *writer, int part)
{
    while (writer->part < part) {
        if (writer->part > 0)
            json_close(writer->json, ']');
        json_open(writer->json, ++writer->part == 1 ? "stuck" : "ranks", '[');
    }
}

static int json_line(void *arg, const struct status_line *line)
{
    struct node_writer *const writer = arg;
    struct json_text *const json = writer->json;
    const struct rank_row *const row = &line->row;
    const char process[] = { row->process, '\0' };

    if (line->kind == LINE_NODE) {
        json_string(json, "host", line->text);
        json_number(json, "pid", line->pid);
        json_number(json, "restarts", line->restarts);
        return 0;
    }
    begin_part(writer, line->kind == LINE_STUCK ? 1 : 2);
    if (line->kind == LINE_STUCK) {
        json_string(json, NULL, line->text);
        return 0;
    }
    json_open(json, NULL, '{');
    json_number(json, "rank", row->rank);
    json_number(json, "local_rank", row->local_rank);
    json_number(json, "pid", row->pid);
    json_string(json, "state", rank_stage_name(row->stage));
    json_string(json, "process", process);
    json_number(json, "calls", (long)row->calls);
    json_number(json, "bytes", (long)row->bytes);
    json_seconds(json, "in_calls_s", row->in_calls_ms);
    json_seconds(json, "cpu_s", row->cpu_ms);
    json_string(json, "now", row->now);
    json_lines(json, "stdout", row->out, LINE_END);
    json_lines(json, "stderr", row->err, LINE_END);
    json_close(json, '}');
    return 0;
}

/* Its sentences, and the last words of a rank that failed; not the rest of torchrun's report. */
static int is_shown(const char *line, size_t size)
{
    static const char sentence[] = "ctrun: ", last_words[] = "    | ";

    return (size >= strlen(sentence) && !memcmp(line, sentence, strlen(sentence)))
           || (size >= strlen(last_words) && !memcmp(line, last_words, strlen(last_words)));
}

/* Who may read the page by the kernel's word needs no token to hand on. */
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
    json_open(&json, "nodes", '[');
    for (int i = 0; i < board->nodes; i++) {
        const struct board_node *const node = &board->node[i];
        struct node_writer writer = { &json, 0 };

        json_open(&json, NULL, '{');
        json_number(&json, "node", i);
        if (node->answered_ms)
            json_seconds(&json, "answered_s_ago", clock_ms() - node->answered_ms);
        else
            json_null(&json, "answered_s_ago");
        each_line(&node->shown, json_line, &writer);
        begin_part(&writer, 2);
        json_close(&json, ']');
        json_close(&json, '}');
    }
    json_close(&json, ']');
    json_close(&json, '}');
}

/* ---- Prometheus ---------------------------------------------------------------------- */

/* Prometheus wants all lines of a metric behind each other, so each goes over all ranks. */
struct metric {
    const char *name, *type, *help;
    double (*of)(const struct rank_row *row);
};

static double calls_of(const struct rank_row *row)
{
    return (double)row->calls;
}

static double bytes_of(const struct rank_row *row)
{
    return (double)row->bytes;
}

static double in_calls_of(const struct rank_row *row)
{
    return (double)row->in_calls_ms / 1000;
}

static double cpu_of(const struct rank_row *row)
{
    return (double)row->cpu_ms / 1000;
}

static const struct metric metrics[] = {
    { "ctrun_rank_calls_total", "counter", "Calls of the rank since the last start.", calls_of },
    { "ctrun_rank_bytes_total", "counter",
      "Elements of those calls as the rank gave them, in bytes.", bytes_of },
    { "ctrun_rank_in_calls_seconds_total", "counter",
      "Time that the rank was in calls, by ten looks a second.", in_calls_of },
    { "ctrun_rank_cpu_seconds_total", "counter", "Processor time of the rank's process.", cpu_of },
};

struct metric_writer {
    struct text *to;
    const struct metric *metric; /* NULL: the state */
    int node;
    char host[256]; /* as the value of a label */
};

/* Prometheus refuses all of a text with a byte that is no UTF-8. */
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

static int metric_line(void *arg, const struct status_line *line)
{
    struct metric_writer *const writer = arg;
    const struct rank_row *const row = &line->row;

    if (line->kind == LINE_NODE)
        label_value(line->text, writer->host, sizeof writer->host);
    if (line->kind != LINE_RANK)
        return 0;
    if (writer->metric)
        text_print(writer->to, "%s{rank=\"%d\",node=\"%d\",host=\"%s\"} %.17g\n",
                   writer->metric->name, row->rank, writer->node, writer->host,
                   writer->metric->of(row));
    else
        text_print(writer->to,
                   "ctrun_rank_state{rank=\"%d\",node=\"%d\",host=\"%s\",state=\"%s\"} 1\n",
                   row->rank, writer->node, writer->host, rank_stage_name(row->stage));
    return 0;
}

static void print_head(struct text *to, const char *name, const char *type, const char *help)
{
    text_print(to, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void print_ranks(const struct board *board, const struct metric *metric, struct text *to)
{
    for (int i = 0; i < board->nodes; i++)
        each_line(&board->node[i].shown, metric_line,
                  &(struct metric_writer){ .to = to, .metric = metric, .node = i });
}

static int count_stuck(void *arg, const struct status_line *line)
{
    *(int *)arg += line->kind == LINE_STUCK;
    return 0;
}

/* How many sentences say that ranks of the node are stuck. */
static int stuck_on(const struct board_node *node)
{
    int count = 0;

    each_line(&node->shown, count_stuck, &count);
    return count;
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
    print_head(to, "ctrun_node_stuck", "gauge", "Verdicts that ranks of the node are stuck.");
    for (int i = 0; i < board->nodes; i++)
        text_print(to, "ctrun_node_stuck{node=\"%d\"} %d\n", i, stuck_on(&board->node[i]));
    print_head(to, "ctrun_rank_state", "gauge", "1 of the state that the rank is in.");
    print_ranks(board, NULL, to);
    for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++) {
        print_head(to, metrics[i].name, metrics[i].type, metrics[i].help);
        print_ranks(board, &metrics[i], to);
    }
}
