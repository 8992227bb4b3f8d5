/* SPDX-License-Identifier: Apache-2.0 */
/* copy_to_shared.h - copies into memory that another processor will read. */
#ifndef RUNTIME_SHM_COPY_TO_SHARED_H
#define RUNTIME_SHM_COPY_TO_SHARED_H

#include <stddef.h>
#include <stdint.h>

/* What the writer of such memory has found out; but for lap zeros to begin with.  One thread at a
 * time. */
struct copy_shared {
    size_t lap;                  /* the owner's: so many bytes later the same memory is written */
    int streams;                 /* stores past the caches are the faster ones just now */
    size_t trying;               /* bytes that are still to be copied the other way; 0: no trial */
    size_t counts;               /* of those the last ones that count */
    unsigned copies;             /* made so far */
    uint64_t bytes;              /* of these */
    double cost[2];              /* ns a byte: by ordinary stores, past the caches; 0: not known */
    double found;                /* of the way that is taken, when it was chosen */
    int64_t took;                /* ns, by the copies of this trial */
    int64_t try_at, try_soonest; /* the next one begins */
};

void copy_shared(struct copy_shared *state, void *to, const void *from, size_t bytes);

#endif
