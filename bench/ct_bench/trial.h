/* SPDX-License-Identifier: Apache-2.0 */
/* trial.h - one operation at one size: its buffers, their contents, the result's check. */
#ifndef CT_BENCH_TRIAL_H
#define CT_BENCH_TRIAL_H

#include "bench/ct_bench/operations.h"
#include "bench/ct_bench/pattern.h"

/* The process's own; ct_mem_alloc()'s; a GPU's. */
enum memory { ANY_MEMORY, SHARED_MEMORY, DEVICE_MEMORY };

/* Memory for all trials of a run. */
struct room {
    enum memory memory;
    size_t bytes; /* of each buffer */
    char *send, *recv;
    char
        *mirror; /* of device memory: where the host writes and reads what belongs there; or NULL */
    void *stream; /* in which calls on it are; NULL: none, they are over when they return */
    struct pattern *pattern;
    uint32_t round;
};

struct trial {
    const struct operation *operation;
    struct shape shape;
    int in_place;
    void *send, *recv; /* as the call gets them */
    struct room *room;
};

/* 0 if there is no memory; room_free() either way.  All ranks call both. */
int room_make(struct room *room, size_t bytes, enum memory memory);
void room_free(struct room *room);

/* Sets send and recv; the rest is there. */
void trial_place(struct trial *trial);

/* Fills what this rank gives with a new round's values, and what it gets with others. */
void trial_fill(struct trial *trial);

ct_status trial_call(const struct trial *trial);
/* All calls until now are over. */
void trial_settle(const struct trial *trial);

/* Fills, calls, compares: *wrong is the number of elements, over all ranks, that are not what
 * they must be, bit for bit: results, and out of place what was given, which must still lie there.
 * All ranks call it. */
ct_status trial_check(struct trial *trial, int64_t *wrong);

#endif
