/* SPDX-License-Identifier: Apache-2.0 */
/* table.c - the results in Markdown and in JSON: a row for each size, and the geometric means of
 * the ratios by ranks, size and operation, the rows in which ours is furthest behind, and tails. */
#include "bench/peers_report/results.h"

#include <math.h>
#include <string.h>

/* The classes in which there are targets. */
static const struct {
    const char *words;
    size_t least, most;
} classes[] = {
    { "all sizes", 0, (size_t)-1 },           { "up to 1 KiB", 0, 1024 },
    { "to 16 KiB", 1025, (16 << 10) - 1 },    { "16 to 256 KiB", 16 << 10, 256 << 10 },
    { "to 1 MiB", (256 << 10) + 1, 1 << 20 }, { "more", (1 << 20) + 1, (size_t)-1 },
};
enum { CLASSES = sizeof classes / sizeof *classes };

/* ---- Rows ------------------------------------------------------------------------ */

static void put_bytes(size_t bytes)
{
    static const char *const units[] = { "", " KiB", " MiB", " GiB" };
    int unit = 0;

    for (; unit < 3 && bytes && bytes % 1024 == 0; unit++)
        bytes /= 1024;
    printf("%zu%s", bytes, units[unit]);
}

static void put_us(double us)
{
    if (isnan(us))
        printf(" - |");
    else
        printf(" %.*f |", us < 10 ? 2 : us < 100 ? 1 : 0, us);
}

static void put_ratio(double ratio)
{
    if (isnan(ratio))
        printf(" - |");
    else
        printf(" %.*f |", ratio < 0.1 ? 3 : ratio < 10 ? 2 : 1, ratio);
}

static void put_row(const struct results *results, const struct row *row)
{
    const enum library best = best_peer(row);
    char shape[24];

    name_shape(row, shape);
    printf("| %s | %s | ", row->operation, shape);
    put_bytes(row->bytes);
    printf("%s |", says_little(results, row) ? " *" : "");
    for (int i = 0; i < LIBRARIES; i++)
        if (results->present[i] && i != LIMIT)
            put_us(row->times[i].p50);
    printf(" %s |", best == LIBRARIES ? "-" : library_names[best].label);
    for (int ours = 0; ours < GLOO; ours++)
        if (results->present[ours])
            put_ratio(ratio_of(row, ours));
    if (results->present[LIMIT]) {
        put_us(row->times[LIMIT].p50);
        for (int ours = 0; ours < GLOO; ours++)
            if (results->present[ours])
                put_ratio(row->times[ours].p50 / row->times[LIMIT].p50);
    }
    printf("\n");
}

/* A heading for each of ours, such as "best / libct". */
static int put_headings(const struct results *results, const char *before, const char *after)
{
    int columns = 0;

    for (int ours = 0; ours < GLOO; ours++)
        if (results->present[ours]) {
            printf(" %s%s%s |", before, library_names[ours].key, after);
            columns++;
        }
    return columns;
}

static void put_rows(const struct results *results)
{
    int columns = 4;

    printf("| operation | ranks | bytes |");
    for (int i = 0; i < LIBRARIES; i++)
        if (results->present[i] && i != LIMIT) {
            printf(" %s |", library_names[i].label);
            columns++;
        }
    printf(" best peer |");
    columns += put_headings(results, "best / ", "");
    if (results->present[LIMIT]) {
        printf(" limit |");
        columns += 1 + put_headings(results, "", " / limit");
    }
    printf("\n|");
    for (int i = 0; i < columns; i++)
        printf("---|");
    printf("\n");
    for (int i = 0; i < results->row_count; i++)
        put_row(results, &results->rows[i]);
}

/* ---- Means ------------------------------------------------------------------------ */

/* Of the ratios of the rows that are meant; NULL or 0: of all. */
struct choice {
    enum library ours;
    const char *operation;
    int hosts, ranks;
    size_t least, most;
};

static int chosen(const struct choice *choice, const struct row *row)
{
    return (!choice->operation || !strcmp(choice->operation, row->operation))
           && (!choice->hosts || choice->hosts == row->hosts)
           && (!choice->ranks || choice->ranks == row->ranks) && row->bytes >= choice->least
           && row->bytes <= choice->most;
}

static double geometric_mean(const struct results *results, const struct choice *choice)
{
    double sum = 0;
    int n = 0;

    for (int i = 0; i < results->row_count; i++) {
        const struct row *row = &results->rows[i];
        const double ratio = ratio_of(row, choice->ours);

        if (!chosen(choice, row) || says_little(results, row) || isnan(ratio))
            continue;
        sum += log(ratio);
        n++;
    }
    return n > 0 ? exp(sum / n) : NAN;
}

static void put_means_line(const struct results *results, struct choice choice)
{
    for (int i = 0; i < CLASSES; i++) {
        choice.least = classes[i].least;
        choice.most = classes[i].most;
        put_ratio(geometric_mean(results, &choice));
    }
    printf("\n");
}

/* By ranks: all operations together, then each.  Rows are sorted by hosts and ranks. */
static void put_means(const struct results *results, enum library ours)
{
    const struct row *last = NULL;

    printf("\nGeometric means of best / %s, without the rows with a star:\n\n| ranks | operation |",
           library_names[ours].key);
    for (int i = 0; i < CLASSES; i++)
        printf(" %s |", classes[i].words);
    printf("\n|---|---|");
    for (int i = 0; i < CLASSES; i++)
        printf("---|");
    printf("\n| all | all |");
    put_means_line(results, (struct choice){ .ours = ours });
    for (int i = 0; i < results->row_count; i++) {
        const struct row *row = &results->rows[i];
        struct choice choice = { .ours = ours, .hosts = row->hosts, .ranks = row->ranks };
        const int new_shape = !last || !same_shape(row, last);
        char shape[24];

        name_shape(row, shape);
        if (new_shape) {
            printf("| %s | all |", shape);
            put_means_line(results, choice);
        }
        if (new_shape || strcmp(row->operation, last->operation) != 0) {
            choice.operation = row->operation;
            printf("| %s | %s |", shape, row->operation);
            put_means_line(results, choice);
        }
        last = row;
    }
}

/* ---- The rows that are behind ------------------------------------------------------- */

#define BEHIND 0.8
#define MOST_NAMED 5

/* The row of the smallest ratio that is more than `above`, or NULL. */
static const struct row *next_behind(const struct results *results, const struct choice *choice,
                                     double above)
{
    const struct row *next = NULL;

    for (int i = 0; i < results->row_count; i++) {
        const struct row *row = &results->rows[i];
        const double ratio = ratio_of(row, choice->ours);

        if (chosen(choice, row) && !says_little(results, row) && ratio < BEHIND && ratio > above
            && (!next || ratio < ratio_of(next, choice->ours)))
            next = row;
    }
    return next;
}

static void put_behind_line(const struct results *results, const char *name,
                            const struct choice *choice)
{
    const char *between = "";
    const struct row *row;
    double ratio = 0;
    int rows = 0, behind = 0, named = 0;

    for (int i = 0; i < results->row_count; i++) {
        ratio = ratio_of(&results->rows[i], choice->ours);
        if (!chosen(choice, &results->rows[i]) || says_little(results, &results->rows[i])
            || isnan(ratio))
            continue;
        rows++;
        behind += ratio < BEHIND;
    }
    printf("| %s | %d |", name, rows);
    put_ratio(geometric_mean(results, choice));
    printf(" %d | ", behind);
    for (ratio = 0; named < MOST_NAMED && (row = next_behind(results, choice, ratio)); named++) {
        char shape[24];

        ratio = ratio_of(row, choice->ours);
        name_shape(row, shape);
        printf("%s%s %s ", between, row->operation, shape);
        put_bytes(row->bytes);
        printf(" %.2f (%s)", ratio, library_names[best_peer(row)].label);
        between = ", ";
    }
    printf("%s |\n", named ? "" : "-");
}

/* By hosts, where there are several, and by ranks: how many rows are below BEHIND, and the
 * furthest of them. */
static void put_behind(const struct results *results, enum library ours)
{
    const struct choice all = { .ours = ours, .most = (size_t)-1 };
    const struct row *last = NULL;

    printf(
        "\nRows below %g, without those with a star:\n\n"
        "| ranks | rows | geometric mean | below %g | furthest behind |\n|---|---|---|---|---|\n",
        BEHIND, BEHIND);
    put_behind_line(results, "all", &all);
    for (int i = 0; i < results->row_count; last = &results->rows[i++]) {
        const struct row *row = &results->rows[i];
        struct choice choice = { .ours = ours, .hosts = row->hosts, .most = (size_t)-1 };
        char name[24];

        if (row->hosts > 0 && (!last || last->hosts != row->hosts)) {
            snprintf(name, sizeof name, "%d hosts", row->hosts);
            put_behind_line(results, name, &choice);
        }
        if (last && same_shape(row, last))
            continue;
        choice.ranks = row->ranks;
        name_shape(row, name);
        put_behind_line(results, name, &choice);
    }
}

/* ---- Tails ------------------------------------------------------------------------- */

/* p99 over p50 of `library` in the rows of `shape`: the geometric mean, and the largest. */
static void put_tail(const struct results *results, const struct row *shape, enum library library)
{
    double sum = 0, largest = 0;
    int n = 0;

    for (int i = 0; i < results->row_count; i++) {
        const struct row *row = &results->rows[i];
        const double tail = row->times[library].p99 / row->times[library].p50;

        if (!same_shape(row, shape) || says_little(results, row) || isnan(tail))
            continue;
        sum += log(tail);
        largest = fmax(largest, tail);
        n++;
    }
    if (n > 0)
        printf(" %.2f (%.3g) |", exp(sum / n), largest);
    else
        printf(" - |");
}

static void put_tails(const struct results *results)
{
    const struct row *last = NULL;

    printf("\np99 over p50, the geometric mean (and the largest), without the rows with a "
           "star:\n\n| ranks |");
    for (int i = 0; i < LIMIT; i++)
        if (results->present[i])
            printf(" %s |", library_names[i].label);
    printf("\n|---|");
    for (int i = 0; i < LIMIT; i++)
        if (results->present[i])
            printf("---|");
    printf("\n");
    for (int i = 0; i < results->row_count; last = &results->rows[i++]) {
        const struct row *row = &results->rows[i];
        char shape[24];

        if (last && same_shape(row, last))
            continue;
        name_shape(row, shape);
        printf("| %s |", shape);
        for (int library = 0; library < LIMIT; library++)
            if (results->present[library])
                put_tail(results, row, library);
        printf("\n");
    }
}

static void put_verdict(const struct results *results, enum library ours)
{
    int compared = 0, faster = 0;

    for (int i = 0; i < results->row_count; i++) {
        const double ratio = ratio_of(&results->rows[i], ours);

        compared += !isnan(ratio);
        faster += ratio >= 1;
    }
    printf("\nIn %d of %d rows %s is not slower than the best of the others.\n", faster, compared,
           library_names[ours].key);
}

void table_print(const struct results *results, const char *machine)
{
    int stars = 0;

    printf("%s\n\nus of a call, the median.\n\n", machine);
    put_rows(results);
    for (int ours = 0; ours < GLOO; ours++)
        if (results->present[ours]) {
            put_means(results, ours);
            put_behind(results, ours);
            put_verdict(results, ours);
        }
    put_tails(results);
    for (int i = 0; i < results->row_count; i++)
        stars += says_little(results, &results->rows[i]);
    if (stars > 0)
        printf("\n\\* More ranks than processors: nobody waits for a root that only sends, so the "
               "time says "
               "little.\n");
}

/* ---- JSON -------------------------------------------------------------------------- */

static void json_number(FILE *file, double value)
{
    if (isnan(value))
        fprintf(file, "null");
    else
        fprintf(file, "%.6g", value);
}

static void json_ratios(const struct row *row, FILE *file)
{
    for (int ours = 0; ours < GLOO; ours++) {
        fprintf(file, "%s\"%s\": ", ours > 0 ? ", " : "", library_names[ours].key);
        json_number(file, ratio_of(row, ours));
    }
}

static void json_times(const struct row *row, FILE *file)
{
    const char *between = "";

    for (int i = 0; i < LIBRARIES; i++) {
        if (isnan(row->times[i].p50))
            continue;
        fprintf(file, "%s\"%s\": {\"p50\": ", between, library_names[i].key);
        json_number(file, row->times[i].p50);
        fprintf(file, ", \"p99\": ");
        json_number(file, row->times[i].p99);
        fprintf(file, ", \"mean\": ");
        json_number(file, row->times[i].mean);
        fprintf(file, "}");
        between = ", ";
    }
}

void json_print(const struct results *results, const char *machine, FILE *file)
{
    fprintf(file, "{\"machine\": \"%s\",\n\"rows\": [", machine);
    for (int i = 0; i < results->row_count; i++) {
        const struct row *row = &results->rows[i];
        const enum library best = best_peer(row);

        fprintf(file,
                "%s\n{\"operation\": \"%s\", \"hosts\": %d, \"ranks\": %d, \"bytes\": %zu, "
                "\"best\": \"%s\", ",
                i > 0 ? "," : "", row->operation, row->hosts > 0 ? row->hosts : 1, row->ranks,
                row->bytes, best == LIBRARIES ? "" : library_names[best].key);
        fprintf(file, "\"says_little\": %s, \"ratio\": {",
                says_little(results, row) ? "true" : "false");
        json_ratios(row, file);
        fprintf(file, "}, \"us\": {");
        json_times(row, file);
        fprintf(file, "}}");
    }
    fprintf(file, "\n]}\n");
}
