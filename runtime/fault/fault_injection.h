/* SPDX-License-Identifier: Apache-2.0 */
/* fault_injection.h - CT_FAULT makes a rank fail at a named place.
 *
 *     CT_FAULT=rank:3,op:all_reduce,phase:1,kill;op:store,call:2,delay:50ms
 *
 * Faults are separated by ';', and the words of a fault by ','.  The words rank, op, phase, seq,
 * call and every say where and when the fault happens.  One more word says what happens (words[] in
 * fault_injection.c).  A fault happens once, unless it has the word every.
 *
 *   op             phases
 *   a collective   0: it was called
 *                  N: it has passed its N-th hand-over.  A hand-over is a round over shared slots
 *                     in which this rank arrived, a message that was waited for, or the right to
 *                     touch the others' buffers of ct_mem_alloc().
 *                  end: it is about to return CT_OK
 *   send, recv     0: it was called
 *                  end: it is about to return CT_OK, or an asynchronous one was started
 *   store          0: it was called, on ct_store_default()
 *   init           0: the store was reached
 *                  1: all peer infos were read
 *                  2: memory is shared with the ranks of this host
 *                  3: all addresses are known
 *                  end: all is done
 *
 * The value of seq is the number of a collective in its group.  The value of call counts the calls
 * of that op on this rank, from 1.  Both count the calls that the library makes, which may differ
 * from the calls of the program.  A ct_should_stop() between two votes is not counted and takes no
 * number, and which ct_should_stop() calls vote differs from run to run.  ct_new_group() and
 * ct_mem_alloc() call internal collectives, which are counted.  The value of rank is the rank in
 * the root group.  Each mesh reads CT_FAULT when it is created.
 *
 * first_seq:N, alone between two ';', is not a fault.  With first_seq all ranks number collectives
 * and rounds from N on, so that a test need not wait for 2^32 of them.
 *
 * hosts:0.0.1, also alone, is not a fault either.  In this example ranks 0 and 1 act like ranks of
 * one host, and rank 2 like a rank of another host.  So a test of several hosts needs only one
 * host.
 *
 * If CT_FAULT is not set, each place only tests whether a pointer is NULL.  This adds 12
 * instructions to an all_reduce of 8 bytes. */
#ifndef RUNTIME_FAULT_FAULT_INJECTION_H
#define RUNTIME_FAULT_FAULT_INJECTION_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/types/call_signature.h"
#include "runtime/util/error.h"

enum { FAULT_INIT = OPERATION_COUNT, FAULT_STORE, FAULT_OPERATIONS };
#define FAULT_ANY (-1)       /* any rank, or any operation */
#define FAULT_END UINT32_MAX /* the phase "end" */

enum fault_action {
    FAULT_NOTHING,
    FAULT_KILL,  /* SIGKILL to this process */
    FAULT_STOP,  /* SIGSTOP to this process, which waits for SIGCONT */
    FAULT_ABORT, /* ct_abort() of the call's group */
    FAULT_DELAY,
    FAULT_EXIT /* _exit(), without atexit() handlers */
};

/* One fault.  Each word of CT_FAULT sets a field of 64 bits.  The word's row of words[] names the
 * field. */
struct fault {
    int64_t rank, operation; /* FAULT_ANY for any rank or operation */
    int64_t phase;           /* FAULT_END for the phase "end" */
    uint64_t seq, call;      /* 0 for any */
    int64_t every;
    int64_t argument; /* microseconds of a delay, or the code of an exit */
    enum fault_action action;
    _Atomic int fired;
};

/* The faults of one rank. */
struct faults {
    struct fault *list;
    int count;
    uint64_t first_seq;
    int host; /* 1 + number of the host on which this rank acts; 0 for the real host */
    /* ct_abort(), which is set when the mesh gets its first group.  The store of ctrun has no
     * group. */
    ct_status (*abort)(ct_group *group);
    _Atomic uint64_t calls[FAULT_OPERATIONS], all_calls;
};

/* Sets *faults to the faults of CT_FAULT for this rank, or to NULL if it has no fault.  With
 * CT_ERR_INVALID, ct_last_error() names the wrong part. */
ct_status faults_from_environment(int rank, struct faults **faults);
void faults_free(struct faults *faults); /* NULL is fine */
/* Adds the faults in `text` that are for `rank`. */
ct_status faults_read(struct faults *faults, int rank, const char *text);

void faults_begin(struct faults *faults, ct_group *group, int operation, uint64_t seq);
void faults_pass(struct faults *faults);
void faults_end(struct faults *faults);

/* The places in the code call the functions below.  A call runs on one thread, so each place that
 * the thread passes between fault_begin() and fault_end() belongs to that call. */
static inline void fault_begin(struct faults *faults, ct_group *group, int operation, uint64_t seq)
{
    if (__builtin_expect(faults != NULL, 0))
        faults_begin(faults, group, operation, seq);
}

static inline void fault_pass(struct faults *faults)
{
    if (__builtin_expect(faults != NULL, 0))
        faults_pass(faults);
}

static inline void fault_end(struct faults *faults)
{
    if (__builtin_expect(faults != NULL, 0))
        faults_end(faults);
}

/* Returns the number of the host on which this rank acts, or -1 for the real host. */
static inline int fault_host(const struct faults *faults)
{
    return faults ? faults->host - 1 : -1;
}

/* Returns the first number of a group's collectives and rounds. */
static inline uint64_t fault_first_seq(const struct faults *faults)
{
    return faults && faults->first_seq ? faults->first_seq : 1;
}

#endif
