/* SPDX-License-Identifier: Apache-2.0 */
/* table.c - see table.h: a row for each size, and the geometric means of the ratios by ranks, size
 * and operation. */
#include "bench/peers_report/table.h"

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

    printf("| %s | %d | ", row->operation, row->ranks);
    put_bytes(row->bytes);
    printf("%s |", says_little(results, row) ? " *" : "");
    for (int i = 0; i < LIBRARIES; i++)
        if (results->present[i] && i != LIMIT)
            put_us(row->times[i].p50);
    printf(" %s |", best == LIBRARIES ? "-" : library_names[best].label);
    put_ratio(ratio_of(row));
    if (results->present[LIMIT]) {
        put_us(row->times[LIMIT].p50);
        put_ratio(row->times[LIBCT].p50 / row->times[LIMIT].p50);
    }
    printf("\n");
}

static void put_rows(const struct results *results)
{
    int columns = 5;

    printf("| operation | ranks | bytes |");
    for (int i = 0; i < LIBRARIES; i++)
        if (results->present[i] && i != LIMIT) {
            printf(" %s |", library_names[i].label);
            columns++;
        }
    printf(" best peer | best / libct |");
    if (results->present[LIMIT]) {
        printf(" limit | libct / limit |");
        columns += 2;
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
    const char *operation;
    int ranks;
    size_t least, most;
};

static int chosen(const struct choice *choice, const struct row *row)
{
    return (!choice->operation || !strcmp(choice->operation, row->operation))
           && (!choice->ranks || choice->ranks == row->ranks) && row->bytes >= choice->least
           && row->bytes <= choice->most;
}

static double geometric_mean(const struct results *results, const struct choice *choice)
{
    double sum = 0;
    int n = 0;

    for (int i = 0; i < results->row_count; i++) {
        const struct row *row = &results->rows[i];
        const double ratio = ratio_of(row);

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

/* By ranks: all operations together, then each.  Rows are sorted by ranks. */
static void put_means(const struct results *results)
{
    const char *operation = "";
    int ranks = 0;

    printf("\nGeometric means of best / libct, without the rows with a star:\n\n| ranks | "
           "operation |");
    for (int i = 0; i < CLASSES; i++)
        printf(" %s |", classes[i].words);
    printf("\n|---|---|");
    for (int i = 0; i < CLASSES; i++)
        printf("---|");
    printf("\n| all | all |");
    put_means_line(results, (struct choice){ 0 });
    for (int i = 0; i < results->row_count; i++) {
        const struct row *row = &results->rows[i];

        if (row->ranks != ranks) {
            printf("| %d | all |", row->ranks);
            put_means_line(results, (struct choice){ .ranks = row->ranks });
            operation = "";
        }
        ranks = row->ranks;
        if (strcmp(operation, row->operation) != 0) {
            printf("| %d | %s |", ranks, row->operation);
            put_means_line(results, (struct choice){ .operation = row->operation, .ranks = ranks });
        }
        operation = row->operation;
    }
}

void table_print(const struct results *results, const char *machine)
{
    int compared = 0, faster = 0, stars = 0;

    printf("%s\n\nus of a call, the median.\n\n", machine);
    put_rows(results);
    put_means(results);
    for (int i = 0; i < results->row_count; i++) {
        const double ratio = ratio_of(&results->rows[i]);

        stars += says_little(results, &results->rows[i]);
        compared += !isnan(ratio);
        faster += ratio >= 1;
    }
    printf("\nIn %d of %d rows libct is not slower than the best of the others.\n", faster,
           compared);
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

static void json_row(const struct results *results, const struct row *row, FILE *file)
{
    const enum library best = best_peer(row);
    const char *between = "";

    fprintf(file,
            "{\"operation\": \"%s\", \"ranks\": %d, \"bytes\": %zu, \"best\": \"%s\", \"ratio\": ",
            row->operation, row->ranks, row->bytes,
            best == LIBRARIES ? "" : library_names[best].key);
    json_number(file, ratio_of(row));
    fprintf(file, ", \"says_little\": %s, \"us\": {", says_little(results, row) ? "true" : "false");
    for (int i = 0; i < LIBRARIES; i++)
        if (!isnan(row->times[i].p50)) {
            fprintf(file, "%s\"%s\": {\"p50\": ", between, library_names[i].key);
            json_number(file, row->times[i].p50);
            fprintf(file, ", \"mean\": ");
            json_number(file, row->times[i].mean);
            fprintf(file, "}");
            between = ", ";
        }
    fprintf(file, "}}");
}

void json_print(const struct results *results, const char *machine, FILE *file)
{
    fprintf(file, "{\"machine\": \"%s\", \"geometric_mean\": ", machine);
    json_number(file, geometric_mean(results, &(struct choice){ .most = (size_t)-1 }));
    fprintf(file, ",\n\"rows\": [");
    for (int i = 0; i < results->row_count; i++) {
        fprintf(file, "%s\n", i > 0 ? "," : "");
        json_row(results, &results->rows[i], file);
    }
    fprintf(file, "\n]}\n");
}
