/* SPDX-License-Identifier: Apache-2.0 */
/* flight.h - a case on one rank: its memory, the call, and what must have become of it. */
#ifndef TESTS_COLLECTIVES_FLIGHT_H
#define TESTS_COLLECTIVES_FLIGHT_H

#include "tests/collectives/cases.h"

#define SHARED_BYTES ((size_t)1 << 20)

/* Memory that the host can't touch.  What fails ends the program. */
struct elsewhere {
    void *(*take)(size_t bytes);
    void (*put)(void *there, const void *here, size_t bytes);
    void (*get)(void *here, const void *there, size_t bytes);
    void (*give_back)(void *there);
};

/* Of the flights that follow, most have their buffers there.  NULL: none. */
void flight_use(const struct elsewhere *elsewhere);

struct flight {
    struct pick pick;
    ct_group *group;
    const int *host; /* [size of the group] of its ranks */
    struct side send_side, recv_side;
    char *send, *recv; /* memory; the same in place */
    char *given_send,
        *given_recv; /* what the call is given: these, or what stands for them elsewhere */
    char *given;     /* what send held before the call */
    char *pool;      /* two pieces of SHARED_BYTES that the others can reach */
    ct_op premul;    /* to be freed; 0: none */
    ct_work *works[MAX_RANKS];
    int count, from[MAX_RANKS]; /* works; the sender of messages from any source */
    const char *row;            /* the algorithm that was forced; "" */
};

/* How many algorithms of the operation can do this call; a pick's row is one from 1 to that. */
unsigned flight_rows(const struct pick *pick, ct_group *group);

/* Memory with this rank's input in it; in some cases in pool, of ct_mem_alloc(). */
void flight_prepare(struct flight *f, const struct pick *pick, ct_group *group, const int *host,
                    char *pool);

/* Makes the call: over when it returns, or with f->count works to be waited for. */
ct_status flight_start(struct flight *f);
ct_status flight_wait(struct flight *f);
void flight_fetch(struct flight *f); /* its results, if they are elsewhere; wait does it */

/* 1: all is as it must be.  Else what is wrong, in words. */
int flight_check(const struct flight *f, char *wrong, size_t size);
/* Of what was received, NaN as one; never 0. */
uint64_t flight_digest(const struct flight *f);
void flight_free(struct flight *f);

#endif
