/* SPDX-License-Identifier: Apache-2.0 */
/* fault_injection.h - CT_FAULT makes a rank fail at a named place.
 *
 *     CT_FAULT=rank:3,op:all_reduce,phase:1,kill;op:store,call:2,delay:50ms
 *
 * Faults are separated by ';', the words of one by ','.  The words rank, op, phase, seq, call and
 * every say where and when, the last one says what (words[] in fault_injection.c).  A fault
 * happens once, unless it has the word every.
 *
 *   op      phases
 *   a collective's name   0: it was called; N: after its N-th hand-over (a round over shared
 *                         slots in which this rank arrived, a message that was waited for, or
 *                         the right to touch the others' buffers of ct_mem_alloc());
 *                         end: it is about to return CT_OK
 *   send, recv            0: it was called; end: likewise (an asynchronous one: was begun)
 *   store                 0: it was called, on ct_store_default()
 *   init                  0: the store was reached; 1: all peer infos were read; 2: memory is
 * shared with the ranks of this host; 3: all addresses are known; end: all done
 *
 * seq is the number of a collective in its group; call counts the calls of that op on this
 * rank, from 1.  Both count what the library does, which is not always what the program calls: a
 * ct_should_stop() between two votes is no call and takes no number, and which ones vote differs
 * from run to run; ct_new_group() and ct_mem_alloc() make collectives of their own.  rank is the
 * rank in the root group: each mesh reads the variable when it is made.
 *
 * first_seq:N, alone between two ';', is no fault: on all ranks collectives and rounds are numbered
 * from N on, so that a test need not wait for 2^32 of them.
 *
 * hosts:0.0.1, alone, too: ranks 0 and 1 act as if on one host and rank 2 as if on another, so that
 * a test of several hosts needs only one.
 *
 * If CT_FAULT is unset, each place tests a pointer that is NULL: an all_reduce of 8 bytes has 12
 * more instructions. */
#ifndef RUNTIME_FAULT_FAULT_INJECTION_H
#define RUNTIME_FAULT_FAULT_INJECTION_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/types/call_signature.h"
#include "runtime/util/error.h"

enum { FAULT_INIT = OPERATION_COUNT, FAULT_STORE, FAULT_OPERATIONS };
#define FAULT_ANY (-1)       /* rank, operation */
#define FAULT_END UINT32_MAX /* phase */

enum fault_action {
    FAULT_NOTHING,
    FAULT_KILL,  /* SIGKILL to this process */
    FAULT_STOP,  /* SIGSTOP: until SIGCONT */
    FAULT_ABORT, /* ct_abort() of the group */
    FAULT_DELAY,
    FAULT_EXIT /* at once, without atexit() */
};

/* Each word with a value has a field of 64 bits, which its row of words[] names. */
struct fault {
    int64_t rank, operation; /* or FAULT_ANY */
    int64_t phase;           /* or FAULT_END */
    uint64_t seq, call;      /* 0: any */
    int64_t every;
    int64_t argument; /* of delay: microseconds; of exit: the code */
    enum fault_action action;
    _Atomic int fired;
};

/* The faults of one rank. */
struct faults {
    struct fault *list;
    int count;
    uint64_t first_seq;
    int host; /* 1 + the number of the host on which this rank acts; 0: the real one */
    /* ct_abort(), set with the mesh's first group: ctrun uses a store without groups. */
    ct_status (*abort)(ct_group *group);
    _Atomic uint64_t calls[FAULT_OPERATIONS], all_calls;
};

/* The faults of CT_FAULT for this rank; NULL: none.  CT_ERR_INVALID names the wrong part. */
ct_status faults_from_environment(int rank, struct faults **faults);
void faults_free(struct faults *faults); /* NULL is fine */
/* Adds the faults of text for rank. */
ct_status faults_read(struct faults *faults, int rank, const char *text);

void faults_begin(struct faults *faults, ct_group *group, int operation, uint64_t seq);
void faults_pass(struct faults *faults);
void faults_end(struct faults *faults);

/* The places.  A call runs on one thread: every place between its begin and its end on that thread
 * belongs to it. */
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

/* The host on which this rank acts; -1: the real one. */
static inline int fault_host(const struct faults *faults)
{
    return faults ? faults->host - 1 : -1;
}

/* The first number of a group's collectives, and of its rounds. */
static inline uint64_t fault_first_seq(const struct faults *faults)
{
    return faults && faults->first_seq ? faults->first_seq : 1;
}

#endif
