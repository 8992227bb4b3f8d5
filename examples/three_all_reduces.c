/* SPDX-License-Identifier: Apache-2.0 */
/* three_all_reduces.c - three ways to give every rank the sum of all, and what each costs.
 *
 *     ctrun --nproc-per-node=4 build/bin/three_all_reduces [--device] [--floats=N] [--repeats=N]
 *
 *     1  ct_all_reduce()
 *     2  ct_reduce() to rank 0, then ct_broadcast() from it
 *     3  ct_reduce_scatter(), then ct_all_gather()
 *
 * The program measures a sweep of sizes up to 2^20 floats for each rank (--floats).  The three ways
 * take turns, with a barrier before each, so that what disturbs the machine disturbs all three.
 * The time of a turn is the longest of the ranks' times, and the program shows the median of
 * --repeats (51) turns.  The floats are such that another order of adding gives other bits.  The
 * three results are compared bit by bit, on each rank and between the ranks.  --device repeats all
 * this in the memory of the ranks' GPUs; libct itself finds out which memory a pointer is of. */
#include <ct.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "device.h"

enum { WAYS = 3, FLOATS = 1 << 20, REPEATS = 51, SMALLEST = 1 << 8, STEP = 1 << 4 };

static const char *const ways[WAYS] = {
    "all_reduce",
    "reduce + broadcast",
    "reduce_scatter + all_gather",
};

static int rank, size;

static void check(ct_status status)
{
    if (status == CT_OK)
        return;
    fprintf(stderr, "three_all_reduces: rank %d: %s\n", rank, ct_last_error());
    exit(1);
}

/* All end, and not before it is said: ctrun stops the others when the first one ends. */
static void end_after(const char *sentence, int whose)
{
    if (rank == whose)
        fprintf(stderr, "three_all_reduces: rank %d: %s\n", rank, sentence);
    check(ct_barrier(CT_WORLD, NULL));
    exit(1);
}

/* If any rank has a sentence ("": none), the first one that has says it, and all end. */
static void agree(const char *sentence)
{
    int first = *sentence ? rank : size;

    check(ct_all_reduce(CT_WORLD, &first, &first, 1, CT_I32, CT_MIN, NULL));
    if (first < size)
        end_after(sentence, first);
}

/* ---- Memory of either kind ----------------------------------------------------------- */

/* A block of floats for each rank in two buffers: what a rank gives, and what it gets. */
struct buffers {
    const struct driver *driver; /* NULL: the host's memory */
    size_t block;                /* floats; size blocks are at least the floats that are added */
    float *send, *recv;
    float *seen; /* the host's, for looking at recv */
};

static void *host_memory(size_t bytes)
{
    void *memory = calloc(1, bytes);

    if (!memory) {
        fprintf(stderr, "three_all_reduces: rank %d: no memory for %zu bytes\n", rank, bytes);
        exit(1);
    }
    return memory;
}

static void check_device(const struct driver *driver, int result, const char *what)
{
    if (result == DEVICE_OK)
        return;
    fprintf(stderr, "three_all_reduces: rank %d: %s: %s\n", rank, what,
            driver_text(driver, result));
    exit(1);
}

static float *memory(const struct driver *driver, size_t bytes)
{
    device_pointer at;

    if (!driver)
        return host_memory(bytes);
    check_device(driver, driver->alloc(&at, bytes), "memory of the GPU");
    return (float *)(size_t)at;
}

static void put(const struct buffers *b, float *to, const float *from, size_t bytes)
{
    if (b->driver)
        check_device(b->driver, b->driver->from_host((size_t)to, from, bytes), "a copy to the GPU");
    else
        memcpy(to, from, bytes);
}

static void get(const struct buffers *b, float *to, const float *from, size_t bytes)
{
    if (b->driver)
        check_device(b->driver, b->driver->to_host(to, (size_t)from, bytes), "a copy from the GPU");
    else
        memcpy(to, from, bytes);
}

static size_t bytes_of(const struct buffers *b)
{
    return b->block * (size_t)size * sizeof(float);
}

/* Thirds, fifths and so on, of which no two ranks have the same: each sum is rounded. */
static float *make_input(size_t floats)
{
    float *input = host_memory(floats * sizeof *input);

    for (size_t i = 0; i < floats; i++)
        input[i] = 1.0f / (float)(3 + (i * 7 + (size_t)rank * 13) % 1021);
    return input;
}

static void buffers_open(struct buffers *b, const struct driver *driver, size_t floats)
{
    float *input;

    *b = (struct buffers){ .driver = driver, .block = (floats + (size_t)size - 1) / (size_t)size };
    b->send = memory(driver, bytes_of(b));
    b->recv = memory(driver, bytes_of(b));
    b->seen = host_memory(bytes_of(b));
    input = make_input(b->block * (size_t)size);
    put(b, b->send, input, bytes_of(b));
    free(input);
}

static void buffers_close(struct buffers *b)
{
    if (b->driver) {
        check_device(b->driver, b->driver->release((size_t)b->send), "to free the GPU's memory");
        check_device(b->driver, b->driver->release((size_t)b->recv), "to free the GPU's memory");
    } else {
        free(b->send);
        free(b->recv);
    }
    free(b->seen);
}

/* ---- The three ways -------------------------------------------------------------------- */

static void go(const struct buffers *b, int way, size_t floats)
{
    const size_t block = (floats + (size_t)size - 1) / (size_t)size;
    float *mine = b->recv + (size_t)rank * block;

    switch (way) {
    case 0:
        check(ct_all_reduce(CT_WORLD, b->send, b->recv, floats, CT_F32, CT_SUM, NULL));
        break;
    case 1:
        check(ct_reduce(CT_WORLD, b->send, b->recv, floats, CT_F32, CT_SUM, 0, NULL));
        check(ct_broadcast(CT_WORLD, b->recv, floats, CT_F32, 0, NULL));
        break;
    default: /* equal blocks: the last one has up to size - 1 floats more */
        check(ct_reduce_scatter(CT_WORLD, b->send, mine, block, CT_F32, CT_SUM, NULL));
        check(ct_all_gather(CT_WORLD, mine, b->recv, block, CT_F32, NULL));
    }
}

static double now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* us[way]: the median over the turns of what the slowest rank took. */
static void measure(const struct buffers *b, size_t floats, int repeats, double *us)
{
    double *times = host_memory((size_t)repeats * WAYS * sizeof *times);

    for (int turn = -2; turn < repeats; turn++) /* two for nothing: first touches */
        for (int way = 0; way < WAYS; way++) {
            double begin;

            check(ct_barrier(CT_WORLD, NULL));
            begin = now_us();
            go(b, way, floats);
            if (turn >= 0)
                times[way * repeats + turn] = now_us() - begin;
        }
    check(ct_all_reduce(CT_WORLD, times, times, (size_t)repeats * WAYS, CT_F64, CT_MAX, NULL));
    for (int way = 0; way < WAYS; way++) {
        qsort(times + way * repeats, (size_t)repeats, sizeof *times, by_size);
        us[way] = times[way * repeats + repeats / 2];
    }
    free(times);
}

/* Bit by bit: each way's result against the first one's, and rank 0's against all others'. */
static void compare(const struct buffers *b, size_t floats)
{
    unsigned *first = host_memory(floats * sizeof *first);
    const size_t bytes = floats * sizeof *first;
    char sentence[200] = "";

    for (int way = 0; way < WAYS && !*sentence; way++) {
        const unsigned *seen = (const unsigned *)(const void *)b->seen;
        size_t i = 0;

        memset(b->seen, 0xff, bytes); /* what the way before left must not count */
        put(b, b->recv, b->seen, bytes);
        go(b, way, floats);
        get(b, b->seen, b->recv, bytes);
        if (way == 0) {
            memcpy(first, seen, bytes);
            check(ct_broadcast(CT_WORLD, first, floats, CT_U32, 0, NULL));
        }
        while (i < floats && first[i] == seen[i])
            i++;
        if (i < floats)
            snprintf(sentence, sizeof sentence,
                     "float %zu of %zu by %s is %.9g, by rank 0's all_reduce %.9g%s", i, floats,
                     ways[way], (double)b->seen[i], (double)((float *)(void *)first)[i],
                     getenv("CT_ORDER") ? " (CT_ORDER lets each way add in its own order)" : "");
    }
    free(first);
    agree(sentence);
}

/* ---- What is printed --------------------------------------------------------------------- */

static void name_bytes(double bytes, char text[24])
{
    static const char *const units[] = { "B", "KiB", "MiB", "GiB" };
    int unit = 0;

    for (; unit < 3 && bytes >= 1024; unit++)
        bytes /= 1024;
    snprintf(text, 24, "%.4g %s", bytes, units[unit]);
}

/* As a textbook counts: what has to get from one rank to another, by the shortest way of each. */
static void print_bytes(size_t floats)
{
    const double s = (double)floats * sizeof(float), p = size;
    const double sent[WAYS][2] = {
        /* by a rank, by rank 0 */
        { 2 * (p - 1) / p * s, 2 * (p - 1) / p * s },
        { size > 1 ? s : 0, (p - 1) * s },
        { 2 * (p - 1) / p * s, 2 * (p - 1) / p * s },
    };
    char whole[24];

    name_bytes(s, whole);
    printf("Bytes that must get from rank to rank, S = %s each, p = %d:\n", whole, size);
    printf("  %-30s%14s%14s%14s\n", "", "a rank sends", "rank 0 sends", "in all");
    for (int way = 0; way < WAYS; way++) {
        char rank_sends[24], root_sends[24], all[24];

        name_bytes(sent[way][0], rank_sends);
        name_bytes(sent[way][1], root_sends);
        name_bytes(sent[way][1] + (p - 1) * sent[way][0], all);
        printf("  %-30s%14s%14s%14s\n", ways[way], rank_sends, root_sends, all);
    }
    printf(
        "\nThe factors: all three ways move 2(p-1) S in all, for p-1 of the p inputs must go\n"
        "somewhere to be added and p-1 ranks must get the sum.  Who carries it differs.\n"
        "Reduce-scatter and all-gather share it evenly: each rank sends (p-1)/p S twice, 2(p-1)/p "
        "S,\n"
        "which stays below 2 S however many ranks there are; a good all-reduce is those two steps "
        "in\n"
        "one call, so it saves a start, and for few bytes it sends p-1 copies at once instead.\n"
        "Reduce and broadcast lead all through rank 0: it takes in (p-1) S and gives out (p-1) S,\n"
        "p/2 times as much as an even share (in a chain of small pieces S and S, and p steps to "
        "fill\n"
        "it).  So bus bandwidth is S / time * 2(p-1)/p: what each rank's link carries, comparable\n"
        "for all p; here %.4g.\n",
        2 * (p - 1) / p);
}

static void sweep(const struct driver *driver, size_t floats, int repeats)
{
    size_t first = SMALLEST < floats ? SMALLEST : floats;
    struct buffers b;

    buffers_open(&b, driver, floats);
    if (rank == 0)
        printf("\n%s memory, us (median of %d) and GB/s of the bus:\n  %-12s%18s%24s%32s\n",
               driver ? "Device" : "Host", repeats, "bytes", ways[0], ways[1], ways[2]);
    for (size_t n = first; n <= floats; n = n < floats && n * STEP > floats ? floats : n * STEP) {
        const double bus = 2.0 * (size - 1) / size * (double)n * sizeof(float) / 1e3;
        double us[WAYS];

        compare(&b, n);
        measure(&b, n, repeats, us);
        if (rank == 0)
            printf("  %-12zu%10.1f %7.2f%16.1f %7.2f%24.1f %7.2f\n", n * sizeof(float), us[0],
                   bus / us[0], us[1], bus / us[1], us[2], bus / us[2]);
    }
    if (rank == 0)
        printf("  The three results are the same, bit by bit, on all %d ranks.\n", size);
    buffers_close(&b);
}

/* ---- Start --------------------------------------------------------------------------------- */

struct options {
    int device, repeats;
    size_t floats;
};

static int is_number(const char *text, long long most, long long *value)
{
    char *end;

    *value = strtoll(text, &end, 10);
    return *text && !*end && *value > 0 && *value <= most;
}

static void read_options(struct options *options, char **argv)
{
    char sentence[200];
    long long value;

    *options = (struct options){ .repeats = REPEATS, .floats = FLOATS };
    for (char **word = argv + 1; *word; word++) {
        if (!strcmp(*word, "--device"))
            options->device = 1;
        else if (!strncmp(*word, "--floats=", 9) && is_number(*word + 9, 1LL << 32, &value))
            options->floats = (size_t)value;
        else if (!strncmp(*word, "--repeats=", 10) && is_number(*word + 10, 1000000, &value))
            options->repeats = (int)value;
        else {
            snprintf(sentence, sizeof sentence,
                     "%s is none of --device, --floats=N and --repeats=N, N at least 1", *word);
            end_after(sentence, 0); /* all have the same words */
        }
    }
}

/* The ranks of a host take its GPUs in turn. */
static void open_device(struct driver *driver)
{
    char why[200] = "";
    const int count = driver_open(driver, why, sizeof why);
    device_context context;

    agree(count > 0 ? "" : why);
    check_device(driver, driver->retain(&context, ct_local_rank() % count), "the GPU");
    check_device(driver, driver->use(context), "the GPU");
}

int main(int argc, char **argv)
{
    struct options options;
    struct driver driver;

    (void)argc;
    check(ct_init_process_group(NULL));
    rank = ct_rank(CT_WORLD);
    size = ct_size(CT_WORLD);
    read_options(&options, argv);
    if (options.device)
        open_device(&driver);
    if (rank == 0)
        print_bytes(options.floats);
    sweep(NULL, options.floats, options.repeats);
    if (options.device)
        sweep(&driver, options.floats, options.repeats);
    check(ct_destroy_process_group(CT_WORLD));
    if (fflush(stdout) != 0) {
        perror("three_all_reduces: stdout");
        return 1;
    }
    return 0;
}
