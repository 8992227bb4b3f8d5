/* SPDX-License-Identifier: Apache-2.0 */
/* test_properties.c - random calls, each compared with what ct.h says, bit by bit.
 *
 * A batch is one group and CASES_PER_BATCH calls.  All ranks draw the same calls
 * from the batch's seed, so each knows what every other gives and folds it the
 * slow way, rank 0 first.  Up to FLIGHTS asynchronous calls stay in flight while
 * the next are made.  Seeds are fixed: batch b is the same on every machine, and
 * a failure names it.  CT_TEST_CASES sets the number of calls. */
#include "tests/harness.h"
#include "tests/elements.h"

#include <stdio.h>
#include <stdlib.h>

enum { DEFAULT_CASES = 1000, CASES_PER_BATCH = 50, FLIGHTS = 4, GUARD = 32, MOST_RANKS = 6 };

enum operation {
    BROADCAST,
    REDUCE,
    ALL_REDUCE,
    REDUCE_SCATTER,
    GATHER,
    ALL_GATHER,
    SCATTER,
    ALL_TO_ALL,
    OPERATIONS
};
static const char *const names[] = { "broadcast", "reduce",     "all_reduce", "reduce_scatter",
                                     "gather",    "all_gather", "scatter",    "all_to_all" };

struct pick { /* one call, as all ranks draw it */
    uint64_t seed;
    enum operation operation;
    ct_dtype dtype;
    ct_op op;
    int root, in_place, asynchronous;
    size_t count, misaligned;
};

struct flight { /* one call of this rank */
    struct pick pick;
    char *send_block, *recv_block; /* what was allocated; recv NULL in place */
    char *send, *recv;
    ct_work *work;
};

static uint64_t next(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

/* Most are small; the rest lie around the sizes at which the library changes its ways. */
static size_t draw_count(uint64_t *seed, size_t element)
{
    static const size_t limits[] = { 64, 64, 8192, 262144 };
    const unsigned dice = next(seed) % 32;
    size_t count;

    if (dice < 16)
        return next(seed) % 40;
    count = limits[dice == 31 ? 3 : dice % 3] / element;
    return count + next(seed) % 3 - (count > 0);
}

static struct pick draw(uint64_t *seed, int p)
{
    struct pick c;

    c.seed = next(seed);
    c.operation = (enum operation)(next(seed) % OPERATIONS);
    c.dtype = (ct_dtype)(next(seed) % DTYPES);
    do
        c.op = (ct_op)(next(seed) % OPS);
    while (!op_has_meaning(c.dtype, c.op) || (is_complex(c.dtype) && c.op == CT_PRODUCT));
    c.root = (int)(next(seed) % (unsigned)p);
    c.in_place = next(seed) % 3 == 0;
    c.asynchronous = next(seed) % 2 == 0;
    c.count = draw_count(seed, ct_dtype_size(c.dtype));
    c.misaligned = next(seed) % 4 == 0 ? next(seed) % 16 : 0;
    return c;
}

/* What rank r gives: integers of any size, floats with a few bits of fraction. */
static void fill(const struct pick *c, int r, void *at, size_t count)
{
    uint64_t seed = c->seed ^ ((uint64_t)r + 1) * 0x9e3779b97f4a7c15u;

    for (size_t i = 0; i < count; i++) {
        const uint64_t bits = next(&seed);

        if (is_integer(c->dtype))
            element_put_integer(c->dtype, at, i, bits);
        else if (c->dtype == CT_BOOL)
            ((unsigned char *)at)[i] = bits % 3 == 0 ? 0 : (unsigned char)(bits >> 8);
        else
            element_put(c->dtype, at, i, (double)((int)(bits % 4001) - 2000) / 64);
    }
}

/* ---- What must come out ------------------------------------------------------- */

static size_t send_count(const struct pick *c, int p)
{
    const int many =
        c->operation == REDUCE_SCATTER || c->operation == SCATTER || c->operation == ALL_TO_ALL;

    return many ? c->count * (size_t)p : c->count;
}

static size_t recv_count(const struct pick *c, int p)
{
    const int many =
        c->operation == GATHER || c->operation == ALL_GATHER || c->operation == ALL_TO_ALL;

    return many ? c->count * (size_t)p : c->count;
}

static int receives(const struct pick *c, int me)
{
    return (c->operation != REDUCE && c->operation != GATHER) || c->root == me;
}

/* recv_count elements; the caller frees them. */
static char *expected(const struct pick *c, int p, int me)
{
    const size_t element = ct_dtype_size(c->dtype), block = c->count * element;
    const size_t given = send_count(c, p) * element;
    char *inputs = malloc(given * (size_t)p + 1), *wanted = malloc(block * (size_t)p + 1);
    char *folded = malloc(given + 1);
    const void *sources[MOST_RANKS];

    for (int r = 0; r < p; r++) {
        sources[r] = inputs + given * (size_t)r;
        fill(c, r, inputs + given * (size_t)r, send_count(c, p));
    }
    if (c->operation == BROADCAST) {
        memcpy(wanted, sources[c->root], block);
    } else if (c->operation == SCATTER) {
        memcpy(wanted, (const char *)sources[c->root] + block * (size_t)me, block);
    } else if (c->operation <= REDUCE_SCATTER) {
        reference_fold(c->dtype, c->op, folded, sources, p, send_count(c, p));
        memcpy(wanted, folded + (c->operation == REDUCE_SCATTER ? block * (size_t)me : 0), block);
    } else {
        for (int r = 0; r < p; r++)
            memcpy(wanted + block * (size_t)r,
                   (const char *)sources[r] + (c->operation == ALL_TO_ALL ? block * (size_t)me : 0),
                   block);
    }
    free(inputs);
    free(folded);
    return wanted;
}

static void complain(const struct pick *c, int p, const char *what)
{
    expect_fails(__FILE__, __LINE__,
                 "%s: %s of %zu elements, dtype %d, op %d, root %d of %d, %s, %s, misaligned %zu, "
                 "seed %llx",
                 what, names[c->operation], c->count, (int)c->dtype, c->op, c->root, p,
                 c->in_place ? "in place" : "two buffers",
                 c->asynchronous ? "asynchronous" : "blocking", c->misaligned,
                 (unsigned long long)c->seed);
}

static int guard_holds(const char *end)
{
    for (int i = 0; i < GUARD; i++)
        if (end[i] != 0x5a)
            return 0;
    return 1;
}

static void check(const struct flight *f, int p, int me)
{
    const struct pick *c = &f->pick;
    const size_t element = ct_dtype_size(c->dtype);
    char *wanted = expected(c, p, me);

    if (receives(c, me)) {
        for (size_t i = 0; i < recv_count(c, p); i++)
            if (!same_element(c->dtype, f->recv + i * element, wanted + i * element, 0)) {
                complain(c, p, "wrong values");
                break;
            }
    } else if (f->recv_block && !guard_holds(f->recv)) {
        complain(c, p, "memory of a rank that is not the root changed");
    }
    if (f->recv_block) { /* two buffers: the input is as it was */
        char *given = malloc(send_count(c, p) * element + 1);

        fill(c, me, given, send_count(c, p));
        if (memcmp(given, f->send, send_count(c, p) * element) != 0)
            complain(c, p, "the input changed");
        free(given);
        if (!guard_holds(f->recv + recv_count(c, p) * element))
            complain(c, p, "written behind the end");
    } else if (!guard_holds(f->send_block + c->misaligned + (size_t)p * c->count * element)) {
        complain(c, p, "written behind the end, in place");
    }
    free(wanted);
}

/* ---- Making the calls ----------------------------------------------------------- */

static void prepare(struct flight *f, int p, int me)
{
    const struct pick *c = &f->pick;
    const size_t block = c->count * ct_dtype_size(c->dtype);
    const size_t room = c->misaligned + block * (size_t)p + GUARD;
    const size_t own = c->misaligned + block * (size_t)me;
    const int in_place =
        c->operation == BROADCAST
        || (c->in_place && receives(c, me) && (c->operation != SCATTER || c->root == me));

    f->send_block = malloc(room);
    memset(f->send_block, 0x5a, room);
    f->recv_block = in_place ? NULL : malloc(room);
    f->send = f->recv = f->send_block + c->misaligned;
    if (!in_place) {
        memset(f->recv_block, 0x5a, room);
        f->recv = f->recv_block + c->misaligned;
    } else if (c->operation == GATHER || c->operation == ALL_GATHER) {
        f->send = f->send_block + own;
    } else if (c->operation == REDUCE_SCATTER || c->operation == SCATTER) {
        f->recv = f->send_block + own;
    }
    fill(c, me, f->send, send_count(c, p));
}

static ct_status call(ct_group *g, struct flight *f)
{
    const struct pick *c = &f->pick;
    ct_work **work = c->asynchronous ? &f->work : NULL;

    switch (c->operation) {
    case BROADCAST:
        return ct_broadcast(g, f->send, c->count, c->dtype, c->root, work);
    case REDUCE:
        return ct_reduce(g, f->send, f->recv, c->count, c->dtype, c->op, c->root, work);
    case ALL_REDUCE:
        return ct_all_reduce(g, f->send, f->recv, c->count, c->dtype, c->op, work);
    case REDUCE_SCATTER:
        return ct_reduce_scatter(g, f->send, f->recv, c->count, c->dtype, c->op, work);
    case GATHER:
        return ct_gather(g, f->send, f->recv, c->count, c->dtype, c->root, work);
    case ALL_GATHER:
        return ct_all_gather(g, f->send, f->recv, c->count, c->dtype, work);
    case SCATTER:
        return ct_scatter(g, f->send, f->recv, c->count, c->dtype, c->root, work);
    default:
        return ct_all_to_all(g, f->send, f->recv, c->count, c->dtype, work);
    }
}

static void land(struct flight *f, int p, int me)
{
    if (!f->send_block)
        return;
    if (EXPECT_OK(ct_wait(f->work)))
        check(f, p, me);
    free(f->send_block);
    free(f->recv_block);
    *f = (struct flight){ .work = NULL };
}

static void batch(ct_group *group, void *arg)
{
    const int p = ct_size(group), me = ct_rank(group);
    struct flight flights[FLIGHTS] = { { .work = NULL } };
    uint64_t seed = *(const uint64_t *)arg;

    for (int i = 0; i < CASES_PER_BATCH; i++) {
        struct flight *f = &flights[i % FLIGHTS];

        land(f, p, me);
        f->pick = draw(&seed, p);
        prepare(f, p, me);
        if (!EXPECT_OK(call(group, f))) {
            complain(&f->pick, p, "failed");
            break;
        }
        if (!f->pick.asynchronous)
            land(f, p, me);
    }
    for (int i = 0; i < FLIGHTS; i++)
        land(&flights[i], p, me);
}

static void random_calls_give_what_the_manual_says(void **state)
{
    const char *cases = getenv("CT_TEST_CASES");
    const int batches =
        ((cases ? atoi(cases) : DEFAULT_CASES) + CASES_PER_BATCH - 1) / CASES_PER_BATCH;

    (void)state;
    for (int b = 0; b < batches; b++) {
        uint64_t seed = ((uint64_t)b + 1) * 0x2545f4914f6cdd1du;
        const int p = b % MOST_RANKS + 1;

        use_link(b / MOST_RANKS % 2 ? "tcp" : NULL);
        if (b / (2 * MOST_RANKS) % 2)
            run_threads(p, batch, &seed);
        else
            run_processes(p, batch, &seed);
    }
    use_link(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_calls_give_what_the_manual_says),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
