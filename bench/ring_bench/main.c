/* SPDX-License-Identifier: Apache-2.0 */
/* ring_bench - how long broadcasts and all-reduces in a ring take, beside one message.
 *
 *     CT_LINK=tcp ctrun --nproc-per-node=4 ring_bench [ROUNDS] >rows.csv
 *
 * A round measures each row once, so what else the machine does hits all alike.  A row is the
 * median of the rounds and its quartiles, of the time from a barrier until the last rank has done:
 *
 *     word        1 byte to rank 1 and back, halved
 *     message     to rank 1, and 1 byte back
 *     broadcast   ct_broadcast() by algorithm "ring", in segments of its own size
 *     chain       the same by ct_isend() and ct_recv(), in as many segments as the row says
 *     all_reduce  ct_all_reduce() by algorithm "ring"
 *
 * scripts/figures draws them beside what the model says. */
#include <ct.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 15, MOST_ROWS = 32, MOST_BYTES = 16 << 20 };
enum { SWEPT_BYTES = 1 << 20, MOST_SEGMENTS = 1024 };

struct row {
    const char *what;
    void (*run)(const struct row *row, unsigned char *data);
    size_t bytes;
    int segments;
    double *us; /* of each round */
};

static int rank, size;
static ct_group *ring; /* all ranks */

static void check(ct_status status)
{
    if (status == CT_OK)
        return;
    fprintf(stderr, "ring_bench: rank %d: %s\n", rank, ct_last_error());
    exit(1);
}

static void *memory(size_t count, size_t each)
{
    void *all = calloc(count, each);

    if (!all) {
        fprintf(stderr, "ring_bench: rank %d: no memory for %zu bytes\n", rank, count * each);
        exit(1);
    }
    return all;
}

static double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* ---- What a row does ------------------------------------------------------------------- */

static void message(const struct row *row, unsigned char *data)
{
    unsigned char word = 0;

    if (rank == 0) {
        check(ct_send(CT_WORLD, data, row->bytes, CT_U8, 1, 0));
        check(ct_recv(CT_WORLD, &word, 1, CT_U8, 1, 0, NULL));
    } else if (rank == 1) {
        check(ct_recv(CT_WORLD, data, row->bytes, CT_U8, 0, 0, NULL));
        check(ct_send(CT_WORLD, &word, 1, CT_U8, 0, 0));
    }
}

/* A segment goes on while the next one comes. */
static void chain(const struct row *row, unsigned char *data)
{
    const size_t bytes = row->bytes / (size_t)row->segments;
    ct_work *going = NULL;

    for (int i = 0; i < row->segments; i++) {
        unsigned char *segment = data + bytes * (size_t)i;

        if (rank > 0)
            check(ct_recv(CT_WORLD, segment, bytes, CT_U8, rank - 1, 0, NULL));
        if (going)
            check(ct_wait(going));
        if (rank < size - 1)
            check(ct_isend(CT_WORLD, segment, bytes, CT_U8, rank + 1, 0, &going));
    }
    if (going)
        check(ct_wait(going));
}

static void broadcast(const struct row *row, unsigned char *data)
{
    check(ct_broadcast(ring, data, row->bytes, CT_U8, 0, NULL));
}

static void all_reduce(const struct row *row, unsigned char *data)
{
    check(ct_all_reduce(ring, data, data, row->bytes / 4, CT_I32, CT_BXOR, NULL));
}

/* ---- Rounds ------------------------------------------------------------------------------ */

/* All bytes are rank 0's afterwards, but of an all-reduce. */
static void fill(unsigned char *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        data[i] = rank == 0 ? (unsigned char)(i * 31 >> 3) : 0;
}

static void compare(const struct row *row, const unsigned char *data)
{
    for (size_t i = 0; i < row->bytes; i++)
        if (data[i] != (unsigned char)(i * 31 >> 3)) {
            fprintf(stderr, "ring_bench: rank %d: byte %zu of a %s of %zu bytes is wrong\n", rank,
                    i, row->what, row->bytes);
            exit(1);
        }
}

/* XOR with zeros is rank 0's data, too, so each first result is compared. */
static void measure(struct row *row, int round, unsigned char *data)
{
    double us;

    if (round == 0)
        fill(data, row->bytes);
    check(ct_barrier(CT_WORLD, NULL));
    us = now_us();
    row->run(row, data);
    us = now_us() - us;
    if (round == 0 && row->run != message)
        compare(row, data);
    check(ct_all_reduce(CT_WORLD, &us, &us, 1, CT_F64, CT_MAX, NULL));
    row->us[round] = row->bytes == 1 ? us / 2 : us;
}

static int by_time(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void add(struct row *rows, int *count, const struct row *row, int rounds)
{
    rows[*count] = *row;
    rows[(*count)++].us = memory((size_t)rounds, sizeof(double));
}

static int list_rows(struct row *rows, int rounds)
{
    int count = 0;

    add(rows, &count, &(struct row){ "word", message, 1, 1, NULL }, rounds);
    for (int n = 64 << 10; n <= MOST_BYTES; n *= 4) {
        const size_t bytes = (size_t)n;

        add(rows, &count, &(struct row){ "message", message, bytes, 1, NULL }, rounds);
        add(rows, &count, &(struct row){ "broadcast", broadcast, bytes, 0, NULL }, rounds);
        add(rows, &count, &(struct row){ "all_reduce", all_reduce, bytes, 0, NULL }, rounds);
    }
    for (int s = 1; s <= MOST_SEGMENTS; s *= 2)
        add(rows, &count, &(struct row){ "chain", chain, SWEPT_BYTES, s, NULL }, rounds);
    return count;
}

int main(int argc, char **argv)
{
    ct_group_options options = CT_GROUP_OPTIONS_INIT;
    const int rounds = argc > 1 ? atoi(argv[1]) : ROUNDS;
    unsigned char *data;
    struct row rows[MOST_ROWS];
    int count;

    check(ct_init_process_group(NULL));
    rank = ct_rank(CT_WORLD);
    size = ct_size(CT_WORLD);
    if (rounds < 1 || size < 2) {
        fprintf(stderr, "usage: ctrun --nproc-per-node=N ring_bench [ROUNDS], N from 2 on\n");
        return 2;
    }
    options.algorithms = "broadcast=ring; all_reduce=ring";
    check(ct_new_group_with(ct_group_ranks(CT_WORLD), size, &options, &ring));
    data = memory(MOST_BYTES, 1);
    count = list_rows(rows, rounds);
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < count; i++)
            measure(&rows[i], round, data);
    if (rank == 0)
        printf("what,ranks,bytes,segments,us,low,high\n");
    for (int i = 0; i < count; i++) {
        qsort(rows[i].us, (size_t)rounds, sizeof(double), by_time);
        if (rank == 0)
            printf("%s,%d,%zu,%d,%.1f,%.1f,%.1f\n", rows[i].what, size, rows[i].bytes,
                   rows[i].segments, rows[i].us[rounds / 2], rows[i].us[rounds / 4],
                   rows[i].us[rounds * 3 / 4]);
        free(rows[i].us);
    }
    free(data);
    check(ct_destroy_process_group(CT_WORLD));
    return 0;
}
