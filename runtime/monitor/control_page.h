/* SPDX-License-Identifier: Apache-2.0 */
/* control_page.h - the control page: what the ranks of a host and their ctrun let each other see.
 *
 * ctrun makes one memory for the workers of a round on its host and hands it down as an
 * inherited descriptor (CT_CONTROL).  In it, one behind the other:
 *
 *     struct control_head            of ctrun: which job this is, who died, shall it stop
 *     struct control_rank [local]    of each worker: which calls it is in, which were the last
 *     struct control_death [world]   of ctrun: one for each worker that ended, on whatever host
 *
 * Each field has one writer.  A reader never waits for one: ctctl reads while all ranks are
 * stopped, and after they died.  Nothing in it is a pointer, and a reader believes nothing:
 * a program that scribbles over its page deceives its reader and nobody else.
 *
 * Without ctrun, or where a wrapper closed the descriptor, a rank has a memory of its own, so
 * that its calls are recorded all the same; then nobody tells of deaths in it. */
#ifndef RUNTIME_MONITOR_CONTROL_PAGE_H
#define RUNTIME_MONITOR_CONTROL_PAGE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "runtime/shm/waiter.h"
#include "runtime/util/error.h"

#define CONTROL_MAGIC 0x31707463u /* "ctp1" */
#define CONTROL_VERSION 2
#define CONTROL_NAME "ct-control" /* of the memfd: how ctctl finds it in /proc/<pid>/fd */
#define CONTROL_GROUPS 24         /* of a worker, at a time; what is beyond is not recorded */
#define CONTROL_CALLS 128         /* a power of two: the last calls of a worker */
#define CONTROL_TOMBS 8           /* groups of a dead worker that are told to other hosts */

/* ---- ctrun's part ---------------------------------------------------------- */

struct control_head {
    uint32_t magic, version;
    int32_t node, nodes; /* of this host in the job */
    int32_t base, local; /* the rank of the first worker here, and how many there are */
    int32_t world;
    int32_t launcher;   /* pid of ctrun; without one, the rank's own */
    int32_t restarts;   /* so far */
    int32_t own_memory; /* no ctrun made this: a rank's own */
    int64_t started_ns; /* the round, CLOCK_REALTIME */
    char generation[64];
    char run_id[128];
    char host[64];
    char program[256]; /* as the user named it */
    /* A futex: raised with whatever is told below.  One word for all, for one wake-up reaches all.
     */
    _Alignas(CACHE_PAIR) _Atomic uint32_t news;
    _Atomic uint32_t deaths;     /* control_death_at(0 .. deaths - 1) can be read */
    _Atomic uint32_t stop_asked; /* ctrun asks the ranks to stop: the next vote of
                                  * ct_should_stop() decides it */
};

/* How a worker ended.  CLD_EXITED, CLD_KILLED, CLD_DUMPED as waitid() says it, or
 * CONTROL_HOST_LOST, whose code says how its ctrun was lost: it did not answer any more, or its
 * connection ended. */
enum { CONTROL_HOST_LOST = 100 };
enum { CONTROL_SILENT, CONTROL_CLOSED };

/* How far a worker had come in a group when it ended. */
struct control_tomb {
    uint64_t group, begun, done; /* numbers of its collective calls */
};

struct control_death {
    int32_t rank; /* of the job */
    int32_t how, code;
    int32_t pid;
    int32_t asked; /* the signal by which ctrun had asked it to stop; 0: it died by itself */
    int32_t tombs;
    char host[64];
    struct control_tomb tomb[CONTROL_TOMBS];
};

/* ---- A worker's part ------------------------------------------------------- */

enum control_state {
    CONTROL_STARTED, /* by ctrun; libct has not been heard of */
    CONTROL_INIT,    /* in ct_init_process_group() */
    CONTROL_READY,   /* has a default group, or one of ct_create_group() */
    CONTROL_LEFT,    /* destroyed it */
    CONTROL_OUTSIDE  /* ct_init_process_group() failed, and the program goes on */
};

enum control_phase {
    CONTROL_IDLE,   /* in no call of this group; what stands there is the last one */
    CONTROL_IN,     /* in the call */
    CONTROL_QUEUED, /* an asynchronous one waits for its turn */
    CONTROL_FAILED  /* the last one failed: the group is broken */
};

/* What a call is: 32 bytes, as they stand in the ring. */
struct control_call {
    uint64_t seq;      /* in its group; of a message: 0 */
    uint64_t count;    /* elements */
    uint64_t begun_ns; /* CLOCK_MONOTONIC_COARSE */
    uint8_t operation; /* enum operation */
    uint8_t dtype;     /* ct_dtype */
    int8_t op;         /* -1: none */
    uint8_t phase;     /* when it was written: CONTROL_IN, ... */
    uint16_t group;    /* index in groups[]; CONTROL_GROUPS: in none of them */
    int16_t root;      /* or the peer of a message, rank in the group; -1: none or any */
};

/* A group of this worker, and the call it is in or was in last.  A reader takes `version`,
 * the fields, and `version` again: the same and even, or it reads once more. */
struct control_group {
    _Alignas(CACHE_PAIR) _Atomic uint64_t id; /* 0: free.  The same on all members */
    _Atomic uint32_t version;
    int32_t rank, size;           /* in the group */
    _Atomic uint64_t begun, done; /* numbers of its collective calls */
    struct control_call now;
    uint64_t caller; /* return address in the program of who made the call */
    int32_t tag;     /* of a message */
    char name[28];
    _Atomic uint64_t was; /* while it is free: the id of the group that left it; 0: none did */
};

struct control_rank {
    int32_t rank, local_rank;
    _Atomic int32_t worker;    /* pid that ctrun started; 0: not yet, or gone */
    _Atomic int32_t pid;       /* of the process that speaks here: the worker, or a child of it */
    _Atomic uint32_t state;    /* enum control_state */
    _Atomic uint64_t since_ns; /* of the state, CLOCK_MONOTONIC_COARSE */
    _Atomic uint32_t inits;    /* of this worker's programs, for the names of their keys */
    _Atomic uint64_t calls;    /* ever written to the ring */
    /* What it waits for outside of groups, as words; "" when it does not: "key grads/7 of the
     * store" */
    _Atomic uint32_t waiting_version;
    uint64_t waiting_since_ns;
    char waiting_for[96];
    /* Of ct_should_stop(). */
    _Atomic uint32_t stop_checked; /* the program calls it, so it can stop without a signal */
    _Atomic uint32_t stop_wanted;  /* the worker got SIGTERM */
    _Atomic uint64_t stopped_at;   /* the call, counted in its group, that said 1; 0: none has */
    struct control_group groups[CONTROL_GROUPS];
    /* control_call_at().  In words: a thread that was put aside for CONTROL_CALLS calls of others
     * writes beside the one whose turn it is. */
    _Atomic uint64_t ring[CONTROL_CALLS][sizeof(struct control_call) / 8];
};

static inline void control_note_call(struct control_rank *own, uint64_t number,
                                     const struct control_call *call)
{
    _Atomic uint64_t *words = own->ring[number % CONTROL_CALLS];
    uint64_t values[sizeof *call / 8];

    memcpy(values, call, sizeof values);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        atomic_store_explicit(&words[i], values[i], memory_order_relaxed);
}

static inline struct control_call control_call_at(const struct control_rank *page, uint64_t number)
{
    const _Atomic uint64_t *words = page->ring[number % CONTROL_CALLS];
    uint64_t values[sizeof(struct control_call) / 8];
    struct control_call call;

    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        values[i] = atomic_load_explicit(&words[i], memory_order_relaxed);
    memcpy(&call, values, sizeof call);
    return call;
}

/* ---- Where it lies --------------------------------------------------------- */

#define CONTROL_HEAD_BYTES ((size_t)4096)
#define CONTROL_RANK_BYTES ((size_t)8192)
_Static_assert(sizeof(struct control_head) <= CONTROL_HEAD_BYTES, "the head has one page");
_Static_assert(sizeof(struct control_rank) <= CONTROL_RANK_BYTES, "a rank has two");
_Static_assert(sizeof(struct control_call) == 32, "a call is 32 bytes");

static inline size_t control_bytes(int local, int world)
{
    return CONTROL_HEAD_BYTES + (size_t)local * CONTROL_RANK_BYTES
           + (size_t)world * sizeof(struct control_death);
}

static inline struct control_rank *control_rank_at(struct control_head *head, int local)
{
    return (struct control_rank *)(void *)((char *)head + CONTROL_HEAD_BYTES
                                           + (size_t)local * CONTROL_RANK_BYTES);
}

static inline struct control_death *control_death_at(struct control_head *head, uint32_t i)
{
    return (struct control_death *)(void *)((char *)head + control_bytes(head->local, 0)) + i;
}

/* ---- What is written while others read ------------------------------------- */

#define CONTROL_SPINS 1000 /* much longer than anybody writes, */
#define CONTROL_NAPS 500   /* of a millisecond: unless he lost his CPU meanwhile */

void control_nap(void);

/* Makes the version odd: for readers, and since several threads may write at the same time.  Some
 * stores later control_written() makes it even.  Gives the even one.  An odd one that stays
 * is nobody's: a neighbour scribbled there.  It is written over, and at worst a reader meets
 * half of one line and half of another. */
static inline uint32_t control_write(_Atomic uint32_t *version)
{
    uint32_t even = atomic_load_explicit(version, memory_order_relaxed) & ~1u;

    for (int turn = 0; turn < CONTROL_SPINS + CONTROL_NAPS; turn++) {
        if (atomic_compare_exchange_weak_explicit(version, &even, even + 1, memory_order_acquire,
                                                  memory_order_relaxed))
            break;
        even &= ~1u;
        if (turn < CONTROL_SPINS)
            cpu_relax();
        else
            control_nap();
    }
#ifndef CT_THREAD_SANITIZER /* which knows no fences, and has no reader here */
    atomic_thread_fence(memory_order_release);
#endif
    return even;
}

static inline void control_written(_Atomic uint32_t *version, uint32_t even)
{
    atomic_store_explicit(version, even + 2, memory_order_release);
}

/* ---- A rank's view --------------------------------------------------------- */

struct control {
    struct control_head *head;
    struct control_rank *own;
    size_t bytes;
    int event_fd;  /* ctrun's: written whenever news is raised; -1: no ctrun */
    int memory_fd; /* of a memory of our own; -1: it is ctrun's */
    int worker;    /* rank in ctrun's job; -1: no ctrun */
    /* Copies of the head's: what another worker scribbles there later leads nobody out of the
     * memory. */
    int base, local, world;
    struct control_death *deaths; /* [world] */
};

/* CT_CONTROL's; 0: there is none.  One process has one page of ctrun's, however often it is taken.
 */
int control_take(struct control *control);
/* The same, or else a memory of our own.  Fails only without memory. */
ct_status control_open(struct control *control, int rank);
void control_close(struct control *control);

/* How many deaths were told of. */
static inline uint32_t control_deaths(const struct control *control)
{
    const uint32_t told = atomic_load_explicit(&control->head->deaths, memory_order_acquire);

    return told <= (uint32_t)control->world ? told : (uint32_t)control->world;
}

static inline const struct control_death *control_death(const struct control *control, uint32_t i)
{
    return &control->deaths[i];
}

/* "rank 2 (pid 4310 on node-b) was killed by SIGKILL", of ctrun's job; and its second half alone.
 */
void control_death_sentence(const struct control_death *death, char *text, size_t size);
void control_death_words(const struct control_death *death, char *text, size_t size);

/* Until the head's news is another than it was, or so long. */
void control_sleep(const struct control *control, uint32_t heard, int ms);

/* Readable when news was told since the last look (epoll_wait): for who sleeps in poll().  The
 * caller's; -1: there is no ctrun, or no descriptor left. */
int control_alarm(const struct control *control);

/* Gives the one before. */
enum control_state control_set_state(struct control *control, enum control_state state);
/* Words for what it waits for outside of groups; "" when it does not any more.  From any thread:
 * of several the last one's stand there. */
void control_waiting(struct control *control, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
