/* SPDX-License-Identifier: Apache-2.0 */
/* jacobi.c - heat in a plate, cut into rows and columns of blocks, one for each rank.
 *
 *     ctrun --nproc-per-node=4 build/bin/jacobi [PICTURE.pgm]
 *
 *     60 x 60 points, 2 x 2 ranks, 4000 steps: last change 2.689e-04, 24.12 in the middle
 *
 * The upper edge of the plate has 100 degrees, the others 0.  In each step a point becomes the mean
 * of its four neighbours (Jacobi's iteration).  The ranks of each row and of each column form a
 * group (ct_split_group()).  A rank exchanges the edges of its block with its neighbours in these
 * groups, all four at once (ct_batch_isend_irecv()).  A column of a block is not contiguous, so it
 * is copied before it is sent.  The figures are the same for any number of ranks: each point is
 * computed from the same four numbers on whichever rank, and MAX does not round. */
#include <ct.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 60, STEPS = 4000, CHECKED = 100 };

struct block {
    int rows, columns; /* of ranks */
    int high, wide;    /* of points */
    ct_group *row, *column;
    float *now, *next;           /* with a frame of the neighbours' points */
    float *send[2], *receive[2]; /* its left and right column, and the neighbours' */
};

static void check(ct_status status)
{
    if (status == CT_OK)
        return;
    fprintf(stderr, "jacobi: rank %d: %s\n", ct_rank(CT_WORLD), ct_last_error());
    exit(1);
}

static float *points(int count)
{
    float *all = calloc((size_t)count, sizeof *all);

    if (!all) {
        fprintf(stderr, "jacobi: out of memory\n");
        exit(1);
    }
    return all;
}

static float *at(const struct block *b, float *plate, int y, int x)
{
    return plate + y * (b->wide + 2) + x;
}

/* As many rows as columns of ranks, or as near as can be; both divide N for up to 6 ranks. */
static void cut(struct block *b)
{
    const int rank = ct_rank(CT_WORLD), size = ct_size(CT_WORLD);

    for (b->rows = (int)sqrt(size); size % b->rows; b->rows--)
        ;
    b->columns = size / b->rows;
    if (N % b->rows || N % b->columns) {
        fprintf(stderr, "jacobi: %d points can't be cut into %d x %d equal blocks\n", N, b->rows,
                b->columns);
        exit(1);
    }
    b->high = N / b->rows;
    b->wide = N / b->columns;
    check(ct_split_group(CT_WORLD, rank / b->columns, rank, &b->row));
    check(ct_split_group(CT_WORLD, rank % b->columns, rank, &b->column));
    b->now = points((b->high + 2) * (b->wide + 2));
    b->next = points((b->high + 2) * (b->wide + 2));
    for (int side = 0; side < 2; side++) {
        b->send[side] = points(b->high);
        b->receive[side] = points(b->high);
    }
    for (int x = 0; x < b->wide + 2 && ct_rank(b->column) == 0; x++)
        *at(b, b->now, 0, x) = *at(b, b->next, 0, x) = 100;
}

/* One message to the neighbour, `step` ranks on in the group, and one from it. */
static int meet(ct_p2p *pair, const ct_group *group, int step, float *out, float *in, int count)
{
    const int peer = ct_rank(group) + step;

    if (peer < 0 || peer >= ct_size(group))
        return 0;
    pair[0] = (ct_p2p){ CT_P2P_SEND, out, (size_t)count, CT_F32, peer, 0 };
    pair[1] = (ct_p2p){ CT_P2P_RECV, in, (size_t)count, CT_F32, peer, 0 };
    return 2;
}

static void exchange_edges(struct block *b)
{
    ct_p2p vertical[4], horizontal[4];
    ct_work *works[4];
    int up_down, sideways;

    for (int y = 0; y < b->high; y++) {
        b->send[0][y] = *at(b, b->now, y + 1, 1);
        b->send[1][y] = *at(b, b->now, y + 1, b->wide);
    }
    up_down = meet(vertical, b->column, -1, at(b, b->now, 1, 1), at(b, b->now, 0, 1), b->wide);
    up_down += meet(vertical + up_down, b->column, 1, at(b, b->now, b->high, 1),
                    at(b, b->now, b->high + 1, 1), b->wide);
    sideways = meet(horizontal, b->row, -1, b->send[0], b->receive[0], b->high);
    sideways += meet(horizontal + sideways, b->row, 1, b->send[1], b->receive[1], b->high);
    check(ct_batch_isend_irecv(b->column, vertical, up_down, works));
    check(ct_batch_isend_irecv(b->row, horizontal, sideways, NULL));
    for (int i = 0; i < up_down; i++)
        check(ct_wait(works[i]));
    for (int y = 0; y < b->high; y++) {
        if (ct_rank(b->row) > 0)
            *at(b, b->now, y + 1, 0) = b->receive[0][y];
        if (ct_rank(b->row) < b->columns - 1)
            *at(b, b->now, y + 1, b->wide + 1) = b->receive[1][y];
    }
}

/* Returns the largest change. */
static float relax(struct block *b)
{
    float *const last = b->now, most = 0;

    for (int y = 1; y <= b->high; y++)
        for (int x = 1; x <= b->wide; x++) {
            const float *here = at(b, last, y, x);
            const float mean =
                0.25f * (*at(b, last, y - 1, x) + *at(b, last, y + 1, x) + here[-1] + here[1]);

            *at(b, b->next, y, x) = mean;
            most = fmaxf(most, fabsf(mean - *here));
        }
    b->now = b->next;
    b->next = last;
    return most;
}

/* Rank 0 gets the whole plate: N x N. */
static float *gather(struct block *b)
{
    const int root = ct_rank(CT_WORLD) == 0, area = b->high * b->wide;
    float *mine = points(area), *blocks = root ? points(N * N) : NULL,
          *plate = root ? points(N * N) : NULL;

    for (int y = 0; y < b->high; y++)
        memcpy(mine + y * b->wide, at(b, b->now, y + 1, 1), (size_t)b->wide * sizeof *mine);
    check(ct_gather(CT_WORLD, mine, blocks, (size_t)area, CT_F32, 0, NULL));
    for (int y = 0; y < N && root; y++)
        for (int x = 0; x < N; x++) {
            const int rank = y / b->high * b->columns + x / b->wide;

            plate[y * N + x] = blocks[rank * area + y % b->high * b->wide + x % b->wide];
        }
    free(mine);
    free(blocks);
    return plate;
}

static void write_picture(const char *path, const float *plate)
{
    FILE *out = fopen(path, "w");

    if (!out) {
        perror(path);
        exit(1);
    }
    fprintf(out, "P2 %d %d 100\n", N, N);
    for (int i = 0; i < N * N; i++)
        fprintf(out, "%d%c", (int)(plate[i] + 0.5f), i % N == N - 1 ? '\n' : ' ');
    if (fclose(out) != 0) {
        perror(path);
        exit(1);
    }
}

int main(int argc, char **argv)
{
    struct block b = { 0 };
    float change = 0, *plate;

    check(ct_init_process_group(NULL));
    cut(&b);
    for (int step = 1; step <= STEPS; step++) {
        exchange_edges(&b);
        change = relax(&b);
        if (step % CHECKED == 0) /* often enough to stop in time, and costs nothing */
            check(ct_all_reduce(CT_WORLD, &change, &change, 1, CT_F32, CT_MAX, NULL));
    }
    plate = gather(&b);
    if (plate) {
        printf("%d x %d points, %d x %d ranks, %d steps: last change %.3e, %.2f in the middle\n", N,
               N, b.rows, b.columns, STEPS, change, plate[N / 2 * N + N / 2]);
        if (argc > 1)
            write_picture(argv[1], plate);
    }
    free(plate);
    free(b.now);
    free(b.next);
    for (int side = 0; side < 2; side++) {
        free(b.send[side]);
        free(b.receive[side]);
    }
    check(ct_destroy_process_group(CT_WORLD)); /* and the rows and columns */
    return 0;
}
