/* SPDX-License-Identifier: Apache-2.0 */
/* peers_report - what bench/peers has measured: as a table on stdout, as JSON, as figures.
 *
 *   peers_report --machine=TEXT --processors=N [--json=FILE] [--figures=DIR] ROWS
 *
 * ROWS is a file of "library,ranks,round,operation,bytes,p50,p99,mean,samples", as bench/peers
 * makes it. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "bench/peers_report/results.h"

struct options {
    const char *machine, *rows, *json, *figures;
    int processors;
};

static int read_options(struct options *o, int argc, char **argv)
{
    static const struct option words[] = {
        { "machine", required_argument, NULL, 'm' },
        { "processors", required_argument, NULL, 'p' },
        { "json", required_argument, NULL, 'j' },
        { "figures", required_argument, NULL, 'f' },
        { NULL, 0, NULL, 0 },
    };
    int word;

    *o = (struct options){ .machine = "", .processors = 1 };
    while ((word = getopt_long(argc, argv, "", words, NULL)) != -1) {
        switch (word) {
        case 'm':
            o->machine = optarg;
            break;
        case 'p':
            o->processors = atoi(optarg);
            break;
        case 'j':
            o->json = optarg;
            break;
        case 'f':
            o->figures = optarg;
            break;
        default:
            return -1;
        }
    }
    o->rows = argv[optind];
    return optind + 1 == argc ? 0 : -1;
}

static int fails(const char *what, const char *why)
{
    fprintf(stderr, "peers_report: %s: %s\n", what, why);
    return 1;
}

static int write_json(const struct results *results, const struct options *o)
{
    FILE *file = fopen(o->json, "we");
    int broken;

    if (!file)
        return fails(o->json, strerror(errno));
    json_print(results, o->machine, file);
    broken = ferror(file);
    if (fclose(file) != 0 || broken)
        return fails(o->json, "can't be written");
    return 0;
}

static int report(const struct results *results, const struct options *o)
{
    char name[400];

    table_print(results, o->machine);
    if (o->json && write_json(results, o))
        return 1;
    if (o->figures && figures_write(results, o->figures, name) < 0)
        return fails(name, strerror(errno));
    return 0;
}

int main(int argc, char **argv)
{
    struct options options;
    struct results results;
    char why[200];
    FILE *file;
    int code;

    if (read_options(&options, argc, argv) < 0)
        return fails("usage", "peers_report [--machine=TEXT] [--processors=N] [--json=FILE] "
                              "[--figures=DIR] ROWS");
    file = fopen(options.rows, "re");
    if (!file)
        return fails(options.rows, strerror(errno));
    code = results_read(&results, file, why) < 0 ? fails(options.rows, why) : 0;
    fclose(file);
    results.processors = options.processors;
    if (!code)
        code = report(&results, &options);
    results_free(&results);
    return code;
}
