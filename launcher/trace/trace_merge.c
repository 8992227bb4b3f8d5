/* SPDX-License-Identifier: Apache-2.0 */
/* trace_merge.c - see trace_merge.h. */
#include "launcher/trace/trace_merge.h"

#include <stdlib.h>
#include <string.h>

#include "launcher/trace/message_chains.h"
#include "launcher/trace/trace_line.h"
#include "runtime/trace/trace_json.h"
#include "runtime/util/json_writer.h"

/* What one node did in one round; its number is the same in no two files of a job.  In a file the
 * numbers rise from round to round. */
struct trace_process {
    int64_t number;
    int file;
};

/* One end of it. */
struct trace_arrow {
    int64_t id, ns;
    int file, begins;
};

/* ---- Reading ----------------------------------------------------------------- */

static ct_status add(struct text *array, const void *item, size_t size)
{
    const size_t before = array->used;

    text_add(array, item, size);
    return array->used > before ? CT_OK : ct_fail(CT_ERR_NOMEM, "out of memory for the arrows");
}

static void note_time(struct clock_line *clock, const struct trace_line *line)
{
    clock->first = clock->last < 0 || line->ns < clock->first ? line->ns : clock->first;
    if (line->ns + line->dur_ns > clock->last)
        clock->last = line->ns + line->dur_ns;
}

static ct_status note_line(struct trace_merge *merge, int file, const struct trace_line *line)
{
    const struct trace_arrow arrow = { line->id, line->ns, file, line->kind == LINE_SENT };
    struct clock_line *clock = &merge->clocks[file];

    if (line->ts.at)
        note_time(clock, line);
    if (line->kind == LINE_PART) {
        clock->wall = line->realtime_ns - line->monotonic_ns;
        clock->has_wall = 1;
    }
    return merge->count > 1 && (line->kind == LINE_SENT || line->kind == LINE_TAKEN)
               ? add(&merge->arrows, &arrow, sizeof arrow)
               : CT_OK;
}

static ct_status read_file(struct trace_merge *merge, int file)
{
    struct trace_process process = { -1, file };
    struct trace_lines lines;
    struct trace_line line;
    ct_status status = trace_lines_open(&lines, merge->paths[file]);

    merge->clocks[file].last = -1;
    while (status == CT_OK && (status = trace_lines_next(&lines, &line)) == CT_OK && line.kind) {
        merge->lines[file]++;
        if (line.process < process.number)
            status = trace_lines_fail(&lines, "the round of this line had ended before");
        else if (line.process > process.number) {
            process.number = line.process;
            status = add(&merge->processes, &process, sizeof process);
        }
        if (status == CT_OK)
            status = note_line(merge, file, &line);
    }
    trace_lines_close(&lines);
    return status;
}

static int by_number(const void *a, const void *b)
{
    const struct trace_process *one = a, *other = b;

    if (one->number != other->number)
        return one->number < other->number ? -1 : 1;
    return (one->file > other->file) - (one->file < other->file);
}

static ct_status check_processes(struct trace_merge *merge)
{
    struct trace_process *const first = (void *)merge->processes.data;
    const size_t count = merge->processes.used / sizeof *first;

    if (count > 0)
        qsort(first, count, sizeof *first, by_number);
    for (size_t i = 1; i < count; i++)
        if (first[i].number == first[i - 1].number && first[i].file != first[i - 1].file)
            return ct_fail(CT_ERR_INVALID, "%s and %s are both of node %ld in the same round",
                           merge->paths[first[i - 1].file], merge->paths[first[i].file],
                           (long)((first[i].number - 1) % TRACE_PROCESSES_OF_ROUND));
    return CT_OK;
}

/* ---- Clocks ------------------------------------------------------------------ */

static int by_id(const void *a, const void *b)
{
    const struct trace_arrow *one = a, *other = b;

    if (one->id != other->id)
        return one->id < other->id ? -1 : 1;
    return other->begins - one->begins;
}

/* Both ends of an arrow must be there, once each, and in different files. */
static ct_status pair_up(const struct text *ends, struct text *messages)
{
    const struct trace_arrow *const arrows = (const void *)ends->data;
    const size_t count = ends->used / sizeof *arrows;
    ct_status status = CT_OK;
    size_t same;

    for (size_t i = 0; i < count && status == CT_OK; i += same) {
        const struct trace_arrow *from = &arrows[i], *to = from + 1;

        for (same = 1; i + same < count && from[same].id == from->id;)
            same++;
        if (same == 2 && from->begins && !to->begins && from->file != to->file) {
            const struct clock_message m = { from->ns, to->ns, from->file, to->file };

            status = add(messages, &m, sizeof m);
        }
    }
    return status;
}

static ct_status align(struct trace_merge *merge)
{
    struct text *const arrows = &merge->arrows, messages = { 0 };
    ct_status status;

    if (arrows->used > 0)
        qsort(arrows->data, arrows->used / sizeof(struct trace_arrow), sizeof(struct trace_arrow),
              by_id);
    status = pair_up(arrows, &messages);
    free(arrows->data);
    *arrows = (struct text){ 0 };
    if (status == CT_OK) {
        merge->lacks_chains = message_chains_add(&messages, merge->count);
        merge->backwards_ns = clocks_align(merge->clocks, merge->count, (void *)messages.data,
                                           messages.used / sizeof(struct clock_message));
    }
    free(messages.data);
    if (merge->backwards_ns == CLOCKS_NO_MEMORY)
        return ct_fail(CT_ERR_NOMEM, "out of memory for %d clocks", merge->count);
    if (merge->backwards_ns == CLOCKS_FAR_APART)
        return ct_fail(CT_ERR_INVALID, "the times of these traces lie decades apart, so their "
                                       "nodes' clocks can't be made one");
    return status;
}

ct_status trace_merge_read(struct trace_merge *merge, char *const *paths, int count)
{
    ct_status status = CT_OK;

    *merge = (struct trace_merge){ .paths = paths,
                                   .count = count,
                                   .lines = calloc((size_t)count, sizeof *merge->lines),
                                   .clocks = calloc((size_t)count, sizeof *merge->clocks) };
    if (!merge->lines || !merge->clocks)
        return ct_fail(CT_ERR_NOMEM, "out of memory for %d files", count);
    for (int i = 0; i < count && status == CT_OK; i++)
        status = read_file(merge, i);
    if (status == CT_OK)
        status = check_processes(merge);
    return status == CT_OK ? align(merge) : status;
}

/* ---- Writing ----------------------------------------------------------------- */

struct writing {
    FILE *out;
    const char *gap; /* in front of the next line */
    struct text line;
};

static void put(struct writing *w)
{
    fputs(w->gap, w->out);
    fwrite(w->line.data, 1, w->line.used, w->out);
    w->gap = ",\n";
    w->line.used = 0;
}

/* Copies on from *from: all before `old`, then `words` in its place. */
static void add_instead(struct writing *w, const char **from, struct span old, const char *words)
{
    text_add(&w->line, *from, (size_t)(old.at - *from));
    text_add(&w->line, words, strlen(words));
    *from = old.at + old.size;
}

/* A slice ends where the next one may begin; an arrow ends in the last nanosecond of its slice. */
static void add_times(struct writing *w, const struct trace_line *line, const char **from,
                      const struct clock_line *clock)
{
    const int64_t begin = line->kind == LINE_TAKEN ? clock_line_map(clock, line->ns + 1) - 1
                                                   : clock_line_map(clock, line->ns);
    const int64_t end = clock_line_map(clock, line->ns + line->dur_ns);
    char digits[THOUSANDTHS_TEXT];

    thousandths_print(begin, digits);
    add_instead(w, from, line->ts, digits);
    thousandths_print(end > begin ? end - begin : 1, digits);
    if (line->dur.at)
        add_instead(w, from, line->dur, digits);
}

/* How far the clock may be wrong, for people: a label of the process. */
static void put_label(struct writing *w, const struct trace_line *line,
                      const struct clock_line *clock)
{
    char words[64] = "clock not aligned by messages", text[256];
    int size;

    if (clock->error_ns >= 0)
        snprintf(words, sizeof words, "clock +-%.1f us", (double)clock->error_ns / 1000);
    size = snprintf(text, sizeof text,
                    "{\"ph\":\"M\",\"name\":\"process_labels\",\"pid\":%lld,\"tid\":0,"
                    "\"args\":{\"labels\":\"%s\"}}",
                    (long long)line->process, words);
    text_add(&w->line, text, (size_t)size);
    put(w);
}

/* The same for programs, behind what both of its clocks had shown. */
static void add_clock(struct writing *w, const struct trace_line *line, const char **from,
                      const struct clock_line *clock)
{
    const struct span behind = { line->wall.at + line->wall.size, 0 };
    char text[128], error[32] = "null";

    if (clock->error_ns >= 0)
        snprintf(error, sizeof error, "%lld", (long long)clock->error_ns);
    snprintf(text, sizeof text, ",\"clock_offset_ns\":%lld,\"clock_error_ns\":%s",
             (long long)(clock_line_map(clock, clock->last) - clock->last), error);
    add_instead(w, from, behind, text);
}

static void write_line(struct writing *w, const struct trace_line *line,
                       const struct clock_line *clock)
{
    const struct span end = { line->text.at + line->text.size, 0 };
    const char *from = line->text.at;

    if (line->kind == LINE_PART && clock->error_ns != 0)
        put_label(w, line, clock);
    if (line->ts.at)
        add_times(w, line, &from, clock);
    if (line->kind == LINE_PART)
        add_clock(w, line, &from, clock);
    add_instead(w, &from, end, "");
    put(w);
}

static ct_status write_file(const struct trace_merge *merge, int file, struct writing *w)
{
    struct trace_lines lines;
    struct trace_line line;
    ct_status status = trace_lines_open(&lines, merge->paths[file]);

    for (size_t i = 0; i < merge->lines[file] && status == CT_OK; i++) {
        status = trace_lines_next(&lines, &line);
        if (status == CT_OK && line.kind == 0)
            status = trace_lines_fail(&lines, "it was longer before");
        if (status == CT_OK)
            write_line(w, &line, &merge->clocks[file]);
    }
    trace_lines_close(&lines);
    return status;
}

ct_status trace_merge_write(const struct trace_merge *merge, FILE *out)
{
    struct writing w = { .out = out, .gap = "\n" };
    ct_status status = CT_OK;

    fputs(TRACE_FILE_HEAD, out);
    for (int i = 0; i < merge->count && status == CT_OK && !ferror(out); i++)
        status = write_file(merge, i, &w);
    if (status == CT_OK)
        fputs("\n" TRACE_FILE_TAIL,
              out); /* else it is no whole trace, and must not look like one */
    free(w.line.data);
    return status;
}

void trace_merge_free(struct trace_merge *merge)
{
    free(merge->lines);
    free(merge->clocks);
    free(merge->arrows.data);
    free(merge->processes.data);
    *merge = (struct trace_merge){ 0 };
}
