/* SPDX-License-Identifier: Apache-2.0 */
/* options.c - see options.h. */
#include "bench/network_sim/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/network_sim/network.h"
#include "collectives/read_overrides.h"
#include "collectives/registry.h"

const char options_usage[] =
    "usage: ct_bench --simulate[=HOSTSxRANKS] [OPTION]...\n"
    "Runs the library's algorithms on simulated hosts and a simulated network; no launcher, no "
    "data.\n"
    "      --hosts LIST     numbers of hosts (8,16,64,100,256,1000,1024,4096,10000)\n"
    "      --ranks LIST     ranks of each host (1,8)\n"
    "      --ops NAMES      all_reduce,broadcast,reduce,all_gather,reduce_scatter,barrier (all)\n"
    "      --sizes LIST     bytes of the larger buffer (8,64K,16M)\n"
    "      --rows chosen    only the row that the library takes; else all that can\n"
    "      --patience S     leave out rows that would take longer to simulate, about (20)\n"
    "      --alpha US       time of an empty message from rank to rank (30)\n"
    "      --overhead US    of a message on the processor that sends it, and that receives it "
    "(12)\n"
    "      --bandwidth GB/s of a host's wire, each way (1.2); CT_NETWORK=30us,1.2GB/s,3us sets "
    "all\n"
    "                       three, and the library chooses by them\n"
    "      --copy GB/s      what a rank copies on its host (10)\n"
    "      --hop US         until a rank sees what another one of its host wrote (1)\n"
    "      --skew US        the ranks begin within so long; time counts from the last one's begin "
    "(0)\n"
    "      --samples        as ct_bench measures: calls after barriers, the longest of the ranks'\n"
    "                       own times of the last one\n"
    "      --jitter US      with --samples: each rank leaves a barrier so much later at the most "
    "(0)\n"
    "      --csv FILE, --json FILE    all rows with all digits\n"
    "      --figure FILE    an SVG of all_reduce, with the last number of ranks\n"
    "      --self-test      compares the model with its formulas\n";

static int is_wrong(struct options *o, const char *name, const char *text)
{
    snprintf(o->wrong, sizeof o->wrong, "--%s=%.60s is wrong; --help says what there is", name,
             text);
    return -1;
}

static int read_values(struct values *v, const char *text, long most)
{
    v->count = 0;
    do {
        char *end;
        long value = strtol(text, &end, 10);
        const int shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;

        if (end == text || value < 1 || value > most >> shift || v->count == MOST_VALUES)
            return -1;
        v->values[v->count++] = value << shift;
        text = end + (shift > 0);
    } while (*text++ == ',');
    return text[-1] ? -1 : 0;
}

static int read_double(double *to, const char *text)
{
    char *end;
    const double value = strtod(text, &end);

    if (end == text || *end || !(value >= 0 && value < 1e9))
        return -1;
    *to = value;
    return 0;
}

/* GB/s */
static int read_rate(double *us_per_byte, const char *text)
{
    double rate;

    if (read_double(&rate, text) < 0 || rate <= 0)
        return -1;
    *us_per_byte = 1e-3 / rate;
    return 0;
}

static int read_operations(struct options *o, const char *text)
{
    char copy[200], *rest = copy, *name;

    o->operations = 0;
    snprintf(copy, sizeof copy, "%s", text);
    while ((name = strsep(&rest, ","))) {
        const int operation = collective_named(name);

        if (operation < 0 || !operation_algorithms(operation) || o->operations == MOST_OPERATIONS)
            return -1;
        o->operation[o->operations++] = operation;
    }
    return 0;
}

/* 1000x8 */
static int read_shape(struct options *o, const char *text)
{
    long hosts, ranks;
    int end = 0;

    if (sscanf(text, "%ldx%ld%n", &hosts, &ranks, &end) != 2 || text[end] || hosts < 1 || ranks < 1
        || hosts * ranks > 1 << 20)
        return -1;
    o->hosts = (struct values){ { hosts }, 1 };
    o->ranks = (struct values){ { ranks }, 1 };
    return 0;
}

static int take(struct options *o, const char *name, const char *text)
{
    if (!strcmp(name, "hosts"))
        return read_values(&o->hosts, text, 1 << 20);
    if (!strcmp(name, "ranks"))
        return read_values(&o->ranks, text, 1024);
    if (!strcmp(name, "sizes"))
        return read_values(&o->sizes, text, 1L << 32);
    if (!strcmp(name, "ops"))
        return read_operations(o, text);
    if (!strcmp(name, "patience"))
        return read_double(&o->patience, text);
    if (!strcmp(name, "alpha"))
        return read_double(&model.network.alpha_us, text);
    if (!strcmp(name, "overhead"))
        return read_double(&model.network.overhead_us, text);
    if (!strcmp(name, "bandwidth"))
        return read_rate(&model.network.us_per_byte, text);
    if (!strcmp(name, "copy"))
        return read_rate(&model.copy_us_per_byte, text);
    if (!strcmp(name, "hop"))
        return read_double(&model.hop_us, text);
    if (!strcmp(name, "skew"))
        return read_double(&model.skew_us, text);
    if (!strcmp(name, "jitter"))
        return read_double(&model.jitter_us, text);
    if (!strcmp(name, "rows")) {
        o->rows = !strcmp(text, "chosen") ? CHOSEN_ROW : ALL_ROWS;
        return o->rows == CHOSEN_ROW || !strcmp(text, "all") ? 0 : -1;
    }
    if (!strcmp(name, "csv") || !strcmp(name, "json") || !strcmp(name, "figure")) {
        *(*name == 'c' ? &o->csv : *name == 'j' ? &o->json : &o->figure) = text;
        return 0;
    }
    return -1;
}

/* --name=value, or --name value. */
static int take_word(struct options *o, char **argv, int *i)
{
    const char *word = argv[*i] + 2, *equals = strchr(word, '=');
    char name[24];

    snprintf(name, sizeof name, "%.*s", equals ? (int)(equals - word) : 23, word);
    if (!strcmp(word, "help"))
        o->help = 1;
    else if (!strcmp(word, "samples"))
        o->samples = 1;
    else if (!strcmp(word, "self-test"))
        o->self_test = 1;
    else if (!equals && !argv[*i + 1])
        return is_wrong(o, name, "");
    else if (take(o, name, equals ? equals + 1 : argv[++*i]) < 0)
        return is_wrong(o, name, equals ? equals + 1 : argv[*i]);
    return 0;
}

/* What the library would choose by; simulated is the same.  No other variable of libct counts. */
static int read_network(struct options *o)
{
    const char *text = getenv("CT_NETWORK");
    char *network = text ? strdup(text) : NULL;
    ct_group *group = calloc(1, sizeof *group);
    ct_status status = CT_ERR_NOMEM;

    clearenv();
    if (network)
        setenv("CT_NETWORK", network, 1);
    free(network);
    if (group) {
        group->root = group;
        status = choices_open(group, NULL);
    }
    if (status == CT_OK)
        model.network = group->algorithms.choices->network;
    else
        snprintf(o->wrong, sizeof o->wrong, "%.190s", ct_last_error());
    if (group) {
        free(group->algorithms.choices);
        free(group->algorithms.network);
    }
    free(group);
    return status == CT_OK ? 0 : -1;
}

int options_read(struct options *o, int argc, char **argv)
{
    *o = (struct options){ .patience = 20 };
    model = (struct model){
        .network = network_model_of(NULL),
        .copy_us_per_byte = 1e-4,
        .hop_us = 1,
    };
    read_values(&o->hosts, "8,16,64,100,256,1000,1024,4096,10000", 1 << 20);
    read_values(&o->ranks, "1,8", 1024);
    read_values(&o->sizes, "8,64K,16M", 1L << 32);
    read_operations(o, "all_reduce,broadcast,reduce,all_gather,reduce_scatter,barrier");
    if (read_network(o) < 0)
        return -1;
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "--", 2) != 0) {
            if (read_shape(o, argv[i]) < 0)
                return is_wrong(o, "simulate", argv[i]);
        } else if (take_word(o, argv, &i) < 0) {
            return -1;
        }
    }
    return 0;
}
