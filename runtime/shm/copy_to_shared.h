/* SPDX-License-Identifier: Apache-2.0 */
/* copy_to_shared.h - copies into memory that another processor will read. */
#ifndef RUNTIME_SHM_COPY_TO_SHARED_H
#define RUNTIME_SHM_COPY_TO_SHARED_H

#include <stddef.h>
#include <stdint.h>

/* What the writer of such memory has measured.  All zeros at first, but for `lap`.  One thread
 * at a time. */
struct copy_shared {
    size_t lap;      /* set by the owner: after so many bytes the same memory is written again */
    int streams;     /* non-temporal stores are the faster ones at present */
    size_t trying;   /* bytes still to be copied the other way; 0: no trial */
    size_t counts;   /* how many of those, the last ones, count */
    unsigned copies; /* how many copies were made */
    uint64_t bytes;  /* how many bytes they had */
    double cost[2];  /* ns a byte: by ordinary stores, by non-temporal ones; 0: not measured */
    double found;    /* cost of the chosen way when it was chosen */
    int64_t took;    /* ns that the copies of this trial took */
    int64_t try_at, try_soonest; /* when the next trial begins */
};

void copy_shared(struct copy_shared *state, void *to, const void *from, size_t bytes);

#endif
