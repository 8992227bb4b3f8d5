/* SPDX-License-Identifier: Apache-2.0 */
/* report.c - prints the results of ctctl doctor.  First come the problems with their remedies, the
 * worst problems first, then tables of round trips and bandwidth. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/doctor/doctor.h"
#include "runtime/util/json_writer.h"
#include "runtime/util/text.h"

#define WIDE 12 /* most hosts in a table; a table of more hosts is wider than a terminal */

static const char *const level_words[LEVELS] = { "ok", "warn", "FAIL" };

const char *report_name(const struct report *report, int host)
{
    return host_without_user(report->list_of_hosts[host].name);
}

void report_add(struct report *report, int host, enum finding_level level, const char *check,
                const char *text, const char *remedy)
{
    struct diagnosis *more =
        realloc(report->list, ((size_t)report->count + 1) * sizeof *report->list);

    if (!more) {
        fprintf(stderr, "ctctl: out of memory for a finding: %s: %s\n", check, text);
        return;
    }
    report->list = more;
    more += report->count++;
    more->level = level > LEVEL_FAIL ? LEVEL_FAIL : level; /* a host may send any number */
    more->host = host;
    snprintf(more->check, sizeof more->check, "%s", check);
    snprintf(more->text, sizeof more->text, "%s", text);
    snprintf(more->remedy, sizeof more->remedy, "%s", remedy);
}

/* ---- Findings ------------------------------------------------------------------------- */

/* Compares by check, text, level and host.  Findings with the same text may have different levels,
 * since the same value may be enough for one host, and too small for another host. */
static int by_text(const void *a, const void *b)
{
    const struct diagnosis *x = a, *y = b;
    const int check = strcmp(x->check, y->check), text = strcmp(x->text, y->text);

    if (check || text)
        return check ? check : text;
    return x->level != y->level ? (int)x->level - (int)y->level : x->host - y->host;
}

/* Turns a fact into a warning if it should be the same on all hosts but differs.  Also finds the
 * worst level. */
void report_finish(struct report *report)
{
    if (report->count > 0)
        qsort(report->list, (size_t)report->count, sizeof *report->list, by_text);
    for (int first = 0, end; first < report->count; first = end) {
        const struct diagnosis *at = &report->list[first];
        int differ;

        for (end = first + 1; end < report->count && !strcmp(at->check, report->list[end].check);)
            end++;
        differ = strcmp(at->text, report->list[end - 1].text) != 0;
        for (int i = first; i < end; i++) {
            if (report->list[i].level == LEVEL_OK && *report->list[i].remedy && differ)
                report->list[i].level = LEVEL_WARN;
            else if (report->list[i].level == LEVEL_OK)
                *report->list[i].remedy = 0;
            if (report->list[i].level > report->worst)
                report->worst = report->list[i].level;
        }
    }
}

/* Prints the hosts of list[first] to list[end - 1], which all have the same finding. */
static void print_hosts(const struct report *report, int first, int end)
{
    if (end - first == report->hosts && report->hosts > 2)
        printf(" all %d hosts,", report->hosts);
    for (int i = first; i < end && (end - first < report->hosts || report->hosts <= 2); i++)
        printf(" %s,", report_name(report, report->list[i].host));
}

static void print_remedy(const char *remedy)
{
    if (*remedy)
        printf("       remedy: %s\n", remedy);
}

/* Prints the findings of a level.  If consecutive findings have the same remedy, only the last
 * finding shows it. */
static void print_level(const struct report *report, enum finding_level level)
{
    const char *remedy = "";

    for (int i = 0, end; i < report->count; i = end) {
        const struct diagnosis *at = &report->list[i];

        for (end = i + 1; end < report->count && !strcmp(at->check, report->list[end].check)
                          && !strcmp(at->text, report->list[end].text)
                          && at->level == report->list[end].level;)
            end++;
        if (at->level != level)
            continue;
        if (strcmp(remedy, at->remedy) != 0)
            print_remedy(remedy);
        remedy = at->remedy;
        printf("%-4s", level_words[level]);
        print_hosts(report, i, end);
        printf(" %s%s%s\n", at->check, *at->text ? ": " : "", at->text);
    }
    print_remedy(remedy);
}

/* ---- The network ------------------------------------------------------------------------ */

static void print_cell(const struct report *report, int from, int to, enum figure figure, int width)
{
    const struct host_pair *pair = matrix_pair(&report->matrix, from, to);
    const char *mark = pair->level == LEVEL_OK ? "" : "!";
    char text[32];

    if (!pair_is_measured(pair))
        snprintf(text, sizeof text, "%s", from == to ? "." : pair->error ? "FAIL" : "-");
    else if (figure == TRIP_US)
        snprintf(text, sizeof text, "%.0f%s", pair->figure[TRIP_US], mark);
    else
        snprintf(text, sizeof text, "%.3g%s", pair->figure[BYTES_PER_S] / 1e9, mark);
    printf(" %*s", width, text);
}

static void print_table(const struct report *report, const char *title, enum figure figure)
{
    int width = 6;

    for (int i = 0; i < report->hosts; i++)
        width = (int)strlen(report_name(report, i)) > width ? (int)strlen(report_name(report, i))
                                                            : width;
    printf("\n%s\n  %*s", title, width, "");
    for (int to = 0; to < report->hosts; to++)
        printf(" %*s", width, report_name(report, to));
    for (int from = 0; from < report->hosts; from++) {
        printf("\n  %-*s", width, report_name(report, from));
        for (int to = 0; to < report->hosts; to++)
            print_cell(report, from, to, figure, width);
    }
    printf("\n");
}

static void print_network(const struct report *report)
{
    const struct matrix *matrix = &report->matrix;
    const struct host_pair *pair, *slowest = NULL;

    for (int i = 0; i < report->hosts * report->hosts; i++) {
        pair = &matrix->pairs[i];
        if (pair_is_measured(pair)
            && (!slowest || pair->figure[BYTES_PER_S] < slowest->figure[BYTES_PER_S]))
            slowest = pair;
    }
    if (!slowest)
        return;
    if (report->hosts <= WIDE) {
        print_table(report, "round trip in us, from the left to the top", TRIP_US);
        print_table(report, "bandwidth in GB/s, from the left to the top", BYTES_PER_S);
    }
    printf("\nslowest: %s to %s, %.3g GB/s; the usual bandwidth is %.3g GB/s\n",
           report_name(report, (slowest - matrix->pairs) / report->hosts),
           report_name(report, (slowest - matrix->pairs) % report->hosts),
           slowest->figure[BYTES_PER_S] / 1e9, report->usual[BYTES_PER_S] / 1e9);
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
    print_network(report);
    printf("%s%d host%s: %d FAIL, %d warn, %d ok%s; %.1f s\n", report->hosts > 1 ? "\n" : "",
           report->hosts, report->hosts == 1 ? "" : "s", counts[LEVEL_FAIL], counts[LEVEL_WARN],
           counts[LEVEL_OK], verbose ? "" : " (--verbose lists them)", report->seconds);
}

/* ---- For programs ---------------------------------------------------------------------- */

void report_print_json(const struct report *report)
{
    struct text out = { 0 };
    struct json_text json = { .to = &out, .gap = " " };

    json_open(&json, NULL, '{');
    json_string(&json, "level", level_words[report->worst]);
    json_open(&json, "hosts", '[');
    for (int i = 0; i < report->hosts; i++) {
        json_open(&json, NULL, '{');
        json_string(&json, "host", report_name(report, i));
        json_bool(&json, "answered", !report->lost[i]);
        if (matrix_skew(&report->matrix, i) != NO_SKEW)
            json_thousandths(&json, "skew_us", matrix_skew(&report->matrix, i));
        json_close(&json, '}');
    }
    json_close(&json, ']');
    json_open(&json, "findings", '[');
    for (int i = 0; i < report->count; i++) {
        const struct diagnosis *at = &report->list[i];

        json_open(&json, NULL, '{');
        json_string(&json, "level", level_words[at->level]);
        json_string(&json, "host", report_name(report, at->host));
        json_string(&json, "check", at->check);
        json_string(&json, "text", at->text);
        json_string(&json, "remedy", at->remedy);
        json_close(&json, '}');
    }
    json_close(&json, ']');
    json_open(&json, "pairs", '[');
    for (int i = 0; i < report->hosts * report->hosts; i++) {
        const struct host_pair *pair = &report->matrix.pairs[i];

        if (!pair_is_measured(pair) && !pair->error)
            continue;
        json_open(&json, NULL, '{');
        json_string(&json, "from", report_name(report, i / report->hosts));
        json_string(&json, "to", report_name(report, i % report->hosts));
        json_string(&json, "level", level_words[pair->error ? LEVEL_FAIL : pair->level]);
        if (pair_is_measured(pair)) {
            json_real(&json, "round_trip_us", pair->figure[TRIP_US]);
            json_real(&json, "bytes_per_s", pair->figure[BYTES_PER_S]);
            json_thousandths(&json, "skew_us", pair->skew_ns);
        }
        json_string(&json, "error", pair->error);
        json_close(&json, '}');
    }
    json_close(&json, ']');
    json_close(&json, '}');
    text_add(&out, "\n", 1);
    fwrite(out.data, 1, out.used, stdout);
    free(out.data);
}
