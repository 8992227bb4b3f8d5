/* SPDX-License-Identifier: Apache-2.0 */
/* table.c - see results.h. */
#include "bench/network_sim/results.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct result *results_add(struct results *results)
{
    struct result *all = results->all;

    if (results->count == results->room) {
        results->room = 2 * results->room + 64;
        all = realloc(all, results->room * sizeof *all);
        if (!all)
            return NULL;
        results->all = all;
    }
    all[results->count] = (struct result){ 0 };
    return &all[results->count++];
}

int fastest_row(const struct result *r)
{
    int best = r->chosen;

    for (int i = 0; i < r->rows; i++)
        if (!isnan(r->outcome[i].us)
            && (isnan(r->outcome[best].us) || r->outcome[i].us < r->outcome[best].us))
            best = i;
    return best;
}

const char *bytes_text(size_t bytes, char text[24])
{
    static const char *const units[] = { "", "K", "M", "G" };
    int unit = 0;

    for (; unit < 3 && bytes >= 1024 && bytes % 1024 == 0; unit++)
        bytes /= 1024;
    snprintf(text, 24, "%zu%s", bytes, units[unit]);
    return text;
}

const char *us_text(double us, char text[24])
{
    const double in_unit = us < 1e3 ? us : us < 1e6 ? us / 1e3 : us / 1e6;

    if (isnan(us))
        snprintf(text, 24, "-");
    else
        snprintf(text, 24, in_unit < 100 ? "%.1f %s" : "%.0f %s", in_unit,
                 us < 1e3   ? "us"
                 : us < 1e6 ? "ms"
                            : "s");
    return text;
}

void table_heading(FILE *file, const struct result *r)
{
    char bytes[24];

    fprintf(file, "\n%s, ", operation_name(r->job.operation));
    if (r->job.operation != OPERATION_BARRIER)
        fprintf(file, "%s bytes, ", bytes_text(r->job.bytes, bytes));
    fprintf(file, "%d rank%s a host\n", r->job.each, r->job.each == 1 ? "" : "s");
    fprintf(file, "%6s %9s  %-18s %9s %9s %6s %9s %9s  %s\n", "hosts", "bound", "chosen",
            "simulated", "model", "/bound", "messages", "MB a wire", "others");
}

/* " halving 1.2 ms"; a '!' after one that takes much less than the one that is chosen. */
static void put_others(FILE *file, const struct result *r)
{
    for (int i = 0; i < r->rows; i++) {
        const double us = r->outcome[i].us;
        char text[24];

        if (i != r->chosen && r->info[i].can && !isnan(us))
            fprintf(file, "%s %s%s; ", r->info[i].name, us_text(us, text),
                    us * 1.3 < r->outcome[r->chosen].us ? "!" : "");
    }
    fputc('\n', file);
}

void table_line(FILE *file, const struct result *r)
{
    const struct outcome *o = &r->outcome[r->chosen];
    const struct traffic *t = &o->traffic;
    char bound[24], us[24], cost[24];

    fprintf(file, "%6d %9s  %-18s %9s %9s %6.2f %9llu %9.2f  ", r->job.hosts,
            us_text(r->bound, bound), r->info[r->chosen].name, us_text(o->us, us),
            us_text(r->info[r->chosen].cost, cost), o->us / r->bound,
            (unsigned long long)t->messages,
            (double)(t->most_out > t->most_in ? t->most_out : t->most_in) / 1e6);
    put_others(file, r);
    fflush(file);
}

void table_of_slower(FILE *file, const struct results *results)
{
    int found = 0;

    for (size_t k = 0; k < results->count; k++) {
        const struct result *r = &results->all[k];
        const int fastest = fastest_row(r);
        const double ratio = r->outcome[r->chosen].us / r->outcome[fastest].us;
        char bytes[24];

        if (!(ratio > 1.3))
            continue;
        if (!found++)
            fprintf(file, "\nAnother row takes less than 1/1.3 of the chosen one's time:\n");
        fprintf(file, "%-15s %5s bytes %6dx%d  %s takes %.2f times as long as %s\n",
                operation_name(r->job.operation), bytes_text(r->job.bytes, bytes), r->job.hosts,
                r->job.each, r->info[r->chosen].name, ratio, r->info[fastest].name);
    }
}

/* ---- Files ------------------------------------------------------------------------ */

static void put_number(FILE *file, double number, const char *none)
{
    if (isnan(number))
        fputs(none, file);
    else
        fprintf(file, "%.3f", number);
}

void csv_write(FILE *file, const struct results *results)
{
    fprintf(file, "operation,bytes,hosts,ranks_a_host,row,chosen,simulated_us,model_us,bound_us,"
                  "messages,most_out_bytes,most_in_bytes\n");
    for (size_t k = 0; k < results->count; k++) {
        const struct result *r = &results->all[k];

        for (int i = 0; i < r->rows; i++) {
            const struct outcome *o = &r->outcome[i];

            if (isnan(o->us))
                continue;
            fprintf(file, "%s,%zu,%d,%d,%s,%d,", operation_name(r->job.operation),
                    job_bytes(&r->job), r->job.hosts, r->job.each, r->info[i].name, i == r->chosen);
            put_number(file, o->us, "");
            fputc(',', file);
            put_number(file, r->info[i].cost, "");
            fprintf(
                file, ",%.3f,%llu,%llu,%llu\n", r->bound, (unsigned long long)o->traffic.messages,
                (unsigned long long)o->traffic.most_out, (unsigned long long)o->traffic.most_in);
        }
    }
}

static void put_row(FILE *file, const struct row_info *info, const struct outcome *o)
{
    fprintf(file, "{\"row\": \"%s\", \"simulated_us\": ", info->name);
    put_number(file, o->us, "null");
    fprintf(file, ", \"model_us\": ");
    put_number(file, info->cost, "null");
    fprintf(file, ", \"messages\": %llu, \"most_out_bytes\": %llu, \"most_in_bytes\": %llu}",
            (unsigned long long)o->traffic.messages, (unsigned long long)o->traffic.most_out,
            (unsigned long long)o->traffic.most_in);
}

void json_write(FILE *file, const struct results *results)
{
    fprintf(file,
            "{\"alpha_us\": %g, \"overhead_us\": %g, \"us_per_byte\": %g, "
            "\"copy_us_per_byte\": %g, \"hop_us\": %g, \"skew_us\": %g, \"jobs\": [",
            model.network.alpha_us, model.network.overhead_us, model.network.us_per_byte,
            model.copy_us_per_byte, model.hop_us, model.skew_us);
    for (size_t k = 0; k < results->count; k++) {
        const struct result *r = &results->all[k];
        int first = 1;

        fprintf(file,
                "%s\n{\"operation\": \"%s\", \"bytes\": %zu, \"hosts\": %d, "
                "\"ranks_a_host\": %d, \"bound_us\": %.3f, \"chosen\": \"%s\", \"rows\": [",
                k ? "," : "", operation_name(r->job.operation), job_bytes(&r->job), r->job.hosts,
                r->job.each, r->bound, r->info[r->chosen].name);
        for (int i = 0; i < r->rows; i++) {
            if (isnan(r->outcome[i].us))
                continue;
            fputs(first ? "" : ", ", file);
            put_row(file, &r->info[i], &r->outcome[i]);
            first = 0;
        }
        fputs("]}", file);
    }
    fputs("\n]}\n", file);
}
