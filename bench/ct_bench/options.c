/* SPDX-License-Identifier: Apache-2.0 */
/* options.c - see options.h.
 *
 * Nothing is printed here: every rank reads the same command line, and rank 0, known after init,
 * is the one that speaks. */
#include "bench/ct_bench/options.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char options_usage[] =
    "usage: ctrun --nproc-per-node=N ct_bench [OPTION]...\n"
    "  -b, --begin SIZE     first size in bytes (8); K, M and G are powers of 1024\n"
    "  -e, --end SIZE       last size (64M)\n"
    "  -f, --factor N       from a size to the next one (2)\n"
    "      --sizes LIST     these instead, such as 8,64K,1M\n"
    "      --ops NAMES      all_reduce,reduce,broadcast,all_gather,gather,scatter,reduce_scatter,\n"
    "                       all_to_all,barrier,ping_pong,send_recv (all of them)\n"
    "  -o, --op OP          sum avg product min max band bor bxor (sum)\n"
    "  -d, --dtype TYPE     f32, or another of ct.h (f32)\n"
    "  -r, --root N         (0)\n"
    "      --in-place, --out-of-place, --both    (both)\n"
    "      --memory any|ct|cuda    buffers: the process's own (any), ct_mem_alloc()'s, or a "
    "GPU's:\n"
    "                       CT_BENCH_GPU, or LOCAL_RANK modulo the number of GPUs\n"
    "      --in-stream      the calls of a sample follow each other in a stream of the GPU's, and "
    "the\n"
    "                       host waits for it behind the last one\n"
    "      --check          compare results, bit for bit, with what this program knows they must "
    "be\n"
    "  -n, --iters N        samples of a row (as many as fit into --time)\n"
    "  -w, --warmup N       calls before them (5)\n"
    "      --calls N        calls in a sample (as many as fill 10 us)\n"
    "      --time MS        of a row (100)\n"
    "      --limits         what this host allows, and each row's limit; --limits=only: no rows\n"
    "      --model[=GB/s]   what each row's algorithm takes if only bytes on the wire count; the "
    "wire\n"
    "                       is measured, between ranks 0 and N-1, or as given\n"
    "      --csv FILE, --json FILE    the rows with all digits, written by rank 0\n"
    "      --tune FILE      no rows: each algorithm at each size, and FILE says which is fastest "
    "up "
    "to\n"
    "                       which; CT_TUNING=FILE makes programs follow it\n";

enum {
    SIZES = 256,
    OPS,
    IN_PLACE,
    OUT_OF_PLACE,
    BOTH,
    MEMORY,
    IN_STREAM,
    CHECK,
    CALLS,
    TIME,
    LIMITS,
    MODEL,
    CSV,
    JSON,
    TUNE,
    HELP
};

static const struct option words[] = {
    { "begin", required_argument, NULL, 'b' },
    { "end", required_argument, NULL, 'e' },
    { "factor", required_argument, NULL, 'f' },
    { "sizes", required_argument, NULL, SIZES },
    { "ops", required_argument, NULL, OPS },
    { "op", required_argument, NULL, 'o' },
    { "dtype", required_argument, NULL, 'd' },
    { "root", required_argument, NULL, 'r' },
    { "in-place", no_argument, NULL, IN_PLACE },
    { "out-of-place", no_argument, NULL, OUT_OF_PLACE },
    { "both", no_argument, NULL, BOTH },
    { "memory", required_argument, NULL, MEMORY },
    { "in-stream", no_argument, NULL, IN_STREAM },
    { "check", no_argument, NULL, CHECK },
    { "iters", required_argument, NULL, 'n' },
    { "warmup", required_argument, NULL, 'w' },
    { "calls", required_argument, NULL, CALLS },
    { "time", required_argument, NULL, TIME },
    { "limits", optional_argument, NULL, LIMITS },
    { "model", optional_argument, NULL, MODEL },
    { "csv", required_argument, NULL, CSV },
    { "json", required_argument, NULL, JSON },
    { "tune", required_argument, NULL, TUNE },
    { "help", no_argument, NULL, HELP },
    { NULL, 0, NULL, 0 },
};

/* The first one counts. */
__attribute__((format(printf, 2, 3))) static void wrong(struct options *o, const char *format, ...)
{
    va_list args;

    if (o->wrong[0])
        return;
    va_start(args, format);
    vsnprintf(o->wrong, sizeof o->wrong, format, args);
    va_end(args);
}

static size_t size_of(struct options *o, const char *name, const char *text)
{
    size_t bytes = 1;

    if (size_read(text, &bytes) < 0)
        wrong(o, "--%s=%s is no size; give bytes from 1 to 1024G, such as 8, 64K or 16M", name,
              text);
    return bytes;
}

static void take_sizes(struct options *o, const char *list)
{
    const char *at_fault = sizes_list(&o->sizes, list);

    if (at_fault)
        wrong(o, "--sizes: \"%s\": give up to %d sizes in bytes, such as 8,64K,16M", at_fault,
              MOST_SIZES);
}

static int number_of(struct options *o, const char *name, const char *text, int least, int most)
{
    char *end;
    long value;

    errno = 0;
    value = strtol(text, &end, 10);
    if (end == text || *end || errno || value < least || value > most)
        wrong(o, "--%s=%s: give a number from %d to %d", name, text, least, most);
    return (int)value;
}

static void take_type(struct options *o, const char *text)
{
    const int dtype = dtype_named(text);
    char names[200];

    dtype_names(names, sizeof names);
    if (dtype < 0)
        wrong(o, "--dtype=%s is none of %s", text, names);
    else
        o->dtype = (ct_dtype)dtype;
}

static void take_op(struct options *o, const char *text)
{
    char names[100];

    op_names(names, sizeof names);
    o->op = op_named(text);
    if (o->op < 0)
        wrong(o, "--op=%s is none of %s", text, names);
}

static void take_memory(struct options *o, const char *text)
{
    o->memory = strcmp(text, "ct") == 0     ? SHARED_MEMORY
                : strcmp(text, "cuda") == 0 ? DEVICE_MEMORY
                                            : ANY_MEMORY;
    if (o->memory == ANY_MEMORY && strcmp(text, "any") != 0)
        wrong(o, "--memory=%s: there are any, ct and cuda", text);
}

static void take_limits(struct options *o, const char *text)
{
    o->limits = text ? ONLY_LIMITS : WITH_LIMITS;
    if (text && strcmp(text, "only") != 0)
        wrong(o, "--limits=%s: there are --limits and --limits=only", text);
}

static void take_model(struct options *o, const char *text)
{
    char *end;

    o->model = 1;
    if (!text)
        return;
    o->wire = strtod(text, &end);
    if (end == text || *end || !(o->wire > 0 && o->wire < 1e6))
        wrong(o, "--model=%s: give the bandwidth of a wire in GB/s, such as 1.25", text);
}

static void take(struct options *o, struct size_range *range, int word, const char *text)
{
    switch (word) {
    case 'b':
        range->begin = size_of(o, "begin", text);
        break;
    case 'e':
        range->end = size_of(o, "end", text);
        break;
    case 'f':
        range->factor = (size_t)number_of(o, "factor", text, 2, INT_MAX);
        break;
    case 'o':
        take_op(o, text);
        break;
    case 'd':
        take_type(o, text);
        break;
    case 'r':
        o->root = number_of(o, "root", text, 0, INT_MAX);
        break;
    case 'n':
        o->effort.samples = number_of(o, "iters", text, 1, MOST_SAMPLES);
        break;
    case 'w':
        o->effort.warmup = number_of(o, "warmup", text, 0, INT_MAX);
        break;
    case CALLS:
        o->effort.calls = number_of(o, "calls", text, 1, INT_MAX);
        break;
    case TIME:
        o->effort.budget_ms = number_of(o, "time", text, 1, INT_MAX);
        break;
    case SIZES:
        take_sizes(o, text);
        break;
    case OPS:
        o->ops = text;
        break;
    case IN_PLACE:
    case OUT_OF_PLACE:
    case BOTH:
        o->in_place = word != OUT_OF_PLACE;
        o->out_of_place = word != IN_PLACE;
        break;
    case MEMORY:
        take_memory(o, text);
        break;
    case IN_STREAM:
        o->in_stream = 1;
        break;
    case CHECK:
        o->check = 1;
        break;
    case LIMITS:
        take_limits(o, text);
        break;
    case MODEL:
        take_model(o, text);
        break;
    case CSV:
        o->csv = text;
        break;
    case TUNE:
        o->tune = text;
        break;
    case JSON:
        o->json = text;
        break;
    case HELP:
        o->help = 1;
        break;
    }
}

/* Is `length` letters of `list` the name of an operation? */
static int known(const char *list, size_t length)
{
    for (int i = 0; i < operation_count; i++)
        if (strlen(operations[i].name) == length && !strncmp(list, operations[i].name, length))
            return 1;
    return 0;
}

static void check_names(struct options *o)
{
    for (const char *at = o->ops; at;) {
        const size_t length = strcspn(at, ",");

        if (!known(at, length))
            wrong(o, "--ops: \"%.*s\" is no operation; --help lists them", (int)length, at);
        at = at[length] ? at + length + 1 : NULL;
    }
}

void options_read(struct options *o, int argc, char **argv)
{
    struct size_range range = { 8, 64 << 20, 2 };
    int word;

    *o = (struct options){ .dtype = CT_F32,
                           .op = CT_SUM,
                           .in_place = 1,
                           .out_of_place = 1,
                           .effort = { .warmup = 5, .budget_ms = 100 } };
    opterr = 0;
    while ((word = getopt_long(argc, argv, "+:b:e:f:o:d:r:n:w:", words, NULL)) != -1) {
        if (word == '?')
            wrong(o, "%s is no option, or not complete; --help lists them", argv[optind - 1]);
        else if (word == ':')
            wrong(o, "%s wants a value", argv[optind - 1]);
        else
            take(o, &range, word, optarg);
    }
    if (optind < argc)
        wrong(o, "\"%s\" is no option; --help lists them", argv[optind]);
    if (range.begin > range.end)
        wrong(o, "--begin=%zu is more than --end=%zu", range.begin, range.end);
    if (o->tune && o->memory == DEVICE_MEMORY)
        wrong(o, "--tune chooses among the algorithms of host memory: leave --memory=cuda out");
    if (o->in_stream && o->memory != DEVICE_MEMORY)
        wrong(o, "--in-stream: host memory has no streams; add --memory=cuda");
    if (o->sizes.count == 0)
        sizes_range(&o->sizes, &range);
    check_names(o);
}

int options_want(const struct options *o, const char *operation)
{
    const size_t wanted = strlen(operation);

    for (const char *at = o->ops; at;) {
        const size_t length = strcspn(at, ",");

        if (length == wanted && !strncmp(at, operation, length))
            return 1;
        at = at[length] ? at + length + 1 : NULL;
    }
    return o->ops == NULL;
}
