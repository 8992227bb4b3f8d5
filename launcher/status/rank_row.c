/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/status/rank_row.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* ---- Writing ------------------------------------------------------------------------ */

static void add(struct text *to, const char *word)
{
    text_add(to, word, strlen(word));
}

/* Limits a value to INT64_MAX, since a worker may have written any value to its control page. */
static uint64_t bounded(uint64_t value)
{
    return value < INT64_MAX ? value : INT64_MAX;
}

void status_print_node(struct text *to, const char *host, int pid, int restarts)
{
    text_print(to, "node\t%d\t%d\t", pid, restarts);
    status_add_plain(to, host, strlen(host));
    add(to, "\n");
}

void status_print_stuck(struct text *to, const char *sentence, const struct stuck_row *stuck)
{
    const char *const texts[] = { stuck->waiting, stuck->awaited, stuck->call, stuck->where,
                                  stuck->culprits };

    add(to, "stuck\t");
    status_add_plain(to, sentence, strlen(sentence));
    text_print(to, "\t%s\t%" PRId64 "\t%d", stuck->key, stuck->waited_ms, stuck->unnamed);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        add(to, "\t");
        status_add_plain(to, texts[i], strlen(texts[i]));
    }
    add(to, "\n");
}

void status_print_rank(struct text *to, const struct rank_row *row)
{
    text_print(to, "rank\t%d\t%d\t%d\t%c\t%d\t%" PRIu64 "\t%" PRIu64 "\t%" PRId64 "\t%" PRId64 "\t",
               row->rank, row->local_rank, row->pid, row->process, (int)row->stage,
               bounded(row->calls), bounded(row->bytes), row->in_calls_ms, row->cpu_ms);
    add(to, row->now);
    add(to, "\t");
    add(to, row->out);
    add(to, "\t");
    add(to, row->err);
    add(to, "\n");
}

/* Returns the length of the escape sequence at `at`, which is a CSI sequence "ESC [ ... letter", an
 * OSC sequence "ESC ] ... BEL", or ESC and one more byte. */
static size_t escape_bytes(const char *at, size_t left)
{
    size_t i = 2;

    if (left < 2)
        return left;
    if (at[1] == '[')
        while (i < left && (at[i] < '@' || at[i] > '~'))
            i++;
    else if (at[1] == ']')
        while (i < left && at[i] != '\a')
            i++;
    else
        return 2;
    return i < left ? i + 1 : left;
}

void status_add_plain(struct text *to, const char *bytes, size_t size)
{
    struct text plain = { 0 };

    for (size_t i = 0; i < size; i++) {
        const unsigned char c = (unsigned char)bytes[i];

        if (c == 27)
            i += escape_bytes(bytes + i, size - i) - 1;
        else if (c == '\t')
            text_add(&plain, " ", 1);
        else if (c >= ' ' && c != 127)
            text_add(&plain, bytes + i, 1);
    }
    text_add_utf8(to, plain.data, plain.used);
    free(plain.data);
}

/* ---- Reading ------------------------------------------------------------------------ */

/* Returns the next field, or NULL if there are no more fields. */
static char *field(char **at)
{
    char *const begin = *at;
    char *const tab = begin ? strchr(begin, '\t') : NULL;

    if (tab)
        *tab = '\0';
    *at = tab ? tab + 1 : NULL;
    return begin;
}

static int whole(char **at, int64_t most, int64_t *value)
{
    const char *const text = field(at);
    char *end;

    if (!text || *text < '0' || *text > '9')
        return -1;
    errno = 0;
    *value = strtoll(text, &end, 10);
    return *end || errno || *value > most ? -1 : 0;
}

static int number(char **at, int most, int *value)
{
    int64_t wide;

    if (whole(at, most, &wide) < 0)
        return -1;
    *value = (int)wide;
    return 0;
}

static int read_rank(char *at, struct rank_row *row)
{
    int64_t calls, bytes;
    const char *process;
    int stage;

    if (number(&at, INT_MAX, &row->rank) < 0 || number(&at, INT_MAX, &row->local_rank) < 0
        || number(&at, INT_MAX, &row->pid) < 0 || !(process = field(&at)) || strlen(process) != 1
        || number(&at, STAGES - 1, &stage) < 0 || whole(&at, INT64_MAX, &calls) < 0
        || whole(&at, INT64_MAX, &bytes) < 0 || whole(&at, INT64_MAX, &row->in_calls_ms) < 0
        || whole(&at, INT64_MAX, &row->cpu_ms) < 0)
        return -1;
    row->process = *process;
    row->stage = (enum rank_stage)stage;
    row->calls = (uint64_t)calls;
    row->bytes = (uint64_t)bytes;
    row->now = field(&at);
    row->out = field(&at);
    row->err = field(&at);
    return row->err && !at ? 0 : -1;
}

/* Reads the parts of a message, which a line may lack. */
static int read_stuck(char *at, struct stuck_row *stuck)
{
    const char **const texts[] = { &stuck->waiting, &stuck->awaited, &stuck->call, &stuck->where,
                                   &stuck->culprits };

    *stuck = (struct stuck_row){ "", "", "", "", "", "", 0, 0 };
    if (!at)
        return 0;
    stuck->key = field(&at);
    if (whole(&at, INT64_MAX, &stuck->waited_ms) < 0 || number(&at, INT_MAX, &stuck->unnamed) < 0)
        return -1;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (!(*texts[i] = field(&at)))
            return -1;
    return at ? -1 : 0;
}

int status_line_read(char *line, struct status_line *what)
{
    const char *const kind = field(&line);

    *what = (struct status_line){ .kind = LINE_RANK };
    if (!strcmp(kind, "rank"))
        return read_rank(line, &what->row);
    what->kind = !strcmp(kind, "node") ? LINE_NODE : LINE_STUCK;
    if (what->kind == LINE_NODE
        && (number(&line, INT_MAX, &what->pid) < 0 || number(&line, INT_MAX, &what->restarts) < 0))
        return -1;
    what->text = field(&line);
    if (what->kind == LINE_NODE)
        return what->text && !line ? 0 : -1;
    return what->text && !strcmp(kind, "stuck") ? read_stuck(line, &what->stuck) : -1;
}
