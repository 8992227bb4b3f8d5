/* SPDX-License-Identifier: Apache-2.0 */
/* scheduler.c - see scheduler.h.
 *
 * A coroutine begins by ucontext and then changes by _setjmp() and _longjmp(), which ask nothing of
 * the kernel; swapcontext() would set the signal mask each time. */
#undef _FORTIFY_SOURCE /* its longjmp() takes another stack for a mistake */
#include "bench/network_sim/scheduler.h"

#include <setjmp.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#define STACK                                                                          \
    ((size_t)32 << 10) /* algorithms keep little there; pages not touched cost nothing \
                        */

struct event {
    double us;
    uint64_t number; /* decides among those of one time */
    void (*happens)(void *arg);
    void *arg;
};

struct rank {
    jmp_buf at; /* where it sleeps */
    double clock;
    int has_begun, has_ended;
};

static struct {
    struct event *heap; /* the earliest first: below i are 2i+1 and 2i+2 */
    size_t events, room;
    uint64_t numbers;
    double now;
    struct rank *ranks;
    char *stacks;
    size_t stack_bytes;
    int count, running, stopped, left;
    void (*body)(int rank);
    jmp_buf back; /* in the loop over the events */
} s;

/* ---- Events ----------------------------------------------------------------------- */

static int is_before(const struct event *a, const struct event *b)
{
    return a->us < b->us || (a->us == b->us && a->number < b->number);
}

static int has_room(void)
{
    const size_t room = s.room ? 2 * s.room : 1 << 16;
    struct event *heap;

    if (s.events < s.room)
        return 1;
    heap = realloc(s.heap, room * sizeof *heap);
    if (!heap)
        return 0;
    s.heap = heap;
    s.room = room;
    return 1;
}

void at_time(double us, void (*happens)(void *arg), void *arg)
{
    const struct event event = { us, s.numbers++, happens, arg };
    size_t i = s.events;

    if (!has_room()) {
        s.stopped = 1;
        return;
    }
    s.events++;
    for (; i > 0 && is_before(&event, &s.heap[(i - 1) / 2]); i = (i - 1) / 2)
        s.heap[i] = s.heap[(i - 1) / 2];
    s.heap[i] = event;
}

static struct event take_earliest(void)
{
    const struct event first = s.heap[0], last = s.heap[--s.events];
    size_t i = 0, below = 1;

    while (below < s.events) {
        if (below + 1 < s.events && is_before(&s.heap[below + 1], &s.heap[below]))
            below++;
        if (!is_before(&s.heap[below], &last))
            break;
        s.heap[i] = s.heap[below];
        i = below;
        below = 2 * i + 1;
    }
    s.heap[i] = last;
    return first;
}

double now(void)
{
    return s.now;
}

/* ---- Ranks ------------------------------------------------------------------------ */

int this_rank(void)
{
    return s.running;
}

double clock_of(int rank)
{
    return s.ranks[rank].clock;
}

int has_ended(int rank)
{
    return s.ranks[rank].has_ended;
}

void works(int rank, double from, double us)
{
    struct rank *r = &s.ranks[rank];

    r->clock = (r->clock > from ? r->clock : from) + us;
}

/* The first function on a rank's stack; it never returns there. */
static void begin(void)
{
    const int rank = s.running;

    s.body(rank);
    s.ranks[rank].has_ended = 1;
    s.left--;
    _longjmp(s.back, 1);
}

static void begin_on_stack(int rank)
{
    ucontext_t loop, first;

    getcontext(&first);
    first.uc_stack.ss_sp = s.stacks + (size_t)rank * STACK;
    first.uc_stack.ss_size = STACK;
    first.uc_link = NULL;
    makecontext(&first, begin, 0);
    swapcontext(&loop, &first);
}

void sleep_here(void)
{
    if (_setjmp(s.ranks[s.running].at) == 0)
        _longjmp(s.back, 1);
}

void wake(int rank)
{
    struct rank *r = &s.ranks[rank];

    if (r->has_ended)
        return;
    s.running = rank;
    if (_setjmp(s.back) == 0) {
        if (r->has_begun)
            _longjmp(r->at, 1);
        r->has_begun = 1;
        begin_on_stack(rank);
    }
    s.running = -1;
}

static void wake_later(void *arg)
{
    wake((int)(intptr_t)arg);
}

void sleep_until_clock(void)
{
    const int rank = s.running;

    while (s.ranks[rank].clock > s.now) {
        at_time(s.ranks[rank].clock, wake_later, (void *)(intptr_t)rank);
        sleep_here();
    }
}

/* ---- A run ------------------------------------------------------------------------ */

static void free_ranks(void)
{
    if (s.stacks)
        munmap(s.stacks, s.stack_bytes);
    free(s.ranks);
    s.stacks = NULL;
    s.ranks = NULL;
    s.count = 0;
}

/* Those of a run before are used again, so that their pages are there. */
static int make_ranks(int ranks)
{
    free_ranks();
    s.stack_bytes = (size_t)ranks * STACK;
    s.stacks = mmap(NULL, s.stack_bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    s.ranks = malloc((size_t)ranks * sizeof *s.ranks);
    if (s.stacks == MAP_FAILED)
        s.stacks = NULL;
    if (!s.stacks || !s.ranks)
        return -1;
    s.count = ranks;
    return 0;
}

int scheduler_open(int ranks)
{
    if (ranks > s.count && make_ranks(ranks) < 0)
        return -1;
    for (int i = 0; i < ranks; i++) {
        s.ranks[i].clock = 0;
        s.ranks[i].has_begun = s.ranks[i].has_ended = 0;
    }
    s.events = 0;
    s.numbers = 0;
    s.now = 0;
    s.left = ranks;
    s.running = -1;
    s.stopped = 0;
    return 0;
}

int scheduler_run(void (*body)(int rank))
{
    s.body = body;
    for (int i = 0; i < s.left; i++)
        at_time(0, wake_later, (void *)(intptr_t)i);
    while (s.events > 0 && !s.stopped) {
        const struct event event = take_earliest();

        s.now = event.us;
        event.happens(event.arg);
    }
    return s.left;
}

void scheduler_stop(void)
{
    s.stopped = 1;
}

void scheduler_close(void)
{
    free_ranks();
    free(s.heap);
    s.heap = NULL;
    s.events = s.room = 0;
}
