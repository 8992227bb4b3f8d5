/* SPDX-License-Identifier: Apache-2.0 */
/* control_page.h - the control page: what the ranks of a host and their ctrun show each other.
 *
 * ctrun makes one memory for the workers of a round on its host, which inherit its descriptor
 * (CT_CONTROL).  It has, one behind the other:
 *
 *     struct control_head            written by ctrun: the job, how many died, shall the ranks stop
 *     struct control_rank [local]    written by each worker: its current calls and its last ones
 *     struct control_death [world]   written by ctrun: one for each worker that ended, on any host
 *
 * Each field has one writer.  A reader never waits for a writer: ctctl reads while all ranks are
 * stopped, and after they died.  Nothing in it is a pointer, and a reader checks what it reads: a
 * program that overwrites its page misleads readers of that page only.
 *
 * Without ctrun, or where a wrapper closed the descriptor, a rank has a memory of its own, so
 * that its calls are recorded all the same.  It gets no death notices then. */
#ifndef RUNTIME_MONITOR_CONTROL_PAGE_H
#define RUNTIME_MONITOR_CONTROL_PAGE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "runtime/shm/waiter.h"
#include "runtime/util/error.h"

#define CONTROL_MAGIC 0x31707463u /* "ctp1" */
#define CONTROL_VERSION 5
#define CONTROL_NAME "ct-control" /* the name of the memfd, for ctctl */
#define CONTROL_GROUPS 24         /* how many groups of a worker are recorded at a time */
#define CONTROL_CALLS 128 /* a power of two: how many of the last calls of a worker are kept */
#define CONTROL_TOMBS 8   /* groups of a dead worker that a notice to other hosts describes */

/* A call, in 32 bytes, as they stand in the ring. */
struct control_call {
    uint64_t seq;      /* number in its group; of a message: 0 */
    uint64_t count;    /* elements */
    uint64_t begun_ns; /* CLOCK_MONOTONIC_COARSE */
    uint8_t operation; /* enum operation */
    uint8_t dtype;     /* ct_dtype */
    int8_t op;         /* -1: none */
    uint8_t phase;     /* the phase when it was written: CONTROL_IN, ... */
    uint16_t group;    /* index in groups[]; CONTROL_GROUPS: the group has no line there */
    int16_t root;      /* or the peer of a message, rank in the group; -1: none or any */
};

/* ---- ctrun's part ---------------------------------------------------------- */

struct control_head {
    uint32_t magic, version;
    int32_t node, nodes; /* number of this node in the job, and how many there are */
    int32_t base, local; /* the rank of the first worker here, and how many there are */
    int32_t world;
    int32_t launcher;   /* pid of ctrun; without one, the rank's own */
    int32_t restarts;   /* how many there were so far */
    int32_t own_memory; /* it was not made by ctrun: it is a rank's own */
    int64_t started_ns; /* when the round started, CLOCK_REALTIME */
    char generation[64];
    char run_id[128];
    char host[64];
    char program[256]; /* as the user wrote it */
    /* A futex, which ctrun raises with each notice below.  There is one for all ranks, so that
     * one wake-up reaches all of them. */
    _Alignas(CACHE_PAIR) _Atomic uint32_t notices;
    _Atomic uint32_t deaths;     /* control_death_at(0 .. deaths - 1) can be read */
    _Atomic uint32_t stop_asked; /* ctrun asks the ranks to stop: the next vote of
                                  * ct_should_stop() decides it */
};

/* How a worker ended: CLD_EXITED, CLD_KILLED or CLD_DUMPED as of waitid(), or CONTROL_HOST_LOST.
 * The code of the last says how its ctrun was lost: it stopped answering, or its connection
 * ended. */
enum { CONTROL_HOST_LOST = 100 };
enum { CONTROL_SILENT, CONTROL_CLOSED };

/* How far a worker had come in one group when it ended. */
struct control_tomb {
    uint64_t group, begun, done; /* numbers of its collective calls */
    uint32_t call;               /* control_call_hash() of the last call that it began */
};

/* The call of a worker that failed because of another rank.  In a death without one: the call in
 * which the worker was, if it was in any. */
struct control_blame {
    struct blame on; /* a rank of ctrun's job; BLAME_NONE: no call has failed so */
    uint64_t group;  /* id of the group that it broke; 0: it broke no group */
    uint64_t at_ns;  /* when, CLOCK_MONOTONIC_COARSE; control_blame() sets it */
    struct control_call call;
    uint32_t call_hash; /* control_call_hash() of ->call; control_blame() sets it too */
};

struct control_death {
    int32_t rank; /* in the job */
    int32_t how, code;
    int32_t pid;
    int32_t asked; /* the signal by which ctrun had asked it to stop; 0: it ended by itself */
    int32_t tombs;
    int32_t stopped;  /* ctrun found it stopped when it ended the workers */
    int64_t noted_ns; /* when it noted its error, since 1970 by its host's clock; 0: no note */
    struct control_blame blame;
    char host[64];
    struct control_tomb tomb[CONTROL_TOMBS];
};

/* ---- A worker's part ------------------------------------------------------- */

enum control_state {
    CONTROL_STARTED, /* ctrun started it; libct has written nothing yet */
    CONTROL_INIT,    /* in ct_init_process_group() */
    CONTROL_READY,   /* has a default group, or one of ct_create_group() */
    CONTROL_LEFT,    /* has destroyed it */
    CONTROL_OUTSIDE  /* ct_init_process_group() failed, and the program goes on */
};

enum control_phase {
    CONTROL_IDLE,   /* in no call of this group; the line shows the last one */
    CONTROL_IN,     /* in the call */
    CONTROL_QUEUED, /* an asynchronous one waits for its turn */
    CONTROL_FAILED  /* the last one failed: the group is broken */
};

/* A group of this worker, and the call that it is in or was in last.  A reader reads `version`,
 * the fields, and `version` again.  If both are equal and even, the fields belong together; else
 * it reads once more. */
struct control_group {
    /* 0: the line is free.  The id is the same on all members */
    _Alignas(CACHE_PAIR) _Atomic uint64_t id;
    _Atomic uint32_t version;
    int32_t rank, size;           /* in the group */
    _Atomic uint64_t begun, done; /* numbers of its collective calls */
    struct control_call now;
    uint64_t caller; /* where in the program the call was made: a return address */
    int32_t tag;     /* of a message */
    char name[28];
    /* while the line is free: the id of the group that had it last; 0: none did */
    _Atomic uint64_t was;
    uint64_t bytes; /* of all its calls so far: count times the dtype's size */
};
/* As far as one look can tell, without a copy of the line. */
static inline int control_is_in_call(const struct control_group *line)
{
    return atomic_load_explicit(&line->id, memory_order_relaxed) != 0
           && __atomic_load_n(&line->now.phase, __ATOMIC_RELAXED) == CONTROL_IN;
}

_Static_assert(sizeof(struct control_group) == CACHE_PAIR, "what a call writes is one cache pair");

struct control_rank {
    int32_t rank, local_rank;
    /* pid of the process that ctrun started; 0: not started yet, or reaped */
    _Atomic int32_t worker;
    /* pid of the process that writes this page: the worker, or a child of it */
    _Atomic int32_t pid;
    _Atomic uint32_t state;    /* enum control_state */
    _Atomic uint64_t since_ns; /* when the state began, CLOCK_MONOTONIC_COARSE */
    /* how often programs of this worker initialised; it is in the names of their store keys */
    _Atomic uint32_t inits;
    _Atomic uint64_t calls; /* how many calls were ever written to the ring */
    /* The reason of ->blame, enum blame_reason.  It is next to ->calls since each call reads it. */
    _Atomic uint32_t blamed;
    /* of calls on groups that the worker has left; those of the others have theirs in their line */
    _Atomic uint64_t bytes_before;
    /* What the worker waits for outside of groups, as text: "key grads/7 of the store"; "" when
     * it does not wait. */
    _Atomic uint32_t waiting_version;
    uint64_t waiting_since_ns;
    char waiting_for[96];
    /* ct_note_place(): "train.py:88 (step)", where in the program the call of this group was made
     * that was under way at that time.  place_seq is its number, 0 of a message. */
    _Atomic uint32_t place_version;
    uint64_t place_group, place_seq, place_noted_ns;
    char place[96];
    _Atomic uint32_t blame_version;
    struct control_blame blame;
    /* Of ct_should_stop(). */
    /* the program calls it, so the worker can stop without a signal */
    _Atomic uint32_t stop_checked;
    _Atomic uint32_t stop_wanted; /* the worker got SIGTERM */
    _Atomic uint64_t stopped_at;  /* number of the call in its group that returned 1; 0: none has */
    struct control_group groups[CONTROL_GROUPS];
    /* Read by control_call_at().  The ring consists of atomic words: a thread that was preempted
     * while the others made CONTROL_CALLS calls writes to an entry at the same time as another
     * thread. */
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

/* Equal for equal calls; never 0. */
static inline uint32_t control_call_hash(const struct control_call *call)
{
    const uint64_t words[] = { call->seq, call->count,
                               (uint64_t)call->operation | (uint64_t)call->dtype << 8
                                   | (uint64_t)(uint8_t)call->op << 16
                                   | (uint64_t)(uint16_t)call->root << 32 };
    uint64_t hash = 0;

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        hash = (hash ^ words[i]) * 0x9e3779b97f4a7c15u;
    return (uint32_t)(hash >> 32) | 1;
}

/* ---- What is written while others read ------------------------------------- */

#define CONTROL_SPINS 1000 /* much longer than a write takes */
#define CONTROL_NAPS 500   /* naps of a millisecond, in case the writer lost its processor */

void control_nap(void);

/* Makes the version odd and returns the even one before it; control_written() makes it even
 * again some stores later.  That is for readers, and keeps apart several threads that write.  If
 * the version stays odd, its writer is gone: another worker overwrote the field.  Then it is
 * taken over; at worst a reader meets half of one line and half of another. */
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

/* A reader calls it after the fields, before it reads the version again. */
static inline void control_read_fence(void)
{
#ifndef CT_THREAD_SANITIZER
    atomic_thread_fence(memory_order_acquire);
#endif
}

/* ---- A rank's view --------------------------------------------------------- */

struct control {
    struct control_head *head;
    struct control_rank *own;
    size_t bytes;
    int event_fd;  /* ctrun writes to it with each notice; -1: there is no ctrun */
    int memory_fd; /* descriptor of a memory of our own; -1: the memory is ctrun's */
    int worker;    /* rank in ctrun's job; -1: there is no ctrun */
    /* Copies of the head's fields: if another worker overwrites those later, no address here
     * lies outside of the memory. */
    int base, local, world;
    struct control_death *deaths; /* [world] */
};

/* Maps the page of CT_CONTROL.  0: there is none.  A process has one such page, however often it
 * calls this. */
int control_take(struct control *control);
/* The same, or else makes a memory of our own.  Fails only without memory. */
ct_status control_open(struct control *control, int rank);
void control_close(struct control *control);

/* How many death notices there are. */
static inline uint32_t control_deaths(const struct control *control)
{
    const uint32_t count = atomic_load_explicit(&control->head->deaths, memory_order_acquire);

    return count <= (uint32_t)control->world ? count : (uint32_t)control->world;
}

static inline const struct control_death *control_death(const struct control *control, uint32_t i)
{
    return &control->deaths[i];
}

/* "rank 2 (pid 4310 on node-b) was killed by SIGKILL", with the rank in ctrun's job.
 * control_death_words() gives the second half alone. */
void control_death_sentence(const struct control_death *death, char *text, size_t size);
void control_death_words(const struct control_death *death, char *text, size_t size);

/* Sleeps until head->notices differs from `seen`, or for so many ms. */
void control_sleep(const struct control *control, uint32_t seen, int ms);

/* For a thread that sleeps in poll(): an epoll descriptor that is readable when a notice came
 * since the last epoll_wait() on it.  The caller owns it.  -1: there is no ctrun, or no
 * descriptor left. */
int control_alarm(const struct control *control);

/* The call of a line, which is read again if its owner wrote meanwhile.  0: the line belongs to
 * another group, or its owner never stops writing. */
int control_line_read(const struct control_group *line, uint64_t id, struct control_call *call);

/* Notes that a call of this worker fails because of a rank of ctrun's job.  The caller does so
 * before it returns, and ctrun reads it when the worker has ended.  A blame that broke a group
 * stays; the next blame replaces any other. */
void control_blame(struct control *control, const struct control_blame *blame);
/* A call on the group, begun at begun_ns, succeeded.  So the worker has survived an earlier failure
 * on another group.  group 0: it has survived all failures. */
void control_forgive(struct control_rank *own, uint64_t group, uint64_t begun_ns);
/* 0: the worker blames no rank of the job, which has `world` ranks. */
int control_blame_read(struct control_rank *page, int world, struct control_blame *blame);

/* Returns the state before. */
enum control_state control_set_state(struct control *control, enum control_state state);
/* Sets the text about what the worker waits for outside of groups; "" when it waits no more.
 * Any thread may call it; the last text stays. */
void control_waiting(struct control *control, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
