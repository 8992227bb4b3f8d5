/* SPDX-License-Identifier: Apache-2.0 */
/* host_limits.c - what the CPUs of a host allow, measured by a crew: forked processes, each on a
 * CPU of its own.
 *
 * Speeds: how fast the processes copy and fold, all at once.  A process has two areas, one to read
 * and one to write.  Hot: always the same bytes of them.  Cold: on to the next bytes each time, and
 * the areas of all processes are far larger than a cache.  Of several rounds the best counts; a
 * round is as long as its slowest process.
 *
 * Hand-overs: how long it takes until one process sees what another wrote.  Two processes raise two
 * flags in turns, and wait for the other's flag by spinning, by yielding the CPU after each look,
 * or by sleeping in futex().  Spinning on one CPU is left out: the waiting process keeps the CPU
 * for a tick. */
#include "bench/ct_bench/limits.h"

#include <errno.h>
#include <linux/futex.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/ct_bench/measure.h"

#define CREW_RESULTS 64

/* What they share; zeroed at the start, then for whatever the measurement needs. */
struct meeting_place {
    _Alignas(128) _Atomic uint32_t arrived;
    _Alignas(128) _Atomic uint32_t round;
    _Alignas(128) double us[MOST_CREW]; /* each writes its own, reads the others' after a meeting */
    _Alignas(128) _Atomic uint32_t flag[2][32]; /* a cache line pair each */
    double result[CREW_RESULTS];                /* member 0's, for the caller */
};

struct member {
    int index, count;
    struct meeting_place *place;
    void *arg;
};

/* ---- The crew ---------------------------------------------------------------------------- */

#define LONGEST_WAIT_US 30e6 /* then a member is taken for dead */
#define LONGEST_S 300        /* of a measurement: who spins for a dead member's flag ends too */

/* All members come here before one goes on; non-zero when a member does not come. */
static int crew_meet(const struct member *m)
{
    const uint32_t round = atomic_load(&m->place->round);
    const double began = now_us();

    if (atomic_fetch_add(&m->place->arrived, 1) + 1 == (uint32_t)m->count) {
        atomic_store(&m->place->arrived, 0);
        atomic_store(&m->place->round, round + 1);
    }
    while (atomic_load(&m->place->round) == round) {
        if (now_us() - began > LONGEST_WAIT_US)
            return -1;
        sched_yield();
    }
    return 0;
}

/* Meets; *longest: the longest of all members' times.  Non-zero as above. */
static int crew_longest(const struct member *m, double us, double *longest)
{
    m->place->us[m->index] = us;
    if (crew_meet(m) != 0)
        return -1;
    *longest = 0;
    for (int i = 0; i < m->count; i++)
        if (m->place->us[i] > *longest)
            *longest = m->place->us[i];
    return crew_meet(m); /* or somebody's next time is read */
}

static int nth_cpu(const struct cpus *cpus, int n)
{
    int cpu = cpus_next(cpus, 0);

    while (cpu >= 0 && n-- > 0)
        cpu = cpus_next(cpus, cpu + 1);
    return cpu;
}

/* Does not return into the rank's program, whose connections and buffers it shares. */
static _Noreturn void run_member(const struct member *member, pid_t parent, int cpu,
                                 int (*body)(const struct member *))
{
    cpu_set_t own[CPUS_MOST / CPU_SETSIZE];

    CPU_ZERO_S(sizeof own, own);
    CPU_SET_S((size_t)cpu, sizeof own, own);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
        _exit(1);
    signal(SIGALRM, SIG_DFL);
    alarm(LONGEST_S);
    if (sched_setaffinity(0, sizeof own, own) < 0)
        _exit(2);
    _exit(body(member) != 0 ? 1 : 0);
}

static void say(char why[200], int code)
{
    if (code == 0)
        return;
    if (code == 2)
        snprintf(why, 200, "--limits: a process may not run on a CPU that a rank may run on");
    else
        snprintf(why, 200,
                 "--limits: a process that measures failed, or hung; is there enough memory?");
}

/* Forks `count` members; member i runs on the i-th CPU of `cpus`, or all on the first of them
 * with `on_one`.  A member that can't go on returns non-zero.  The results are copied to `result`.
 * 0, or -1 with a sentence in `why`; no member is left behind. */
static int crew_run(int count, const struct cpus *cpus, int on_one,
                    int (*body)(const struct member *), void *arg, double result[CREW_RESULTS],
                    char why[200])
{
    struct meeting_place *place =
        mmap(NULL, sizeof *place, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const pid_t parent = getpid();
    pid_t pids[MOST_CREW];
    int started = 0, worst = 0;

    if (place == MAP_FAILED) {
        snprintf(why, 200, "--limits: shared memory: %s", strerror(errno));
        return -1;
    }
    for (; started < count; started++) {
        const struct member member = { started, count, place, arg };

        pids[started] = fork();
        if (pids[started] == 0)
            run_member(&member, parent, nth_cpu(cpus, on_one ? 0 : started), body);
        if (pids[started] < 0) {
            snprintf(why, 200, "--limits: fork: %s", strerror(errno));
            worst = -1;
            for (int i = 0; i < started; i++)
                kill(pids[i], SIGKILL);
            break;
        }
    }
    for (int i = 0; i < started; i++) {
        int status = 0, code;

        while (waitpid(pids[i], &status, 0) < 0 && errno == EINTR)
            ;
        code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
        if (worst == 0)
            say(why, worst = code);
    }
    memcpy(result, place->result, sizeof place->result);
    munmap(place, sizeof *place);
    return worst == 0 ? 0 : -1;
}

/* ---- Speeds ------------------------------------------------------------------------------ */

#define COLD_BYTES ((size_t)256 << 20) /* of all areas together */
#define ROUND_BYTES ((size_t)1 << 20)  /* at least, so that the clock costs nothing */
#define LEAST_ROUNDS 3
#define ROUNDS_US 20000.0 /* then it is enough; on a busy host some rounds go undisturbed */

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define NO_CLONES
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define NO_CLONES
#endif
#endif
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(NO_CLONES)
#define CLONED __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define CLONED
#endif
/* dst may be the first source, which hinders nothing. */
#ifdef __clang__
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

/* What one process has to do: the result's bytes, and from how many sources. */
struct job {
    char *read, *write;
    size_t area;    /* bytes of each that are walked through when cold */
    size_t largest; /* result that is asked for */
    int sources;
};

CLONED static void sum_of_2(float *dst, const float *a, const float *b, size_t n)
{
    INDEPENDENT
    for (size_t i = 0; i < n; i++)
        dst[i] = a[i] + b[i];
}

CLONED static void sum_of_4(float *dst, const float *a, const float *b, const float *c,
                            const float *d, size_t n)
{
    INDEPENDENT
    for (size_t i = 0; i < n; i++)
        dst[i] = a[i] + b[i] + c[i] + d[i];
}

/* Source j begins at src + j * stride.  In pieces that stay in the first cache: each source is
 * read once, the result written once. */
static void fold(char *to, const char *from, size_t stride, int sources, size_t bytes)
{
    enum { PIECE = 4096 };

    for (size_t at = 0; at < bytes; at += PIECE) {
        const size_t n = (bytes - at < PIECE ? bytes - at : PIECE) / sizeof(float);
        float *dst = (float *)(void *)(to + at);
        const float *first = (const float *)(const void *)(from + at);
        const size_t step = stride / sizeof(float);
        int j = sources < 4 ? 2 : 4;

        if (j == 2)
            sum_of_2(dst, first, first + step, n);
        else
            sum_of_4(dst, first, first + step, first + 2 * step, first + 3 * step, n);
        for (; j + 3 <= sources; j += 3)
            sum_of_4(dst, dst, first + (size_t)j * step, first + (size_t)(j + 1) * step,
                     first + (size_t)(j + 2) * step, n);
        for (; j < sources; j++)
            sum_of_2(dst, dst, first + (size_t)j * step, n);
    }
}

/* Bytes of each source. */
static size_t room_of(const struct job *job, int folds)
{
    return folds ? job->area / (size_t)job->sources / 64 * 64 : job->area;
}

/* One result of `bytes` from `at` on, of a source or of the sum of all. */
static void once(const struct job *job, int folds, size_t at, size_t bytes)
{
    if (folds && job->sources > 1)
        fold(job->write + at, job->read + at, room_of(job, 1), job->sources, bytes);
    else
        memcpy(job->write + at, job->read + at, bytes);
}

/* The best time of one result, of the slowest process. */
static int best_time(const struct member *m, int folds, size_t bytes, int cold, double *best)
{
    const struct job *job = m->arg;
    const size_t room = room_of(job, folds);
    const size_t repeats = bytes < ROUND_BYTES ? ROUND_BYTES / bytes : 1;
    double spent = 0;
    size_t at = 0;

    *best = NAN;
    if (bytes > (cold ? room / 2 : room))
        return 0;
    for (int round = 0; round < LEAST_ROUNDS || spent < ROUNDS_US; round++) {
        double us, began;

        if (crew_meet(m) != 0)
            return -1;
        began = now_us();
        for (size_t i = 0; i < repeats; i++) {
            once(job, folds, at, bytes);
            __asm__ volatile("" ::: "memory"); /* each of them is done */
            at = !cold || at + 2 * bytes > room ? 0 : at + bytes;
        }
        if (crew_longest(m, (now_us() - began) / (double)repeats, &us) != 0)
            return -1;
        spent += us * (double)repeats; /* the same on all, so they go on or end together */
        *best = fmin(*best, us);
    }
    return 0;
}

static void *touched(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return at == MAP_FAILED ? NULL : memset(at, 1, bytes);
}

static int all_sizes(const struct member *m)
{
    struct job *job = m->arg;
    double *result = m->place->result;
    struct speed best;

    job->read = touched(job->area);
    job->write = touched(job->area);
    if (!job->read || !job->write)
        return -1;
    for (int i = 0; i < LIMIT_SIZES; i++) {
        const size_t bytes = limit_bytes(i);

        if (i > 0 && bytes >= 4 * job->largest)
            break;
        if (best_time(m, 0, bytes, 0, &best.copy_hot) != 0
            || best_time(m, 0, bytes, 1, &best.copy_cold) != 0
            || best_time(m, 1, bytes, 0, &best.fold_hot) != 0
            || best_time(m, 1, bytes, 1, &best.fold_cold) != 0)
            return -1;
        if (m->index == 0)
            memcpy(result + 4 * i,
                   (double[4]){ best.copy_hot, best.copy_cold, best.fold_hot, best.fold_cold },
                   4 * sizeof *result);
    }
    return 0;
}

int limits_speeds(struct limits *limits, size_t largest, const struct cpus *cpus, char why[200])
{
    const size_t cold = COLD_BYTES / 2 / (size_t)limits->processes;
    struct job job = { .area = largest > cold ? largest : cold,
                       .largest = largest,
                       .sources = limits->ranks };
    double result[CREW_RESULTS];

    /* Of many ranks each has a source of two of the smallest size in any case. */
    if (job.area < (size_t)limits->ranks * 2 * limit_bytes(0))
        job.area = (size_t)limits->ranks * 2 * limit_bytes(0);
    if (crew_run(limits->processes, cpus, 0, all_sizes, &job, result, why) < 0)
        return -1;
    for (limits->sizes = 0; limits->sizes < LIMIT_SIZES; limits->sizes++) {
        const double *r = result + 4 * limits->sizes;

        if (!(r[0] > 0))
            break; /* too large: not measured */
        limits->speeds[limits->sizes] =
            (struct speed){ limit_bytes(limits->sizes), r[0], r[1], r[2], r[3] };
    }
    return 0;
}

/* ---- Hand-overs -------------------------------------------------------------------------- */

#define ROUND_US 100000.0
#define LONGEST_ROUND_US \
    1e6 /* for two processes that have not had their CPUs at the same time yet */
#define UNDISTURBED_US 100.0
#define BURST 32 /* turns; short, so that on a busy host some go undisturbed */
#define SLOW_BURST_US \
    1e3 /* after one the next is of one turn: where each costs a time slice, 32 take long */
#define LAST 0x80000000u /* in a flag: the round's last turn */

enum way { SPIN, YIELD, FUTEX };

static void futex(_Atomic uint32_t *word, int operation, uint32_t value)
{
    const struct timespec second = { 1, 0 }; /* a wake-up that is lost delays, and no more */

    syscall(SYS_futex, word, operation, value, operation == FUTEX_WAIT ? &second : NULL, NULL, 0);
}

static void raise_flag(enum way way, _Atomic uint32_t *flag, uint32_t value)
{
    atomic_store_explicit(flag, value, memory_order_release);
    if (way == FUTEX)
        futex(flag, FUTEX_WAKE, 1);
}

/* Returns what the flag has become. */
static uint32_t wait_for(enum way way, _Atomic uint32_t *flag, uint32_t before)
{
    uint32_t seen;

    while ((seen = atomic_load_explicit(flag, memory_order_acquire)) == before) {
        if (way == YIELD)
            sched_yield();
        else if (way == FUTEX)
            futex(flag, FUTEX_WAIT, before);
    }
    return seen;
}

/* Member 0 leads; the time of one way in the best burst of turns. */
static double lead(enum way way, _Atomic uint32_t *mine, _Atomic uint32_t *other, uint32_t *turn)
{
    const double began = now_us();
    double best = INFINITY;
    int turns = 1;

    for (int last = 0; !last;) {
        const double burst = now_us();
        double us;

        last = burst - began > (best < UNDISTURBED_US ? ROUND_US : LONGEST_ROUND_US);
        for (int i = 0; i < turns; i++) {
            const uint32_t before = *turn;

            *turn = ((before & ~LAST) + 1) | (last && i == turns - 1 ? LAST : 0);
            raise_flag(way, mine, *turn);
            wait_for(way, other, before);
        }
        us = now_us() - burst;
        best = fmin(best, us / (2 * turns));
        turns = us > SLOW_BURST_US ? 1 : BURST;
    }
    return best;
}

static void answer(enum way way, _Atomic uint32_t *mine, _Atomic uint32_t *other, uint32_t *turn)
{
    do {
        *turn = wait_for(way, other, *turn);
        raise_flag(way, mine, *turn);
    } while (!(*turn & LAST));
}

static int take_turns(const struct member *m)
{
    const enum way way = *(const enum way *)m->arg;
    _Atomic uint32_t *mine = &m->place->flag[m->index][0];
    _Atomic uint32_t *other = &m->place->flag[1 - m->index][0];
    uint32_t turn = 0;

    if (crew_meet(m) != 0)
        return -1;
    if (m->index == 1)
        answer(way, mine, other, &turn);
    else
        m->place->result[0] = lead(way, mine, other, &turn);
    return 0;
}

static int one_way(const struct cpus *cpus, int on_one, enum way way, double *us, char why[200])
{
    double result[CREW_RESULTS];
    const int failed = crew_run(2, cpus, on_one, take_turns, &way, result, why);

    *us = result[0];
    return failed;
}

int limits_hand_overs(struct limits *limits, const struct cpus *cpus, char why[200])
{
    struct hand_overs *h = &limits->hand_overs;

    *h = (struct hand_overs){ NAN, NAN, NAN, NAN, NAN };
    if (one_way(cpus, 1, YIELD, &h->yield_on_one, why) < 0
        || one_way(cpus, 1, FUTEX, &h->futex_on_one, why) < 0)
        return -1;
    if (cpus_count(cpus) < 2)
        return 0;
    return one_way(cpus, 0, SPIN, &h->spin, why) < 0 || one_way(cpus, 0, YIELD, &h->yield, why) < 0
                   || one_way(cpus, 0, FUTEX, &h->futex, why) < 0
               ? -1
               : 0;
}
