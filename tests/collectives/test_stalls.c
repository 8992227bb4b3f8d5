/* SPDX-License-Identifier: Apache-2.0 */
/* test_stalls.c - one rank is late, at each place where it can be, and nothing comes of it.
 *
 * The ranks are threads with one map of what they share (../one_map.c), which ThreadSanitizer
 * watches.  A burst is PHASES calls of one operation by one of its algorithms, made without
 * anything between them, so that the other ranks run ahead as far as the library lets them.  In the
 * n-th call rank `late` sleeps behind its n-th hand-over (CT_FAULT,
 * runtime/fault/fault_injection.h); then the memory of all calls is looked at.
 *
 * A barrier has no memory, so its ranks say in words of their own that they came, and look
 * behind it whether all have.  The same is done to barriers that do not wait as they should: a test
 * that such a one passes would prove nothing. */
#include "tests/collectives/flight.h"
#include "tests/collectives/reference.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collectives/core/sendrecv.h"
#include "collectives/core/shm_exchange.h"
#include "collectives/registry.h"

enum { PHASES = 12, MOST_RANKS = 3 }; /* the last is the end of the call */

#define POOL_BYTES (2 * SHARED_BYTES) /* of one call */

struct run {
    int p, late;
    const char *link, *hosts; /* as use_link() and CT_FAULT have them */
    int host[MOST_RANKS];
};

static const struct run *now;

/* ---- Barriers that are broken ------------------------------------------------------------ */

static ct_status arrive_only(struct call *c)
{
    const ct_status status = shm_group_next_slot(c->group->shm, 0);

    return status == CT_OK ? shm_group_publish(c->group->shm) : status;
}

/* All but the one on its left, for which it would have waited last. */
static ct_status miss_one(struct call *c)
{
    const int p = c->group->size;
    ct_status status = arrive_only(c);

    for (int i = 1; i < p - 1 && status == CT_OK; i++)
        status = shm_group_wait(c->group->shm, (c->group->rank + i) % p);
    return status;
}

/* Dissemination that ends one step too early. */
static ct_status end_early(struct call *c)
{
    const int p = c->group->size, rank = c->group->rank;
    const struct span nothing = { NULL, 0 };
    ct_status status = CT_OK;

    for (int distance = 1; distance * 2 < p && status == CT_OK; distance *= 2)
        status = exchange(c, (rank + distance) % p, nothing, (rank - distance + p) % p, nothing);
    return status;
}

#ifdef CT_THREAD_SANITIZER
/* All wait for all, and nothing says that what was written before can be read behind. */
static ct_status order_nothing(struct call *c)
{
    static _Atomic unsigned arrivals;
    const unsigned p = (unsigned)c->group->size;
    const unsigned mine = atomic_fetch_add_explicit(&arrivals, 1, memory_order_relaxed);

    while (atomic_load_explicit(&arrivals, memory_order_relaxed) < (mine / p + 1) * p)
        sched_yield();
    return CT_OK;
}
#endif

static const struct algorithm broken[] = {
    { .name = "arrive_only", .fits = fits_shm, .run = arrive_only },
    { .name = "miss_one", .fits = fits_shm, .run = miss_one },
    { .name = "end_early", .run = end_early },
#ifdef CT_THREAD_SANITIZER
    { .name = "order_nothing", .run = order_nothing },
#endif
};
enum { BROKEN = sizeof broken / sizeof *broken };

static const struct algorithm *barriers_of_test[8]; /* a broken one and the library's; or none */

/* The linker leads operation_algorithms() and call_run() here. */
const struct algorithm *const *__real_operation_algorithms(int operation);
const struct algorithm *const *__wrap_operation_algorithms(int operation);

const struct algorithm *const *__wrap_operation_algorithms(int operation)
{
    return operation == OPERATION_BARRIER && barriers_of_test[0]
               ? barriers_of_test
               : __real_operation_algorithms(operation);
}

ct_status __real_call_run(const struct request_of_call *request, ct_work **work);
ct_status __wrap_call_run(const struct request_of_call *request, ct_work **work);

ct_status __wrap_call_run(const struct request_of_call *request, ct_work **work)
{
    struct request_of_call r = *request;

    if (r.operation == OPERATION_BARRIER)
        r.algorithms = __wrap_operation_algorithms(OPERATION_BARRIER);
    return __real_call_run(&r, work);
}

static void take_broken_barrier(const char *name)
{
    const struct algorithm *const *const own = __real_operation_algorithms(OPERATION_BARRIER);

    for (int i = 0; i < BROKEN; i++)
        if (!strcmp(broken[i].name, name))
            barriers_of_test[0] = &broken[i];
    if (!barriers_of_test[0])
        fail_msg("%s is no broken barrier", name);
    for (int i = 0; own[i] && i < 6; i++)
        barriers_of_test[i + 1] = own[i];
}

/* ---- Bursts -------------------------------------------------------------------------------- */

/* Tells the faults of this rank which calls they are for, and at which places. */
static void aim(ct_group *group, int at_ends)
{
    struct faults *faults = group->mesh->faults;

    for (int i = 0; faults && i < faults->count; i++) { /* NULL: only the late rank's */
        struct fault *fault = &faults->list[i];

        fault->seq = group->seq + 1 + (uint64_t)i;
        fault->phase = at_ends || i == PHASES - 1 ? FAULT_END : (uint32_t)i;
        fault->fired = 0;
    }
}

/* The places of the call are a row without a gap, and the last of them was not left out. */
static void check_places(const ct_group *group, const struct flight *f)
{
    const struct faults *faults = group->mesh->faults;
    int places = 0;

    if (!faults || faults->count == 0)
        return;
    EXPECT(faults->count == PHASES && faults->list[0].fired && faults->list[PHASES - 1].fired);
    while (places < PHASES && faults->list[places].fired)
        places++;
    if (places >= PHASES - 1)
        expect_fails(__FILE__, __LINE__, "%s makes more hand-overs than the test has phases",
                     f->row);
}

static void complain(const struct flight *f, int phase, const char *wrong)
{
    char text[200];

    case_describe(&f->pick, now->p, text, sizeof text);
    expect_fails(__FILE__, __LINE__, "%s by %s: %s; rank %d was late in phase %d, %s %s", text,
                 f->row, wrong, now->late, phase, now->link ? now->link : "any link",
                 now->hosts ? now->hosts : "one host");
}

/* pool: of PHASES calls. */
static void burst(ct_group *group, struct pick pick, char *pool)
{
    struct flight flights[PHASES];
    char wrong[200];

    for (int i = 0; i < PHASES; i++) {
        pick.seed = mix(pick.seed, 5);
        pick.root++;
        flight_prepare(&flights[i], &pick, group, now->host, pool + i * POOL_BYTES);
    }
    aim(group, 0);
    for (int i = 0; i < PHASES; i++)
        if (flight_start(&flights[i]) != CT_OK)
            complain(&flights[i], i, ct_last_error());
    for (int i = 0; i < PHASES; i++) {
        if (flight_wait(&flights[i]) != CT_OK)
            complain(&flights[i], i, ct_last_error());
        else if (!flight_check(&flights[i], wrong, sizeof wrong))
            complain(&flights[i], i, wrong);
    }
    check_places(group, &flights[0]);
    for (int i = 0; i < PHASES; i++)
        flight_free(&flights[i]);
}

/* Its slot holds a share of a block for each rank. */
static int is_shared_out(enum kind kind)
{
    return kind == REDUCE_SCATTER || kind == SCATTER || kind == ALL_TO_ALL;
}

static const struct way { /* in the line, in a slot, in more than one */
    size_t count;
    enum form form;
    ct_dtype dtype; /* of integers ring can fold too */
    int asynchronous, reach;
} ways[] = { { 2, PLAIN, CT_F32, 0, 0 },
             { 2, PLAIN, CT_I32, 1, 1 },
             { 1300, PLAIN, CT_F32, 1, 0 },
             { 1300, V, CT_I32, 0, 1 },
             { 20000, V, CT_F32, 1, 2 },
             { SHM_GROUP_MOST_SLOT / 4 + 1, PLAIN, CT_I32, 0, 0 },
             { SHM_GROUP_MOST_SLOT / 4 + 1, PLAIN, CT_F32, 0, 1 } };
enum { WAYS = sizeof ways / sizeof *ways };

static void each_operation(ct_group *group, void *arg)
{
    const struct way *way = arg;
    struct pick pick = { .form = way->form,
                         .dtype = way->dtype,
                         .op = CT_SUM,
                         .asynchronous = way->asynchronous,
                         .reach = way->reach };
    char *pool;

    if (!EXPECT_OK(ct_mem_alloc(group, PHASES * POOL_BYTES, (void **)&pool)))
        return;
    for (int kind = BROADCAST; kind < BARRIER; kind++) {
        pick.kind = (enum kind)kind;
        if (!has_form(pick.kind, pick.form))
            continue;
        pick.count = way->count;
        if (pick.count > 20000 && is_shared_out(pick.kind))
            pick.count = pick.count / MOST_RANKS + 1;
        pick.seed = mix((uint64_t)(way - ways), (uint64_t)kind);
        /* The large ones take their time: one late rank for each. */
        for (pick.row = flight_rows(&pick, group); pick.row > 0; pick.row--)
            if (way->count < 2000 || ((int)pick.row + kind) % now->p == now->late)
                burst(group, pick, pool);
    }
    EXPECT_OK(ct_mem_free(group, pool));
}

/* ---- Barriers ------------------------------------------------------------------ */

/* No atomics: the barrier orders the reads.  Two rounds, since a slow rank still reads those of one
 * when a fast rank comes to the next. */
static volatile int came[2][MOST_RANKS];

static void barriers(ct_group *group, const struct flight *f, int *round)
{
    for (int i = 0; i < PHASES; i++) {
        struct flight one = *f;

        ++*round;
        came[*round % 2][ct_rank(group)] = *round;
        if (flight_start(&one) != CT_OK)
            complain(f, i, ct_last_error());
        for (int r = 0; r < now->p; r++)
            if (came[*round % 2][r] != *round)
                expect_fails(__FILE__, __LINE__,
                             "rank %d left the barrier before rank %d came; rank %d was late",
                             ct_rank(group), r, now->late);
    }
}

static void each_barrier(ct_group *group, void *unused)
{
    struct pick pick = { .kind = BARRIER };
    int round = 0;

    (void)unused;
    for (pick.row = flight_rows(&pick, group); pick.row > 0; pick.row--) {
        struct flight f;

        flight_prepare(&f, &pick, group, now->host, NULL);
        for (int at_ends = 0; at_ends < 2; at_ends++) {
            aim(group, at_ends);
            barriers(group, &f, &round);
            if (!at_ends)
                check_places(group, &f);
        }
        flight_free(&f);
    }
}

/* ---- Runs ------------------------------------------------------------------ */

/* Minutes under ThreadSanitizer: unless CT_STALLS=all, each way meets each late rank in one place.
 */
static int is_left_out(const struct way *way, int place, int late)
{
    const char *all = getenv("CT_STALLS");

    return way && !(all && !strcmp(all, "all")) && ((int)(way - ways) + place + late) % 3 != 0;
}

/* Each rank late in turn; all on one host over memory and over sockets, and on two. */
static void run_stalls(rank_body *body, const struct way *way)
{
    static const struct run places[] = {
        { .p = 3 },
        { .p = 3, .link = "tcp" },
        { .p = 3, .hosts = "hosts:0.1.0;", .host = { 0, 1, 0 } },
    };
    char faults[40 * PHASES + 20];

    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        for (int late = 0; late < places[i].p; late++) {
            struct run run = places[i];
            int n = snprintf(faults, sizeof faults, "%s", run.hosts ? run.hosts : "");

            if (is_left_out(way, (int)i, late))
                continue;
            run.late = late;
            for (int f = 0; f < PHASES; f++)
                n += snprintf(faults + n, sizeof faults - (size_t)n, "rank:%d,delay:500us;", late);
            setenv("CT_FAULT", faults, 1);
            use_link(run.link);
            now = &run;
            run_threads(run.p, body, (void *)(uintptr_t)way);
        }
    unsetenv("CT_FAULT");
    use_link(NULL);
}

static void a_late_rank_spoils_no_result(void **state)
{
    (void)state;
    /* Segments of 128 KiB: with shorter ones a call has more hand-overs than phases. */
    setenv("CT_NETWORK", "30us,1.2GB/s,100us", 1);
    for (int w = 0; w < WAYS; w++)
        run_stalls(each_operation, &ways[w]);
    unsetenv("CT_NETWORK");
}

static void no_rank_leaves_a_barrier_before_all_came(void **state)
{
    (void)state;
    run_stalls(each_barrier, NULL);
}

/* This program with a broken barrier, its words in output; how it ended, as of waitpid(). */
static int run_broken(const char *name, char *output, size_t size)
{
    FILE *said = tmpfile();
    int status = -1;
    pid_t pid;

    assert_non_null(said);
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        dup2(fileno(said), STDOUT_FILENO);
        dup2(fileno(said), STDERR_FILENO);
        execl("/proc/self/exe", "test_stalls", name, (char *)NULL);
        _exit(127);
    }
    assert_true(waitpid(pid, &status, 0) == pid);
    rewind(said);
    output[fread(output, 1, size - 1, said)] = 0;
    fclose(said);
    return status;
}

static void the_same_test_finds_barriers_that_are_broken(void **state)
{
    static char output[1 << 16];

    (void)state;
    for (int i = 0; i < BROKEN; i++) {
        const int status = run_broken(broken[i].name, output, sizeof output);

        if (!WIFEXITED(status) || WEXITSTATUS(status) != 1
            || (!strstr(output, "left the barrier before rank")
                && !strstr(output, "ThreadSanitizer: data race")))
            fail_msg("%s was not found, status 0x%x:\n%s", broken[i].name, (unsigned)status,
                     output);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest barrier[] = {
        cmocka_unit_test(no_rank_leaves_a_barrier_before_all_came),
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_late_rank_spoils_no_result),
        cmocka_unit_test(no_rank_leaves_a_barrier_before_all_came),
        cmocka_unit_test(the_same_test_finds_barriers_that_are_broken),
    };

    reference_setup();
    if (argc > 1) {
        take_broken_barrier(argv[1]);
        return cmocka_run_group_tests(barrier, NULL, NULL);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
