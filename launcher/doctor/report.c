/* SPDX-License-Identifier: Apache-2.0 */
/* report.c - what ctctl doctor prints: what is wrong with its remedy, the worst first; then the
 * matrices of round trip and bandwidth, and the bandwidth as a picture. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/doctor/doctor.h"
#include "runtime/util/json_writer.h"
#include "runtime/util/text.h"

#define WIDE 12 /* hosts, beyond which only the picture fits a terminal */

void report_add(struct report *report, int host, enum level level, const char *check,
                const char *text, const char *remedy)
{
    struct diagnosis *more =
        realloc(report->list, ((size_t)report->count + 1) * sizeof *report->list);
    struct diagnosis now = { level, strdup(check), strdup(text), strdup(remedy), host };

    if (more)
        report->list = more;
    if (more && now.check && now.text && now.remedy) {
        more[report->count++] = now;
        return;
    }
    fprintf(stderr, "ctctl: out of memory for a finding: %s: %s\n", check, text);
    free(now.check);
    free(now.text);
    free(now.remedy);
}

enum level report_worst(const struct report *report)
{
    enum level worst = LEVEL_OK;

    for (int i = 0; i < report->count; i++)
        worst = report->list[i].level > worst ? report->list[i].level : worst;
    return worst;
}

void report_free(struct report *report)
{
    for (int i = 0; i < report->count; i++) {
        free(report->list[i].check);
        free(report->list[i].text);
        free(report->list[i].remedy);
    }
    free(report->list);
    for (int i = 0; report->names && i < report->hosts; i++)
        free(report->names[i]);
    free(report->names);
    free(report->lost);
    free(report->skews);
    matrix_close(&report->matrix);
}

/* ---- Findings ------------------------------------------------------------------------- */

/* The same sentence about several hosts is printed once. */
static int is_same(const struct diagnosis *a, const struct diagnosis *b)
{
    return a->level == b->level && a->host >= 0 && b->host >= 0 && !strcmp(a->check, b->check)
           && !strcmp(a->text, b->text);
}

static void print_hosts(const struct report *report, int index)
{
    const struct diagnosis *first = &report->list[index];
    int hosts = 1;

    for (int i = index + 1; i < report->count; i++)
        hosts += is_same(first, &report->list[i]);
    if (first->host < 0)
        return;
    if (hosts == report->hosts && hosts > 2) {
        printf(" all %d hosts,", hosts);
        return;
    }
    for (int i = index; i < report->count; i++)
        if (i == index || is_same(first, &report->list[i]))
            printf(" %s,", report->names[report->list[i].host]);
}

static void print_remedy(const char *remedy)
{
    if (*remedy)
        printf("       remedy: %s\n", remedy);
}

/* Of findings that follow each other and have the same remedy, the last one has it. */
static void print_level(const struct report *report, enum level level)
{
    const char *remedy = "";

    for (int i = 0; i < report->count; i++) {
        const struct diagnosis *at = &report->list[i];
        int seen = at->level != level;

        for (int before = 0; before < i && !seen; before++)
            seen = is_same(&report->list[before], at);
        if (seen)
            continue;
        if (strcmp(remedy, at->remedy) != 0)
            print_remedy(remedy);
        remedy = at->remedy;
        printf("%-4s", level_words[level]);
        print_hosts(report, i);
        printf(" %s%s%s\n", at->check, *at->text ? ": " : "", at->text);
    }
    print_remedy(remedy);
}

/* ---- The network ------------------------------------------------------------------------ */

static int name_width(const struct report *report)
{
    int width = 4;

    for (int i = 0; i < report->hosts; i++)
        width = (int)strlen(report->names[i]) > width ? (int)strlen(report->names[i]) : width;
    return width;
}

static const char *mark(const struct host_pair *pair)
{
    return pair->level == LEVEL_OK ? "" : "!";
}

static void trip_cell(const struct host_pair *pair, char *text, size_t size)
{
    snprintf(text, size, "%.0f%s", (double)pair->trip_ns / 1e3, mark(pair));
}

static void bandwidth_cell(const struct host_pair *pair, char *text, size_t size)
{
    snprintf(text, size, "%.3g%s", pair->bytes_per_s / 1e9, mark(pair));
}

static void print_table(const struct report *report, const char *title,
                        void (*cell)(const struct host_pair *pair, char *text, size_t size))
{
    const int width = name_width(report), cells = width > 6 ? width : 6;
    char text[32];

    printf("\n%s\n%*s", title, width + 2, "");
    for (int to = 0; to < report->hosts; to++)
        printf(" %*s", cells, report->names[to]);
    printf("\n");
    for (int from = 0; from < report->hosts; from++) {
        printf("  %-*s", width, report->names[from]);
        for (int to = 0; to < report->hosts; to++) {
            const struct host_pair *pair = matrix_pair(&report->matrix, from, to);

            snprintf(text, sizeof text, "%s", from == to ? "." : pair->error ? "FAIL" : "-");
            if (pair->measured)
                cell(pair, text, sizeof text);
            printf(" %*s", cells, text);
        }
        printf("\n");
    }
}

/* NULL: doctor could not measure any pair. */
static const struct host_pair *extreme(const struct report *report, int slowest)
{
    const struct host_pair *best = NULL;

    for (int i = 0; i < report->hosts * report->hosts; i++) {
        const struct host_pair *pair = &report->matrix.pairs[i];

        if (pair->measured
            && (!best
                || (slowest ? pair->bytes_per_s < best->bytes_per_s
                            : pair->bytes_per_s > best->bytes_per_s)))
            best = pair;
    }
    return best;
}

static void print_picture(const struct report *report)
{
    static const char *const blocks[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
    const struct host_pair *fastest = extreme(report, 0), *slowest = extreme(report, 1);
    const int width = name_width(report);
    const double median = median_bandwidth(&report->matrix);
    const int at = (int)(slowest - report->matrix.pairs);

    printf("\nbandwidth, a row is the sender\n"
           "  █ is %.3g GB/s, each eighth less a lower block; x: FAIL\n",
           fastest->bytes_per_s / 1e9);
    for (int from = 0; from < report->hosts; from++) {
        printf("  %-*s ", width, report->names[from]);
        for (int to = 0; to < report->hosts; to++) {
            const struct host_pair *pair = matrix_pair(&report->matrix, from, to);
            const char *block = from == to ? "·" : pair->error ? "x" : "-";

            if (pair->measured)
                block = blocks[(int)(7.999 * pair->bytes_per_s / fastest->bytes_per_s)];
            printf("%s%s", block, report->hosts <= WIDE ? block : "");
        }
        printf("\n");
    }
    printf("  slowest: %s to %s, %.3g GB/s, %.0f %% of the median\n",
           report->names[at / report->hosts], report->names[at % report->hosts],
           slowest->bytes_per_s / 1e9, 100 * slowest->bytes_per_s / median);
}

void report_print(const struct report *report, int verbose)
{
    int counts[LEVELS] = { 0 };

    for (int i = 0; i < report->count; i++)
        counts[report->list[i].level]++;
    print_level(report, LEVEL_FAIL);
    print_level(report, LEVEL_WARN);
    if (verbose)
        print_level(report, LEVEL_OK);
    if (extreme(report, 0) && report->hosts <= WIDE) {
        print_table(report, "round trip in us, from the left to the top", trip_cell);
        print_table(report, "bandwidth in GB/s, from the left to the top", bandwidth_cell);
    }
    if (extreme(report, 0))
        print_picture(report);
    printf("%s%d host%s: %d FAIL, %d warn, %d ok%s; %.1f s\n", report->hosts > 1 ? "\n" : "",
           report->hosts, report->hosts == 1 ? "" : "s", counts[LEVEL_FAIL], counts[LEVEL_WARN],
           counts[LEVEL_OK], verbose ? "" : " (--verbose lists them)", report->seconds);
}

/* ---- For programs -----------------------------------------------------------------------------
 */

static void print_pairs(struct json_text *json, const struct report *report)
{
    json_open(json, "pairs", '[');
    for (int i = 0; i < report->hosts * report->hosts; i++) {
        const struct host_pair *pair = &report->matrix.pairs[i];

        if (!pair->measured && !pair->error)
            continue;
        json_open(json, NULL, '{');
        json_string(json, "from", report->names[i / report->hosts]);
        json_string(json, "to", report->names[i % report->hosts]);
        json_string(json, "level", level_words[pair->error ? LEVEL_FAIL : pair->level]);
        if (pair->measured) {
            json_thousandths(json, "round_trip_us", pair->trip_ns);
            json_real(json, "bytes_per_s", pair->bytes_per_s);
            json_thousandths(json, "skew_us", pair->skew_ns);
        }
        json_string(json, "error", pair->error);
        json_close(json, '}');
    }
    json_close(json, ']');
}

void report_print_json(const struct report *report)
{
    struct text out = { 0 };
    struct json_text json = { .to = &out, .gap = " " };

    json_open(&json, NULL, '{');
    json_string(&json, "level", level_words[report_worst(report)]);
    json_open(&json, "hosts", '[');
    for (int i = 0; i < report->hosts; i++) {
        json_open(&json, NULL, '{');
        json_string(&json, "host", report->names[i]);
        json_bool(&json, "answered", !report->lost[i]);
        if (report->skews && report->skews[i] != NO_SKEW)
            json_thousandths(&json, "skew_us", report->skews[i]);
        json_close(&json, '}');
    }
    json_close(&json, ']');
    json_open(&json, "findings", '[');
    for (int i = 0; i < report->count; i++) {
        const struct diagnosis *at = &report->list[i];

        json_open(&json, NULL, '{');
        json_string(&json, "level", level_words[at->level]);
        json_string(&json, "host", at->host < 0 ? NULL : report->names[at->host]);
        json_string(&json, "check", at->check);
        json_string(&json, "text", at->text);
        json_string(&json, "remedy", at->remedy);
        json_close(&json, '}');
    }
    json_close(&json, ']');
    print_pairs(&json, report);
    json_close(&json, '}');
    text_add(&out, "\n", 1);
    fwrite(out.data, 1, out.used, stdout);
    free(out.data);
}
