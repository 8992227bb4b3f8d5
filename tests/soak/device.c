/* SPDX-License-Identifier: Apache-2.0 */
/* device.c - device_soak: many calls on device memory, under ctrun.
 *
 *   device_soak CALLS              a line of rank 0 at the end: how long a call took, what grew
 *   device_soak CALLS VICTIM MS    rank VICTIM kills itself after MS, wherever it is then
 *   device_soak CALLS VICTIM MS BYTES    the same; all calls are an all_reduce of so many bytes,
 *                                  so the GPU is probably in one of them
 *
 * Of ten calls eight are an all_reduce of 8 bytes, one is an all_gather, one an all_reduce of half
 * a MiB; each thousandth has buffers of its own, so that addresses come back with other memory
 * behind them.  Results are checked, of many calls those of each 101st: to read them costs more
 * than the call where several processes want the GPU.
 *
 * With a victim each rank prints a line: its clock when it died, or was told.  Then a survivor
 * fills its buffer and compares 200 ms later, since a kernel of the dead leader's might still write
 * there; the line says whether the buffer stayed as it was, and whether the GPU still works.
 *
 * Exits with 1 if a result is wrong, a call fails although all ranks live, or descriptors or
 * its own memory grow from a tenth of the way on; what it shares with others the system may take
 * and give back as it likes. */
#include <dirent.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "include/ct.h"
#include "tests/cuda/device.h"

enum { FEW = 2, MANY = 1 << 17, MOST_RANKS = 64, GROWTH_KB = 4096 };

struct buffers {
    int32_t *send, *recv;
};

static int rank, ranks;
static size_t many = MANY; /* elements of a buffer */
static int32_t *here;
static int only_large;

static int fails(const char *what)
{
    fprintf(stderr, "device_soak: rank %d: %s: %s\n", rank, what, ct_last_error());
    return 1;
}

static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static int read_back(const int32_t *there, size_t count)
{
    return device.cuMemcpyDtoH(here, at(there), count * sizeof *here) == CUDA_SUCCESS;
}

/* The send buffer has rank + 1 everywhere, which no call changes. */
static int get_buffers(struct buffers *b)
{
    b->send = device_alloc(many * sizeof *here, 0);
    b->recv = device_alloc(many * sizeof *here, 0xa5);
    for (size_t i = 0; i < many; i++)
        here[i] = rank + 1;
    return b->send && b->recv && device_put(at(b->send), here, many * sizeof *here) == CUDA_SUCCESS;
}

/* Nobody may use them any more, in no process. */
static ct_status give_back(struct buffers *b)
{
    const ct_status status = ct_barrier(CT_WORLD, NULL);

    device_free(b->send);
    device_free(b->recv);
    return status;
}

/* 1, and says it. */
static int wrong(int64_t call, int i, int wanted)
{
    fprintf(stderr, "device_soak: rank %d: call %" PRId64 ": element %d is %d, not %d\n", rank,
            call, i, here[i], wanted);
    return 1;
}

static int all_are(const struct buffers *b, int64_t call, size_t count, int wanted)
{
    if (!read_back(b->recv, count))
        return fails("reading a result");
    for (size_t i = 0; i < count; i++)
        if (here[i] != wanted)
            return wrong(call, (int)i, wanted);
    return 0;
}

static int check_gathered(const struct buffers *b, int64_t call)
{
    if (!read_back(b->recv, (size_t)ranks * FEW))
        return fails("reading a result");
    for (int i = 0; i < ranks * FEW; i++)
        if (here[i] != i / FEW + 1)
            return wrong(call, i, i / FEW + 1);
    return 0;
}

/* The result of the one before would be wrong. */
static ct_status make_call(const struct buffers *b, int64_t call, int check, int *bad)
{
    const int sum = ranks * (ranks + 1) / 2;
    const size_t count = only_large || call % 10 == 9 ? many : FEW;
    const ct_op op = call % 2 ? CT_SUM : CT_MAX;
    ct_status status;

    if (call % 10 == 8 && !only_large) {
        status = ct_all_gather(CT_WORLD, b->send, b->recv, FEW, CT_I32, NULL);
        *bad = status == CT_OK && check && check_gathered(b, call);
        return status;
    }
    status = ct_all_reduce(CT_WORLD, b->send, b->recv, count, CT_I32, op, NULL);
    if (status == CT_OK && check)
        *bad = all_are(b, call, count, op == CT_SUM ? sum : ranks);
    return status;
}

struct use {
    long own_kb;
    int descriptors;
};

static struct use use_now(void)
{
    struct use use = { -1, 0 };
    FILE *status = fopen("/proc/self/status", "re");
    DIR *dir = opendir("/proc/self/fd");
    char line[128];

    while (status && fgets(line, sizeof line, status))
        if (!strncmp(line, "RssAnon:", 8))
            use.own_kb = strtol(line + 8, NULL, 10);
    while (dir && readdir(dir))
        use.descriptors++;
    if (status)
        fclose(status);
    if (dir)
        closedir(dir);
    return use;
}

static int grew(const struct use *before, const struct use *after)
{
    if (after->descriptors <= before->descriptors && after->own_kb <= before->own_kb + GROWTH_KB)
        return 0;
    fprintf(stderr,
            "device_soak: rank %d: from %d to %d descriptors, from %ld to %ld kB of its own\n",
            rank, before->descriptors, after->descriptors, before->own_kb, after->own_kb);
    return 1;
}

/* ---- A death ----------------------------------------------------------------------- */

static void *die(void *ms)
{
    const long long us = *(const int *)ms * 1000LL;
    const struct timespec wait = { us / 1000000, us % 1000000 * 1000 };

    nanosleep(&wait, NULL);
    printf("rank %d died at %.3f\n", rank, now_ms());
    fflush(stdout);
    raise(SIGKILL); /* of the process, in whatever its other thread is */
    return NULL;
}

/* The call has given the buffer back: nothing but this rank writes to it. */
static int is_left_alone(const int32_t *buffer)
{
    const int32_t pattern = 0x5a5a5a5a;
    const struct timespec wait = { 0, 200000000 };

    if (device.cuMemsetD8Async(at(buffer), 0x5a, many * sizeof *here, NULL) != CUDA_SUCCESS
        || device.cuStreamSynchronize(NULL) != CUDA_SUCCESS)
        return 0;
    nanosleep(&wait, NULL);
    if (!read_back(buffer, many))
        return 0;
    for (size_t i = 0; i < many; i++)
        if (here[i] != pattern)
            return 0;
    return 1;
}

static int told(ct_status status, const struct buffers *b)
{
    const double ms = now_ms();
    char reason[512];
    int works, alone;

    snprintf(reason, sizeof reason, "%s: %s", ct_strerror(status), ct_last_error());
    alone = is_left_alone(b->recv);
    works = read_back(b->send, FEW) && here[0] == rank + 1;
    printf("rank %d told at %.3f: %s; its GPU %s, its buffer %s\n", rank, ms, reason,
           works ? "works" : "works no more", alone ? "stays" : "changed");
    fflush(stdout);
    return status == CT_ERR_PEER && works && alone ? 0 : 1;
}

/* ---- All ------------------------------------------------------------------------------ */

static int go_on(int64_t calls, struct buffers *b, int victims)
{
    const int64_t check_each = only_large      ? calls /* to compare would take most of the time */
                               : calls > 10000 ? 101   /* odd: sums and maxima take turns */
                                               : 1;
    struct use before = { 0 }, after;
    const double began = now_ms();
    int bad = 0;

    for (int64_t i = 0; i < calls && !bad; i++) {
        ct_status status = make_call(b, i, (i + 1) % check_each == 0 || i == calls - 1, &bad);

        if (status == CT_OK && i % 1000 == 999) {
            status = give_back(b);
            if (status == CT_OK && !get_buffers(b))
                return fails("getting device memory again");
        }
        if (status != CT_OK)
            return victims ? told(status, b) : fails("a call");
        if (i == calls / 10)
            before = use_now();
    }
    after = use_now();
    if (rank == 0)
        printf("calls %" PRId64 ", us %.3f, own memory kB %ld to %ld, descriptors %d to %d\n",
               calls, (now_ms() - began) * 1e3 / (double)calls, before.own_kb, after.own_kb,
               before.descriptors, after.descriptors);
    return bad || grew(&before, &after);
}

int main(int argc, char **argv)
{
    const int64_t calls = argc > 1 ? strtoll(argv[1], NULL, 10) : 0;
    const int victim = argc >= 4 ? (int)strtol(argv[2], NULL, 10) : -1;
    int ms = argc >= 4 ? (int)strtol(argv[3], NULL, 10) : 0, bad;
    struct buffers b = { NULL, NULL };
    pthread_t killer;

    if (calls < 1 || (argc != 2 && argc != 4 && argc != 5))
        return 2;
    only_large = argc == 5;
    if (only_large)
        many = (size_t)strtoll(argv[4], NULL, 10) / sizeof *here;
    here = malloc(many * sizeof *here);
    if (!here || many < MOST_RANKS * FEW)
        return 2;
    if (ct_init_process_group(NULL) != CT_OK)
        return fails("init");
    rank = ct_rank(CT_WORLD);
    ranks = ct_size(CT_WORLD);
    if (ranks > MOST_RANKS || !device_open(0) || !get_buffers(&b))
        return fails("no GPU, or no memory there");
    if (ct_barrier(CT_WORLD, NULL) != CT_OK
        || (rank == victim && pthread_create(&killer, NULL, die, &ms) != 0))
        return fails("the start");
    bad = go_on(calls, &b, victim >= 0);
    if (victim >= 0) {
        printf("rank %d ends\n", rank);
        return bad;
    }
    if (!bad && give_back(&b) != CT_OK)
        bad = fails("the end");
    ct_destroy_process_group(CT_WORLD);
    return bad;
}
