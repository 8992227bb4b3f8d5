/* SPDX-License-Identifier: Apache-2.0 */
/* copy_to_shared.h - copies into memory that another processor will read. */
#ifndef RUNTIME_SHM_COPY_TO_SHARED_H
#define RUNTIME_SHM_COPY_TO_SHARED_H

#include <stddef.h>
#include <stdint.h>

/* The measurements of one writer of such memory.  All zeros at first, except `lap`.  One thread at
 * a time may use it. */
struct copy_shared {
    size_t lap;      /* bytes after which the writer reuses the same memory; set by the owner */
    int streams;     /* true if non-temporal stores are faster at present */
    size_t trying;   /* bytes left to copy with the other stores; 0: no trial */
    size_t counts;   /* how many bytes at the end of a trial count */
    unsigned copies; /* number of copies so far */
    uint64_t bytes;  /* total bytes of these copies */
    double cost[2];  /* ns per byte of ordinary and of non-temporal stores; 0: not measured */
    double found;    /* cost of the chosen stores when they were chosen */
    int64_t took;    /* ns that the copies of this trial took */
    /* When the next trial begins, and when it may begin if the chosen stores have become slower. */
    int64_t try_at, try_soonest;
};

void copy_shared(struct copy_shared *state, void *to, const void *from, size_t bytes);

#endif
