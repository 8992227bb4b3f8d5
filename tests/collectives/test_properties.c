/* SPDX-License-Identifier: Apache-2.0 */
/* test_properties.c - random calls, each compared with what ct.h says, bit by bit.
 *
 * A batch is a world of one to nine ranks, processes or threads, over shared memory, TCP or
 * both with the ranks on up to nine hosts (three, if they have GPUs).  Its ranks make two more
 * groups, then up to CASES calls on the three, with FLIGHTS asynchronous ones in flight.  All of
 * them draw the same calls from the batch's seed (cases.h) and each checks its own memory
 * (flight.h).
 *
 * A batch has its CT_ORDER.  With `rank` all ranks count as one host's.  With `fast` half of the
 * calls have inputs whose result is the same in any order; of the others, and of these, all
 * ranks must have the same bits, which the parent sees by the digests they leave it.
 *
 * With CT_PROPERTY_DEVICE=1 most calls have their buffers in device memory (tests/cuda/device.h;
 * that of the fake driver, or of the machine's; with CT_PROPERTY_STREAM=1 calls without a work are
 * in a stream); with CT_PROPERTY_DEVICE=apart each rank has a GPU of its own, so that NCCL makes
 * what it can (CT_LIBNCCL: the fake one); with CT_PROPERTY_DEVICE=spread they are spread over two
 * GPUs, which reach each other or not; with CT_PROPERTY_DEVICE=spanning over two GPUs of each host
 * (FAKE_CUDA_PEERS: they don't reach each other), so that most goes through the host.  What does
 * (CT_DEVICE=staged: all) goes in pieces, of a size that each batch draws.
 *
 * With CT_PROPERTY_LAUNCHED=1 this process is one rank of a world that something else has started,
 * mpirun for instance, and whose backend may be another (CT_BACKEND).
 *
 * CT_PROPERTY_SEED is the first batch's seed, CT_PROPERTY_CASES how many calls there are
 * in all; both have a default, so that every run makes the same calls.  A failure says the values
 * that make its batch again, up to the call that failed. */
#include "collectives/core/algorithm_overrides.h"
#include "collectives/device/staged/staged.h"
#include "runtime/group/group.h"
#include "tests/collectives/flight.h"
#include "tests/collectives/reference.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { DEFAULT_CASES = 800, CASES = 40, FLIGHTS = 5, MOST_RANKS = 9, GROUPS = 3 };

struct batch {
    uint64_t seed;
    int cases, p, threads;
    const char *order;          /* as CT_ORDER has it */
    const char *link;           /* NULL: both */
    int host[MOST_RANKS];       /* of each rank */
    char hosts[4 * MOST_RANKS]; /* as CT_FAULT has them; "": one */
};

static struct batch batch; /* the one that runs; ranks have a copy or only look */

/* Of each all-reduce, in memory that the ranks share with the parent; 0: of no call. */
static uint64_t (*digests)[MOST_RANKS][CASES];

static int has_order(const char *order)
{
    return !strcmp(batch.order, order);
}

static struct batch draw_batch(uint64_t seed, int cases)
{
    static const char *const orders[] = { "nodes", "nodes", "rank", "fast" };
    struct batch b = { .seed = seed, .cases = cases < CASES ? cases : CASES };
    uint64_t s = mix(seed, 1);
    const int where = (int)(next_of(&s) % 8), most = getenv("CT_PROPERTY_DEVICE") ? 3 : MOST_RANKS;
    const int hosts = 2 + (int)(next_of(&s) % (unsigned)(most - 1));
    size_t n = 0;

    b.p = 1 + (int)(next_of(&s) % MOST_RANKS);
    b.threads = next_of(&s) % 3 == 0;
    b.link = where == 2 || where == 3 || where == 7 ? "tcp" : NULL;
    for (int r = 0; r < b.p && where >= 4; r++) {
        b.host[r] = (int)(next_of(&s) % (unsigned)hosts);
        n += (size_t)snprintf(b.hosts + n, sizeof b.hosts - n, "%s%d",
                              r ? "." : "hosts:", b.host[r]);
    }
    b.order = orders[next_of(&s) % 4];
    return b;
}

/* ---- Device memory --------------------------------------------------------------------- */

#ifdef CT_WITH_CUDA
#include "include/ct_cuda.h"
#include "tests/cuda/device.h"

static _Thread_local CUstream stream; /* to which a rank's calls belong; NULL: to none */

static int is_device(const char *word)
{
    const char *which = getenv("CT_PROPERTY_DEVICE");

    return which && !strcmp(which, word);
}

/* Some of it can't be mapped by the other processes. */
static void *take(size_t bytes)
{
    static _Atomic unsigned taken;
    CUdeviceptr there = 0;

    if (taken++ % 3 == 0 && device.cuMemAllocAsync(&there, bytes, NULL) == CUDA_SUCCESS)
        return (void *)(uintptr_t)there;
    there = (CUdeviceptr)(uintptr_t)device_alloc(bytes, 0);
    if (!there)
        abort();
    return (void *)(uintptr_t)there;
}

static void put(void *there, const void *here, size_t bytes)
{
    if (device_put((CUdeviceptr)(uintptr_t)there, here, bytes) != CUDA_SUCCESS)
        abort();
}

static void get(void *here, const void *there, size_t bytes)
{
    if (device.cuMemcpyDtoH(here, (CUdeviceptr)(uintptr_t)there, bytes) != CUDA_SUCCESS)
        abort();
}

static int is_apart(void)
{
    return is_device("apart");
}

static int has_nccl(void)
{
    return is_apart() || is_device("spread") || is_device("spanning");
}

/* Else there may be one GPU only. */
static int has_devices(void)
{
    return device_is_fake() || !(is_apart() || is_device("spread") || is_device("spanning"));
}

static int device_of(int rank)
{
    const int second = (int)(mix(batch.seed, 400 + (uint64_t)rank) % 2);

    if (is_device("spread"))
        return second;
    if (is_device("spanning"))
        return 2 * batch.host[rank] + second;
    return is_apart() ? rank : 0;
}

static void use_device(int rank)
{
    static const struct elsewhere elsewhere = { take, put, get, device_free };

    if (!getenv("CT_PROPERTY_DEVICE"))
        return;
    if (!device_open(device_of(rank)))
        abort();
    flight_use(&elsewhere);
    if (getenv("CT_PROPERTY_STREAM")
        && !batch.threads /* a thread that frees memory waits for the streams of all */
        && device.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS)
        abort();
}

static void use_stream(ct_group *group)
{
    if (stream && ct_rank(group) >= 0)
        EXPECT_OK(ct_set_stream(group, stream));
}

static void settle(void)
{
    if (stream)
        EXPECT(device.cuStreamSynchronize(stream) == CUDA_SUCCESS);
}

static void leave_stream(void)
{
    if (stream)
        EXPECT(device.cuStreamDestroy(stream) == CUDA_SUCCESS);
    stream = NULL;
}
#else
static void use_stream(ct_group *group)
{
    (void)group;
}

static void settle(void)
{
}

static void leave_stream(void)
{
}

static int has_nccl(void)
{
    return 0;
}

static int has_devices(void)
{
    return 1;
}

static void use_device(int rank)
{
    (void)rank;
}
#endif

/* ---- One rank ------------------------------------------------------------------------ */

struct rank {
    ct_group *groups[GROUPS];
    int host[GROUPS][MOST_RANKS]; /* of the ranks of each */
    struct flight flights[FLIGHTS];
    char *pool;    /* two pieces for each of them, which the others can reach */
    uint64_t seed; /* of what this rank decides alone: when it waits for what */
};

static void complain(const struct flight *f, const char *wrong)
{
    char text[200];

    case_describe(&f->pick, ct_size(f->group), text, sizeof text);
    expect_fails(__FILE__, __LINE__,
                 "%s: %s; case %d on group %d, %s%s%sof %d %s, %s %s, order %s; again by "
                 "CT_PROPERTY_SEED=%#llx CT_PROPERTY_CASES=%d test_properties",
                 text, wrong, f->pick.number, f->pick.group, f->row, *f->row ? " forced, " : "", "",
                 batch.p, batch.threads ? "threads" : "processes",
                 batch.link ? batch.link : "any link", batch.hosts, batch.order,
                 (unsigned long long)batch.seed, f->pick.number + 1);
}

static void land(struct rank *rank, struct flight *f)
{
    char wrong[200];

    if (!f->group)
        return;
    settle();
    if (flight_wait(f) != CT_OK)
        complain(f, ct_last_error());
    else if (!flight_check(f, wrong, sizeof wrong))
        complain(f, wrong);
    else if (f->pick.kind == ALL_REDUCE)
        (*digests)[ct_rank(rank->groups[0])][f->pick.number] = flight_digest(f);
    flight_free(f);
}

/* 0: nothing can be said of what follows. */
static int make_call(struct rank *rank, const struct pick *c)
{
    const uint64_t slot = next_of(&rank->seed) % FLIGHTS;
    struct flight *f = &rank->flights[slot];
    ct_group *group = rank->groups[c->group];

    if (ct_rank(group) < 0)
        return 1;
    land(rank, f);
    flight_prepare(f, c, group, rank->host[c->group], rank->pool + slot * 2 * SHARED_BYTES);
    if (flight_start(f) != CT_OK) {
        complain(f, ct_last_error());
        return 0;
    }
    if (!c->asynchronous)
        land(rank, f);
    return 1;
}

/* Which of the parts of a group's ranks this one of the world is in. */
static int part_of_group(int group, int rank)
{
    return group == 2 ? (int)(mix(batch.seed, 100 + (uint64_t)rank) % 3) : 0;
}

/* The world in an order of its own and some left out; and two or three parts of it. */
static int make_groups(struct rank *rank)
{
    ct_group_options options = CT_GROUP_OPTIONS_INIT;
    uint64_t seed = mix(batch.seed, 2);
    const int me = ct_rank(rank->groups[0]), size = 1 + (int)(next_of(&seed) % (unsigned)batch.p);
    int list[MOST_RANKS], color, key;

    for (int i = 0; i < batch.p; i++) {
        const int j = (int)(next_of(&seed) % (unsigned)(i + 1));

        list[i] = list[j];
        list[j] = i;
    }
    options.parent = rank->groups[0];
    if (!EXPECT_OK(ct_new_group_with(list, size, &options, &rank->groups[1])))
        return 0;
    color = part_of_group(2, me);
    key = (int)(mix(batch.seed, 200 + (uint64_t)me) % 5);
    return EXPECT_OK(ct_split_group(rank->groups[0], color, key, &rank->groups[2]));
}

/* Integers have no order, and most calls reduce nothing. */
static void show_order(struct pick *c)
{
    static const ct_dtype dtypes[] = { CT_F32, CT_F64, CT_C64, CT_F16, CT_F32 };
    static const ct_op ops[] = { CT_SUM, CT_PRODUCT, CT_AVG };
    uint64_t seed = mix(c->seed, 6000);

    if (!has_op(c->kind)) {
        c->kind = ALL_REDUCE;
        c->form = PLAIN;
    }
    c->dtype = dtypes[next_of(&seed) % 5];
    c->op = ops[next_of(&seed) % 3];
    c->count = c->count > 40000 ? 40000 : c->count + 1;
    c->rough = 1;
    c->wild = 0;
}

static struct pick draw_call(int number)
{
    struct pick c = draw_case(mix(batch.seed, 10000 + (uint64_t)number), number, batch.p);

    if (!has_order("nodes") && number % 4)
        show_order(&c);
    c.fast = has_order("fast");
    c.exact = c.fast && c.seed % 2;
    if (c.fast && has_nccl() && c.op == CT_AVG) /* which multiplies by 1/n, then sums */
        c.op = CT_SUM;
    return c;
}

static void calls(ct_group *group, void *unused)
{
    struct rank *rank = calloc(1, sizeof *rank);
    int fine;

    (void)unused;
    if (!rank)
        abort();
    use_device(ct_rank(group));
    rank->groups[0] = group;
    rank->seed = mix(batch.seed, 300 + (uint64_t)ct_rank(group));
    fine = make_groups(rank)
           && EXPECT_OK(ct_mem_alloc(group, 2 * FLIGHTS * SHARED_BYTES, (void **)&rank->pool));
    for (int g = 0; g < GROUPS && fine; g++)
        use_stream(rank->groups[g]);
    for (int g = 0; g < GROUPS && fine; g++)
        for (int r = 0; r < ct_size(rank->groups[g]); r++)
            rank->host[g][r] =
                has_order("rank") ? 0 : batch.host[ct_global_rank(rank->groups[g], r)];
    for (int i = 0; i < batch.cases && fine; i++) {
        const struct pick c = draw_call(i);

        fine = make_call(rank, &c);
    }
    for (int i = 0; i < FLIGHTS; i++)
        land(rank, &rank->flights[i]);
    if (rank->pool)
        EXPECT_OK(ct_mem_free(group, rank->pool));
    for (int g = 1; g < GROUPS; g++)
        if (rank->groups[g])
            EXPECT_OK(ct_destroy_process_group(rank->groups[g]));
    leave_stream();
    free(rank);
}

/* ---- All ------------------------------------------------------------------------------- */

static uint64_t number_of(const char *variable, uint64_t fallback)
{
    const char *text = getenv(variable);

    return text && *text ? strtoull(text, NULL, 0) : fallback;
}

/* Rank 0 of each part has what the others must have. */
static void all_ranks_have_the_same_bits(void)
{
    for (int i = 0; i < batch.cases; i++) {
        const struct pick c = draw_call(i);
        const uint64_t *first[3] = { NULL };
        char text[200];

        for (int r = 0; r < batch.p; r++) {
            const uint64_t *const digest = &(*digests)[r][i];
            const uint64_t **const other = &first[part_of_group(c.group, r)];

            if (*digest && !*other)
                *other = digest;
            case_describe(&c, batch.p, text, sizeof text);
            if (*digest && **other != *digest)
                fail_msg("%s: rank %d has other bits than another; case %d on group %d, %s, order "
                         "%s",
                         text, r, i, c.group, batch.hosts, batch.order);
        }
    }
}

/* Whatever ends the batch, a crash and a hang too. */
static int say_which(void **state)
{
    (void)state;
    if (batch.cases > 0)
        print_error("the batch again: CT_PROPERTY_SEED=%#llx CT_PROPERTY_CASES=%d\n",
                    (unsigned long long)batch.seed, batch.cases);
    return 0;
}

/* From four lines of the cache on; in the end as large as nearly all calls are. */
static void draw_pieces(uint64_t seed)
{
    uint64_t s = mix(seed, 2);

    piece_sizes.all = (size_t)256 << next_of(&s) % 10;
    piece_sizes.block = (size_t)16 << next_of(&s) % 8;
}

static void random_calls_give_what_the_manual_says(void **state)
{
    uint64_t seed = number_of("CT_PROPERTY_SEED", 1);
    int left = (int)number_of("CT_PROPERTY_CASES", DEFAULT_CASES);

    (void)state;
    for (; left > 0; seed = mix(seed, 0)) {
        batch = draw_batch(seed, left);
        left -= batch.cases;
        setenv("CT_FAULT", batch.hosts, 1);
        setenv("CT_ORDER", batch.order, 1);
        use_link(batch.link);
        memset(*digests, 0, sizeof *digests);
        draw_pieces(seed);
        if (getenv("FAKE_CUDA_LOCK")) /* a thread that frees memory would hold the others */
            batch.threads = 0;
        (batch.threads ? run_threads : run_processes)(batch.p, calls, NULL);
        all_ranks_have_the_same_bits();
    }
    batch.cases = 0;
}

/* Each rank gets the digests of all, as the parent of ranks that are forked has them. */
static void share_digests(void)
{
    const int me = ct_rank(CT_WORLD);
    uint64_t(*rows)[CASES] = calloc((size_t)batch.p, sizeof *rows);

    EXPECT(rows != NULL);
    default_group()->algorithms.choices->count[OPERATION_ALL_GATHER] =
        0; /* what the last call was forced to */
    EXPECT_OK(ct_all_gather(CT_WORLD, (*digests)[me], rows, CASES * sizeof **rows, CT_U8, NULL));
    for (int r = 0; r < batch.p; r++)
        memcpy((*digests)[r], rows[r], sizeof *rows);
    free(rows);
}

/* The world's size and backend are the launcher's; each batch inits anew, for its CT_ORDER. */
static void random_calls_of_a_launched_rank_do_too(void **state)
{
    uint64_t seed = number_of("CT_PROPERTY_SEED", 1);
    int left = (int)number_of("CT_PROPERTY_CASES", DEFAULT_CASES), backend_is_seen = 0;

    (void)state;
    for (; left > 0; seed = mix(seed, 0)) {
        batch = draw_batch(seed, left);
        left -= batch.cases;
        setenv("CT_ORDER", batch.order, 1);
        memset(*digests, 0, sizeof *digests);
        memset(batch.host, 0, sizeof batch.host);
        EXPECT_OK(ct_init_process_group(NULL));
        batch.p = ct_size(CT_WORLD);
        EXPECT(batch.p <= MOST_RANKS);
        if (number_of("CT_PROPERTY_HOSTS", 1) > 1) /* one rank on each */
            for (int r = 0; r < batch.p; r++)
                batch.host[r] = r;
        batch.threads = 0;
        calls(default_group(), NULL);
        share_digests();
        all_ranks_have_the_same_bits();
        backend_is_seen |=
            !getenv("CT_BACKEND") || !strcmp(ct_backend(CT_WORLD), getenv("CT_BACKEND"));
        EXPECT_OK(ct_destroy_process_group(CT_WORLD));
    }
    EXPECT(backend_is_seen);
    batch.cases = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(random_calls_give_what_the_manual_says, say_which),
    };
    const struct CMUnitTest launched[] = {
        cmocka_unit_test_teardown(random_calls_of_a_launched_rank_do_too, say_which),
    };

    if (!has_devices())
        return 77;
    digests =
        mmap(NULL, sizeof *digests, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (digests == MAP_FAILED)
        return 1;
    reference_setup();
    return getenv("CT_PROPERTY_LAUNCHED") ? cmocka_run_group_tests(launched, NULL, NULL)
                                          : cmocka_run_group_tests(tests, NULL, NULL);
}
