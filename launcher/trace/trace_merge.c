/* SPDX-License-Identifier: Apache-2.0 */
/* trace_merge.c - moves the parts of several traces to one clock, and writes one trace. */
#include "launcher/trace/trace_merge.h"

#include <stdlib.h>
#include <string.h>

#include "launcher/trace/trace_line.h"
#include "runtime/trace/trace_json.h"
#include "runtime/util/json_writer.h"

/* A part of a trace, with the events of a node in a round.  No two files of a job have parts with
 * the same number.  The numbers in a file rise from round to round, but the successor of a
 * coordinator starts again at the first number. */
struct merge_part {
    int64_t number;
    int file;
    int ended; /* number of parts that end before this part in the file */
    /* the name of the part's clock as JSON; "" if the part has no end */
    char clock[2 * TRACE_CLOCK_TEXT];
    uint64_t wall_ns;  /* CLOCK_REALTIME minus the part's clock, in ns */
    uint64_t shift_ns; /* ns that must be added to get the time by the clock of the first file */
};

/* ---- Reading ----------------------------------------------------------------- */

static struct merge_part *merge_add_part(struct trace_merge *merge, const struct merge_part *key)
{
    struct merge_part *grown = realloc(merge->parts, (merge->part_count + 1) * sizeof *grown);

    if (!grown)
        return NULL;
    merge->parts = grown;
    grown[merge->part_count] = *key;
    return &grown[merge->part_count++];
}

static ct_status merge_note_line(struct trace_merge *merge, const struct merge_part *key,
                                 const struct trace_lines *lines, const struct trace_line *line)
{
    struct merge_part *part = merge->parts ? &merge->parts[merge->part_count - 1] : NULL;
    const int goes_on = part && part->file == key->file && part->ended == key->ended;

    if (goes_on && key->number < part->number)
        return trace_lines_fail(lines, "the round of this line had ended before");
    if (!goes_on || key->number > part->number)
        part = merge_add_part(merge, key);
    if (!part)
        return ct_fail(CT_ERR_NOMEM, "out of memory for %zu rounds", merge->part_count);
    if (line->clock.at) {
        snprintf(part->clock, sizeof part->clock, "%.*s", (int)line->clock.size, line->clock.at);
        part->wall_ns = line->wall_ns;
    }
    return CT_OK;
}

static int by_number(const void *a, const void *b)
{
    const struct merge_part *one = a, *other = b;

    if (one->number != other->number)
        return one->number < other->number ? -1 : 1;
    if (one->file != other->file)
        return one->file < other->file ? -1 : 1;
    return (one->ended > other->ended) - (one->ended < other->ended);
}

static ct_status merge_check(const struct trace_merge *merge)
{
    struct merge_part *const parts = merge->parts;

    qsort(parts, merge->part_count, sizeof *parts, by_number);
    for (size_t i = 1; i < merge->part_count; i++)
        if (parts[i].number == parts[i - 1].number && parts[i].file != parts[i - 1].file)
            return ct_fail(CT_ERR_INVALID, "%s and %s are both of node %ld in the same round",
                           merge->paths[parts[i - 1].file], merge->paths[parts[i].file],
                           (long)((parts[i].number - 1) % TRACE_PROCESSES_OF_ROUND));
    return CT_OK;
}

/* Returns 1 if two parts are on the same clock.  Clocks without a name ("null") are the same only
 * within a file. */
static int is_same_clock(const struct merge_part *a, const struct merge_part *b)
{
    return !strcmp(a->clock, b->clock) && (a->file == b->file || strcmp(a->clock, "null") != 0);
}

/* Computes the shift of each part to the clock of the first file.  A part without a known clock
 * gets no shift.  Parts on the same clock get the same shift. */
static void merge_shift(const struct trace_merge *merge)
{
    const struct merge_part *const end = merge->parts + merge->part_count, *base = merge->parts;

    while (base < end && (base->file != 0 || !*base->clock))
        base++;
    for (struct merge_part *part = merge->parts; part < end && base < end; part++) {
        const struct merge_part *same = merge->parts;

        if (!*part->clock || is_same_clock(base, part))
            continue;
        while (!is_same_clock(same, part))
            same++;
        part->shift_ns = same < part ? same->shift_ns : part->wall_ns - base->wall_ns;
    }
}

/* ---- Writing ----------------------------------------------------------------- */

/* Writes a line.  If the line moves to another clock, its clock error is replaced by null, since
 * the error of wall clocks is not known. */
static void merge_write_line(FILE *out, const struct trace_line *line, uint64_t shift_ns)
{
    const char *from = line->text.at, *const end = from + line->text.size;
    char digits[THOUSANDTHS_TEXT];

    if (line->clock.at) {
        const char *const behind = line->clock.at + line->clock.size;

        fprintf(out, "%.*s,\"clock_shift_ns\":%lld", (int)(behind - from), from,
                (long long)shift_ns);
        from = behind;
    }
    if (shift_ns != 0 && line->moved.at && line->moved.at >= from) {
        thousandths_print((int64_t)((uint64_t)line->ns + shift_ns), digits);
        fprintf(out, "%.*s%s", (int)(line->moved.at - from), from,
                line->instead ? line->instead : digits);
        from = line->moved.at + line->moved.size;
    }
    fwrite(from, 1, (size_t)(end - from), out);
}

/* ---- Reading and writing ----------------------------------------------------- */

/* If `out` is NULL, reads a file and notes its parts.  Otherwise reads the file again and writes
 * its lines to `out`.  Rounds that were added to the file in the meantime are left out. */
static ct_status merge_file(struct trace_merge *merge, int file, FILE *out, const char **gap)
{
    struct trace_lines lines;
    struct trace_line line;
    int ended = 0;
    ct_status status = trace_lines_open(&lines, merge->paths[file]);

    while (status == CT_OK && (status = trace_lines_next(&lines, &line)) == CT_OK && line.text.at) {
        const struct merge_part key = { .number = line.process, .file = file, .ended = ended };
        const struct merge_part *part;

        ended += line.clock.at != NULL;
        if (!out) {
            status = merge_note_line(merge, &key, &lines, &line);
            continue;
        }
        if (!merge->parts
            || !(part = bsearch(&key, merge->parts, merge->part_count, sizeof key, by_number)))
            break;
        fputs(*gap, out);
        merge_write_line(out, &line, part->shift_ns);
        *gap = ",\n";
        if (ferror(out))
            break; /* errno has the reason, and further reading would change it */
    }
    trace_lines_close(&lines);
    return status;
}

ct_status trace_merge_read(struct trace_merge *merge, char *const *paths, int count)
{
    ct_status status = CT_OK;

    *merge = (struct trace_merge){ .paths = paths, .count = count };
    for (int i = 0; i < count && status == CT_OK; i++)
        status = merge_file(merge, i, NULL, NULL);
    if (status == CT_OK && merge->parts && (status = merge_check(merge)) == CT_OK)
        merge_shift(merge);
    return status;
}

int trace_merge_shifts(const struct trace_merge *merge, int file)
{
    for (size_t i = 0; i < merge->part_count; i++)
        if (merge->parts[i].file == file && merge->parts[i].shift_ns != 0)
            return 1;
    return 0;
}

ct_status trace_merge_write(struct trace_merge *merge, FILE *out)
{
    const char *gap = "\n";
    ct_status status = CT_OK;

    fputs(TRACE_FILE_HEAD, out);
    for (int i = 0; i < merge->count && status == CT_OK && !ferror(out); i++)
        status = merge_file(merge, i, out, &gap);
    if (status == CT_OK) /* after an error, the trace must not look complete */
        fputs("\n" TRACE_FILE_TAIL, out);
    return status;
}

void trace_merge_free(struct trace_merge *merge)
{
    free(merge->parts);
}
