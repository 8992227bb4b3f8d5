/* SPDX-License-Identifier: Apache-2.0 */
/* options.c - one row for each option: its name, whether it has a value, and who takes it.
 *
 * Nothing is printed here: every rank reads the same command line, and rank 0, known after init,
 * is the one that speaks. */
#include "bench/ct_bench/options.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Sizes ------------------------------------------------------------------------------- */

static int shift_of(char unit)
{
    switch (unit) {
    case 'K':
    case 'k':
        return 10;
    case 'M':
    case 'm':
        return 20;
    case 'G':
    case 'g':
        return 30;
    default:
        return 0;
    }
}

/* What follows the size, or NULL. */
static const char *read_one(const char *text, size_t *bytes)
{
    char *end;
    unsigned long long value;
    int shift;

    errno = 0;
    value = strtoull(text, &end, 10);
    shift = shift_of(*end);
    if (*text < '0' || *text > '9' || errno || value == 0 || value > (1ull << 40) >> shift)
        return NULL;
    *bytes = (size_t)(value << shift);
    return shift ? end + 1 : end;
}

static void add(struct sizes *sizes, size_t bytes)
{
    sizes->bytes[sizes->count++] = bytes;
    if (bytes > sizes->largest)
        sizes->largest = bytes;
}

int size_read(const char *text, size_t *bytes)
{
    size_t value;
    const char *end = read_one(text, &value);

    if (!end || *end)
        return -1;
    *bytes = value;
    return 0;
}

const char *sizes_list(struct sizes *sizes, const char *list)
{
    const char *at = list, *end;
    size_t bytes;

    for (*sizes = (struct sizes){ .count = 0 }; sizes->count < MOST_SIZES; at = end + 1) {
        end = read_one(at, &bytes);
        if (!end || (*end && *end != ','))
            return at;
        add(sizes, bytes);
        if (!*end)
            return NULL;
    }
    return at;
}

void sizes_range(struct sizes *sizes, const struct size_range *range)
{
    *sizes = (struct sizes){ .count = 0 };
    for (size_t bytes = range->begin; bytes <= range->end; bytes *= range->factor) {
        add(sizes, bytes);
        if (bytes > range->end / range->factor)
            break;
    }
}

/* ---- Options ----------------------------------------------------------------------------- */

const char options_usage[] =
    "usage: ctrun --nproc-per-node=N ct_bench [OPTION]...\n"
    "Measures the collectives of libct by size.  SIZE is bytes; K, M and G are powers of 1024.\n"
    "  -b, --begin SIZE     first size (8)\n"
    "  -e, --end SIZE       last size (64M)\n"
    "  -f, --factor N       factor from one size to the next (2)\n"
    "      --sizes LIST     these sizes instead, such as 8,64K,1M\n"
    "      --ops NAMES      all_reduce,reduce,broadcast,all_gather,gather,scatter,reduce_scatter,\n"
    "                       all_to_all,barrier,ping_pong,send_recv (all of them)\n"
    "  -o, --op OP          sum avg product min max band bor bxor (sum)\n"
    "  -d, --dtype TYPE     f32, or another of ct.h (f32)\n"
    "  -r, --root N         rank of the root (0)\n"
    "      --in-place, --out-of-place, --both    where the result goes (both)\n"
    "      --memory any|ct|cuda    buffers: the process's own (any), of ct_mem_alloc(), or of a\n"
    "                       GPU: CT_BENCH_GPU, or LOCAL_RANK modulo the number of GPUs\n"
    "      --in-stream      the calls of a sample follow each other in a CUDA stream, and the\n"
    "                       host waits only after the last one\n"
    "      --check          compare each result, bit for bit, with the expected one\n"
    "  -n, --iters N        samples of a row (as many as fit into --time)\n"
    "  -w, --warmup N       calls before the samples (5)\n"
    "      --calls N        calls in a sample (as many as fill 10 us)\n"
    "      --time MS        time for a row (100)\n"
    "      --limits         also print what this host allows, and the limit of each row;\n"
    "                       --limits=only: no rows\n"
    "      --model[=GB/s]   also print what the algorithm of each row takes if only bytes on the\n"
    "                       wire count; the bandwidth is given, or measured between ranks 0 and "
    "N-1\n"
    "      --simulate[=HOSTSxRANKS] ...    first of all, without a launcher: the algorithms on\n"
    "                       thousands of simulated hosts; ct_bench --simulate --help\n"
    "      --csv FILE, --json FILE    rank 0 also writes the rows, with all digits\n"
    "      --tune FILE      measure each algorithm at each size instead, and write which is the\n"
    "                       fastest up to which size; CT_TUNING=FILE makes programs use it\n";

struct row {
    const char *name;
    int letter; /* 0: it has none */
    int value;  /* required_argument and its like */
    void (*take)(struct options *o, const struct row *row, const char *text);
    size_t field;    /* of struct options, for what many have in common */
    int least, most; /* of a number */
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

/* ---- What many have in common --------------------------------------------- */

static void *field_of(struct options *o, const struct row *row)
{
    return (char *)o + row->field;
}

static void take_size(struct options *o, const struct row *row, const char *text)
{
    if (size_read(text, field_of(o, row)) < 0)
        wrong(o, "--%s=%s is no size; give bytes from 1 to 1024G, such as 8, 64K or 16M", row->name,
              text);
}

/* *value stays if it is wrong. */
static void read_number(struct options *o, const struct row *row, const char *text, int *value)
{
    char *end;
    long number;

    errno = 0;
    number = strtol(text, &end, 10);
    if (end == text || *end || errno || number < row->least || number > row->most)
        wrong(o, "--%s=%s: give a number from %d to %d", row->name, text, row->least, row->most);
    else
        *value = (int)number;
}

static void take_number(struct options *o, const struct row *row, const char *text)
{
    read_number(o, row, text, field_of(o, row));
}

static void take_text(struct options *o, const struct row *row, const char *text)
{
    *(const char **)field_of(o, row) = text;
}

static void take_flag(struct options *o, const struct row *row, const char *text)
{
    (void)text;
    *(int *)field_of(o, row) = 1;
}

/* ---- One of a kind --------------------------------------------------------- */

static void take_factor(struct options *o, const struct row *row, const char *text)
{
    int factor = 2;

    read_number(o, row, text, &factor);
    o->range.factor = (size_t)factor;
}

static void take_time(struct options *o, const struct row *row, const char *text)
{
    int ms = 1;

    read_number(o, row, text, &ms);
    o->effort.budget_ms = ms;
}

static void take_sizes(struct options *o, const struct row *row, const char *list)
{
    const char *at_fault = sizes_list(&o->sizes, list);

    if (at_fault)
        wrong(o, "--%s: \"%s\": give up to %d sizes in bytes, such as 8,64K,16M", row->name,
              at_fault, MOST_SIZES);
}

static void take_type(struct options *o, const struct row *row, const char *text)
{
    const int dtype = dtype_named(text);
    char names[200];

    dtype_names(names, sizeof names);
    if (dtype < 0)
        wrong(o, "--%s=%s is none of %s", row->name, text, names);
    else
        o->dtype = (ct_dtype)dtype;
}

static void take_op(struct options *o, const struct row *row, const char *text)
{
    char names[100];

    op_names(names, sizeof names);
    o->op = op_named(text);
    if (o->op < 0)
        wrong(o, "--%s=%s is none of %s", row->name, text, names);
}

static void take_only(struct options *o, const struct row *row, const char *text)
{
    (void)text;
    o->in_place = o->out_of_place = 0;
    *(int *)field_of(o, row) = 1;
}

static void take_both(struct options *o, const struct row *row, const char *text)
{
    (void)row;
    (void)text;
    o->in_place = o->out_of_place = 1;
}

static void take_memory(struct options *o, const struct row *row, const char *text)
{
    o->memory = strcmp(text, "ct") == 0     ? SHARED_MEMORY
                : strcmp(text, "cuda") == 0 ? DEVICE_MEMORY
                                            : ANY_MEMORY;
    if (o->memory == ANY_MEMORY && strcmp(text, "any") != 0)
        wrong(o, "--%s=%s: there are any, ct and cuda", row->name, text);
}

static void take_limits(struct options *o, const struct row *row, const char *text)
{
    o->limits = text ? ONLY_LIMITS : WITH_LIMITS;
    if (text && strcmp(text, "only") != 0)
        wrong(o, "--%s=%s: there are --limits and --limits=only", row->name, text);
}

static void take_model(struct options *o, const struct row *row, const char *text)
{
    char *end;

    o->model = 1;
    if (!text)
        return;
    o->wire = strtod(text, &end);
    if (end == text || *end || !(o->wire > 0 && o->wire < 1e6))
        wrong(o, "--%s=%s: give the bandwidth of a wire in GB/s, such as 1.25", row->name, text);
}

/* ---- The rows -------------------------------------------------------------- */

#define FIELD(name) offsetof(struct options, name)
enum { NO = no_argument, YES = required_argument, MAY = optional_argument };

/* A new option is a row here, a field in struct options, and a line of the usage. */
static const struct row rows[] = {
    { "begin", 'b', YES, take_size, FIELD(range.begin), 0, 0 },
    { "end", 'e', YES, take_size, FIELD(range.end), 0, 0 },
    { "factor", 'f', YES, take_factor, 0, 2, INT_MAX },
    { "sizes", 0, YES, take_sizes, 0, 0, 0 },
    { "ops", 0, YES, take_text, FIELD(ops), 0, 0 },
    { "op", 'o', YES, take_op, 0, 0, 0 },
    { "dtype", 'd', YES, take_type, 0, 0, 0 },
    { "root", 'r', YES, take_number, FIELD(root), 0, INT_MAX },
    { "in-place", 0, NO, take_only, FIELD(in_place), 0, 0 },
    { "out-of-place", 0, NO, take_only, FIELD(out_of_place), 0, 0 },
    { "both", 0, NO, take_both, 0, 0, 0 },
    { "memory", 0, YES, take_memory, 0, 0, 0 },
    { "in-stream", 0, NO, take_flag, FIELD(in_stream), 0, 0 },
    { "check", 0, NO, take_flag, FIELD(check), 0, 0 },
    { "iters", 'n', YES, take_number, FIELD(effort.samples), 1, MOST_SAMPLES },
    { "warmup", 'w', YES, take_number, FIELD(effort.warmup), 0, INT_MAX },
    { "calls", 0, YES, take_number, FIELD(effort.calls), 1, INT_MAX },
    { "time", 0, YES, take_time, 0, 1, INT_MAX },
    { "limits", 0, MAY, take_limits, 0, 0, 0 },
    { "model", 0, MAY, take_model, 0, 0, 0 },
    { "csv", 0, YES, take_text, FIELD(csv), 0, 0 },
    { "json", 0, YES, take_text, FIELD(json), 0, 0 },
    { "tune", 0, YES, take_text, FIELD(tune), 0, 0 },
    { "help", 0, NO, take_flag, FIELD(help), 0, 0 },
};
enum { ROWS = sizeof rows / sizeof *rows, WORD = 256 }; /* no letter is WORD + number of the row */

/* As getopt_long() wants them. */
static void list_rows(struct option words[ROWS + 1], char letters[2 + 2 * ROWS + 1])
{
    char *at = letters + sprintf(letters, "+:");

    for (int i = 0; i < ROWS; i++) {
        words[i] = (struct option){ rows[i].name, rows[i].value, NULL, WORD + i };
        if (rows[i].letter)
            at += sprintf(at, "%c%s", rows[i].letter, rows[i].value == YES ? ":" : "");
    }
    words[ROWS] = (struct option){ NULL, 0, NULL, 0 };
}

/* Of what getopt_long() gave. */
static const struct row *row_of(int word)
{
    int i = 0;

    if (word >= WORD)
        return &rows[word - WORD];
    while (rows[i].letter != word)
        i++;
    return &rows[i];
}

static void take_words(struct options *o, int argc, char **argv)
{
    struct option words[ROWS + 1];
    char letters[2 + 2 * ROWS + 1];
    int word;

    list_rows(words, letters);
    opterr = 0;
    while ((word = getopt_long(argc, argv, letters, words, NULL)) != -1) {
        if (word == '?')
            wrong(o, "%s is no option, or not complete; --help lists them", argv[optind - 1]);
        else if (word == ':')
            wrong(o, "%s wants a value", argv[optind - 1]);
        else
            row_of(word)->take(o, row_of(word), optarg);
    }
    if (optind < argc)
        wrong(o, "\"%s\" is no option; --help lists them", argv[optind]);
}

/* ---- All of them ----------------------------------------------------------- */

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
    *o = (struct options){ .range = { 8, 64 << 20, 2 },
                           .dtype = CT_F32,
                           .op = CT_SUM,
                           .in_place = 1,
                           .out_of_place = 1,
                           .effort = { .warmup = 5, .budget_ms = 100 } };
    take_words(o, argc, argv);
    if (o->range.begin > o->range.end)
        wrong(o, "--begin=%zu is more than --end=%zu", o->range.begin, o->range.end);
    if (o->tune && o->memory == DEVICE_MEMORY)
        wrong(o, "--tune chooses among the algorithms of host memory: leave --memory=cuda out");
    if (o->in_stream && o->memory != DEVICE_MEMORY)
        wrong(o, "--in-stream: host memory has no streams; add --memory=cuda");
    if (o->sizes.count == 0)
        sizes_range(&o->sizes, &o->range);
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
