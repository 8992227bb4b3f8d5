/* SPDX-License-Identifier: Apache-2.0 */
/* control_page.h - the control page: shared memory in which the ranks of a host and their ctrun
 * publish their state.
 *
 * ctrun creates one memory file per round for the workers of its host.  The workers inherit its
 * descriptor (CT_CONTROL).  The memory holds, in this order:
 *
 *     struct control_head            written by ctrun: the job, the number of deaths, stop requests
 *     struct control_rank [local]    written by each worker: its current calls and its last ones
 *     struct control_death [world]   written by ctrun: one for each worker that ended, on any host
 *
 * Except `asked` and `asked_ns`, each field has one writer.  A reader never waits for a writer, so
 * ctctl can read the memory while all ranks are stopped and after all ranks died.  The memory
 * contains no pointers, and readers check all values.  So a program that overwrites its page
 * misleads only the readers of that page.
 *
 * Without ctrun, or if a wrapper closed the descriptor, a rank records its calls in a memory that
 * it creates itself.  Such a rank gets no death notices. */
#ifndef RUNTIME_MONITOR_CONTROL_PAGE_H
#define RUNTIME_MONITOR_CONTROL_PAGE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "runtime/shm/waiter.h"
#include "runtime/util/error.h"

#define CONTROL_MAGIC 0x31707463u /* "ctp1" */
#define CONTROL_VERSION 7
#define CONTROL_NAME "ct-control" /* the memfd's name, by which ctctl finds it */
#define CONTROL_GROUPS 24         /* how many groups of a worker are recorded at a time */
#define CONTROL_CALLS 128         /* how many of a worker's last calls are kept; a power of two */
#define CONTROL_TOMBS 8           /* how many groups of a dead worker a death notice describes */

/* A call.  The ring consists of such structs. */
struct control_call {
    uint64_t seq;      /* number of the collective in its group; 0 for a message */
    uint64_t count;    /* elements */
    uint64_t begun_ns; /* start of the call, CLOCK_MONOTONIC_COARSE */
    uint8_t operation; /* enum operation */
    uint8_t dtype;     /* ct_dtype */
    int8_t op;         /* ct_op, or OP_OF_PROBE, or -1 if the call does not reduce */
    uint8_t phase;     /* enum control_phase, when the struct was written */
    uint16_t group;    /* index in groups[]; CONTROL_GROUPS if the group is not recorded there */
    int16_t root;      /* root or message peer, a rank in the group; -1 for none or any rank */
};

/* ---- ctrun's part ---------------------------------------------------------- */

struct control_head {
    uint32_t magic, version;
    int32_t node, nodes; /* index of this node, and the number of nodes in the job */
    int32_t base, local; /* rank of this host's first worker, and number of its workers */
    int32_t world;
    int32_t launcher;   /* pid of ctrun; without ctrun, pid of the rank itself */
    int32_t restarts;   /* number of restarts of the job so far */
    int32_t own_memory; /* 1 if a rank created this memory, 0 if ctrun did */
    int64_t started_ns; /* start of the round, CLOCK_REALTIME */
    char generation[64];
    char run_id[128];
    char host[64];
    char program[256]; /* the program's path as the user wrote it */
    /* A futex that ctrun increments whenever it has added death notices.  All ranks wait on this
     * one futex, so that one wake-up reaches all ranks. */
    _Alignas(CACHE_PAIR) _Atomic uint32_t notices;
    _Atomic uint32_t deaths;     /* number of death notices, control_death_at(0 ...) */
    _Atomic uint32_t stop_asked; /* 1 if ctrun asks the ranks to stop; then the next vote
                                  * of ct_should_stop() decides to stop */
    /* A futex.  A reader of the page increments it and wakes the observers (observer.h), which then
     * write what their processes do.  Two readers may write the same number. */
    _Alignas(CACHE_PAIR) _Atomic uint32_t asked;
    _Atomic uint64_t asked_ns; /* time of the last question, CLOCK_MONOTONIC_COARSE */
};

/* The value of `how` of a worker whose host was lost; else `how` is CLD_EXITED, CLD_KILLED or
 * CLD_DUMPED of waitid(). */
enum { CONTROL_HOST_LOST = 100 };
/* The values of `code` with CONTROL_HOST_LOST: the host's ctrun stopped answering, or the
 * connection to this ctrun was closed. */
enum { CONTROL_SILENT, CONTROL_CLOSED };

/* The progress of a worker in one group when the worker ended: the id of the group, and the numbers
 * of the last collective that the worker began and of the last that it completed. */
struct control_tomb {
    uint64_t group, begun, done;
    uint32_t call; /* control_call_hash() of the last call that began */
};

/* The call of a worker that failed because of another rank.  If a worker ended without such a
 * failure, its death notice has the call in which the worker was, if any. */
struct control_blame {
    struct blame on; /* the blamed rank of ctrun's job; reason BLAME_NONE if no rank is blamed */
    uint64_t group;  /* id of the group that the failure broke; 0 if no group broke */
    uint64_t at_ns;  /* time of the failure, CLOCK_MONOTONIC_COARSE; control_blame() sets it */
    struct control_call call;
    uint32_t call_hash; /* control_call_hash() of `call`; control_blame() sets it */
};

struct control_death {
    int32_t rank;      /* in the job */
    int32_t how, code; /* si_code and si_status of waitid(), or CONTROL_HOST_LOST and its code */
    int32_t pid;
    int32_t asked;    /* the signal with which ctrun asked the worker to stop; 0 if it did not */
    int32_t tombs;    /* number of entries in tomb[] */
    int32_t stopped;  /* 1 if ctrun found the worker stopped (SIGSTOP) when it ended the job */
    int64_t noted_ns; /* time in the worker's error file, ns since 1970 on its host; 0: no file */
    struct control_blame blame;
    char host[64];
    struct control_tomb tomb[CONTROL_TOMBS];
};

/* ---- A worker's part ------------------------------------------------------- */

enum control_state {
    CONTROL_STARTED, /* ctrun started the worker; libct has written nothing yet */
    CONTROL_INIT,    /* the worker is in ct_init_process_group() */
    CONTROL_READY,   /* the worker has a default group */
    CONTROL_LEFT,    /* the worker has destroyed its default group */
    CONTROL_OUTSIDE  /* ct_init_process_group() failed, and the program continues */
};

enum control_phase {
    CONTROL_IDLE,   /* the rank is in no call of the group; `now` is the last call */
    CONTROL_IN,     /* the rank is in the call */
    CONTROL_QUEUED, /* an asynchronous call waits for its turn */
    CONTROL_FAILED  /* the last call failed, and the group is broken */
};

/* A line: a group of this worker, and the group's current or last call.  A reader reads `version`,
 * then the fields, then `version` again.  If the two versions are equal and even, the fields are
 * consistent; else the reader tries again. */
struct control_group {
    /* the group's id, which is the same on all members; 0 while the line is free */
    _Alignas(CACHE_PAIR) _Atomic uint64_t id;
    _Atomic uint32_t version;
    int32_t rank, size;           /* this worker's rank in the group, and the group's size */
    _Atomic uint64_t begun, done; /* numbers of the last collective begun and the last completed */
    struct control_call now;
    uint64_t caller; /* return address of the call in the program */
    int32_t tag;     /* the message's tag, if `now` is a message */
    char name[28];
    /* while the line is free: the id of the group that had the line last; 0 if there was none */
    _Atomic uint64_t was;
    uint64_t bytes; /* sum over all calls of the group: count times the dtype's size */
};
/* True if the line's group is in a call.  The answer can be out of date, since the function reads
 * single fields without the version. */
static inline int control_is_in_call(const struct control_group *line)
{
    return atomic_load_explicit(&line->id, memory_order_relaxed) != 0
           && __atomic_load_n(&line->now.phase, __ATOMIC_RELAXED) == CONTROL_IN;
}

_Static_assert(sizeof(struct control_group) == CACHE_PAIR, "what a call writes is one cache pair");

/* A place in the program, such as "train.py:88 (step)", and its time.  A reader reads `version` as
 * that of a line. */
struct control_place {
    _Atomic uint32_t version;
    char text[100];
    uint64_t noted_ns;
    uint64_t seq; /* number of the call at this place; 0 for a message */
};

/* The value of `answered` of an observer that has answered for the last time. */
#define CONTROL_LAST_ANSWER UINT32_MAX
/* The value of `caller` of a line that an observer writes. */
#define CONTROL_OBSERVED 1

struct control_rank {
    int32_t rank, local_rank;
    /* pid of the process that ctrun started; 0 before the start and after ctrun has reaped it */
    _Atomic int32_t worker;
    /* pid of the process that writes this page: the worker, or a child of it */
    _Atomic int32_t pid;
    _Atomic uint32_t state;    /* enum control_state */
    _Atomic uint64_t since_ns; /* time of the last change of `state`, CLOCK_MONOTONIC_COARSE */
    /* how often programs of this worker initialized libct; a part of the names of store keys */
    _Atomic uint32_t inits;
    _Atomic uint64_t calls; /* number of calls written to the ring so far */
    /* enum blame_reason, the reason in `blame`.  The field is next to `calls` since each call reads
     * the two. */
    _Atomic uint32_t blamed;
    /* bytes of the calls on groups that the worker has left; groups[] counts the other groups */
    _Atomic uint64_t bytes_before;
    /* A text about what the worker waits for outside of groups, such as "key grads/7 of the store".
     * The text is "" while the worker does not wait. */
    _Atomic uint32_t waiting_version;
    uint64_t waiting_since_ns;
    char waiting_for[96];
    /* pid of the process whose observer answers for this worker; 0 without an observer */
    _Atomic int32_t observer;
    _Atomic uint32_t answered;   /* the last value of `asked` that the observer has answered */
    _Atomic uint64_t answers_ns; /* processor time that the observer's thread used for answers */
    _Atomic int32_t stacks_fd;   /* the observer's descriptor of a file with stacks, or -1 */
    struct control_place main_place; /* where the main thread was when the observer answered */
    _Atomic uint32_t blame_version;
    struct control_blame blame;
    /* The next three fields belong to ct_should_stop(). */
    /* 1 if the program calls ct_should_stop(), so that the worker can stop without a signal */
    _Atomic uint32_t stop_checked;
    _Atomic uint32_t stop_wanted; /* 1 if the worker got SIGTERM */
    _Atomic uint64_t stopped_at;  /* number of the ct_should_stop() call that returned 1; or 0 */
    struct control_group groups[CONTROL_GROUPS];
    /* the places of the groups' calls, by ct_note_place() or by the observer */
    struct control_place places[CONTROL_GROUPS];
    /* The last calls; control_call_at() reads them.  The words are atomic because two threads may
     * write the same entry: one of them may be preempted while other threads record CONTROL_CALLS
     * calls. */
    _Atomic uint64_t ring[CONTROL_CALLS][sizeof(struct control_call) / 8];
};

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "control_note_call() puts a word together in this order");

/* Writes the words of the call as they lie in memory.  The last word is put together in a register:
 * a load of 8 bytes would wait until the stores of the fields have left the store buffer. */
static inline void control_note_call(struct control_rank *own, uint64_t number,
                                     const struct control_call *call)
{
    _Atomic uint64_t *words = own->ring[number % CONTROL_CALLS];
    const uint64_t last = (uint64_t)call->operation | (uint64_t)call->dtype << 8
                          | (uint64_t)(uint8_t)call->op << 16 | (uint64_t)call->phase << 24
                          | (uint64_t)call->group << 32 | (uint64_t)(uint16_t)call->root << 48;

    atomic_store_explicit(&words[0], call->seq, memory_order_relaxed);
    atomic_store_explicit(&words[1], call->count, memory_order_relaxed);
    atomic_store_explicit(&words[2], call->begun_ns, memory_order_relaxed);
    atomic_store_explicit(&words[3], last, memory_order_relaxed);
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
#define CONTROL_RANK_BYTES ((size_t)12288)
_Static_assert(sizeof(struct control_head) <= CONTROL_HEAD_BYTES, "the head has one page");
_Static_assert(sizeof(struct control_rank) <= CONTROL_RANK_BYTES, "a rank has three");
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

/* Returns a hash of the call, which is the same for equal calls and never 0. */
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

#define CONTROL_SPINS 1000 /* turns of the loop, which take much longer than a write */
#define CONTROL_NAPS 500   /* sleeps of 1 ms each, in case the writer was preempted */

void control_nap(void);

/* Begins a write: makes the version odd and returns the even version before it.  control_written()
 * ends the write and makes the version even again.  Readers ignore fields with an odd version, and
 * other writers wait.  A version that stays odd was corrupted, or its writer has died.  After
 * CONTROL_SPINS and CONTROL_NAPS this function writes all the same; at worst, a reader then sees
 * fields of two writes. */
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
#ifndef CT_THREAD_SANITIZER /* TSan does not support fences, and no reader runs under TSan */
    atomic_thread_fence(memory_order_release);
#endif
    return even;
}

static inline void control_written(_Atomic uint32_t *version, uint32_t even)
{
    atomic_store_explicit(version, even + 2, memory_order_release);
}

/* Orders a reader's loads.  The reader calls this function after it has read the fields and before
 * it reads the version again. */
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
    int event_fd;  /* eventfd by which ctrun and the ranks wake each other; -1 without ctrun */
    int memory_fd; /* the memfd that this rank created; -1 if ctrun created the memory */
    int worker;    /* rank in ctrun's job; -1 without ctrun */
    /* Copies of the head's fields.  Addresses are computed from these copies, so an overwritten
     * head can't lead outside of the memory. */
    int base, local, world;
    struct control_death *deaths; /* [world] */
};

/* Maps the page that CT_CONTROL names.  Returns 1, or 0 if there is no such page or if another
 * process has claimed it.  A process that calls this function again maps the same page again. */
int control_take(struct control *control);
/* Maps the page that CT_CONTROL names, and does not claim it.  Returns 1, or 0 if there is no such
 * page. */
int control_map(struct control *control);
/* Claims the mapped page for this process, as control_take() does.  Returns 0 if another live
 * process has claimed it. */
int control_claim(struct control *control);
/* Does what control_take() does; if that returns 0, creates a memory for this rank alone.  Fails
 * only if there is no memory or descriptor left. */
ct_status control_open(struct control *control, int rank);
void control_close(struct control *control);

/* Returns the number of death notices. */
static inline uint32_t control_deaths(const struct control *control)
{
    const uint32_t count = atomic_load_explicit(&control->head->deaths, memory_order_acquire);

    return count <= (uint32_t)control->world ? count : (uint32_t)control->world;
}

static inline const struct control_death *control_death(const struct control *control, uint32_t i)
{
    return &control->deaths[i];
}

/* Writes a sentence such as "rank 2 (pid 4310 on node-b) was killed by SIGKILL", with the rank in
 * ctrun's job.  control_death_words() writes only the part "was killed by SIGKILL". */
void control_death_sentence(const struct control_death *death, char *text, size_t size);
void control_death_words(const struct control_death *death, char *text, size_t size);

/* Sleeps until head->notices differs from `seen`, or for `ms` milliseconds. */
void control_sleep(const struct control *control, uint32_t seen, int ms);

/* Returns an epoll descriptor for a thread that sleeps in poll().  The descriptor is readable if a
 * death notice came after the last epoll_wait() on it.  The caller must close it.  Returns -1 if
 * there is no ctrun or if no descriptor is left. */
int control_alarm(const struct control *control);

/* Copies the call of a line, and tries again if the owner wrote to the line during the copy.
 * Returns 1, or 0 if the line belongs to another group or if 100 tries failed. */
int control_line_read(const struct control_group *line, uint64_t id, struct control_call *call);

/* Records that a call of this worker fails because of a rank of ctrun's job.  The failing call does
 * so before it returns, and ctrun reads the blame after the worker has ended.  The next blame
 * replaces a blame that broke no group; a blame that broke a group stays. */
void control_blame(struct control *control, const struct control_blame *blame);
/* Clears the worker's blame after a call succeeded that began on `group` at begun_ns.  Such a call
 * shows that the worker survived an earlier failure on another group; a later failure and a failure
 * on the same group stay recorded.  With group 0, clears any blame. */
void control_forgive(struct control_rank *own, uint64_t group, uint64_t begun_ns);
/* Copies the worker's blame.  Returns 1, or 0 if the worker blames no rank of the job, which has
 * `world` ranks. */
int control_blame_read(struct control_rank *page, int world, struct control_blame *blame);

/* Writes a place.  `seq` is the number of its call.  Only one thread may write at a time. */
void control_note_place(struct control_place *place, uint64_t seq, const char *text);

/* Sets the worker's state and returns the previous state. */
enum control_state control_set_state(struct control *control, enum control_state state);
/* Sets the text about what the worker waits for outside of groups; "" after the wait.  Any thread
 * may call this function.  The last text replaces the others. */
void control_waiting(struct control *control, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
