/* SPDX-License-Identifier: Apache-2.0 */
/* memory.c - see memory.h; and the folds, which take the time of their bytes. */
#include "bench/network_sim/memory.h"

#include <sys/mman.h>

#include "bench/network_sim/network.h"
#include "bench/network_sim/scheduler.h"

#define ADDRESSES ((size_t)1 << 40) /* as far as any buffer reaches, at the most */
#define WRITTEN                                                                      \
    ((size_t)64 << 20) /* an algorithm may keep pointers at the start of its scratch \
                        */

static char *buffers, *scratch;

int simulated_memory_open(void)
{
    char *memory;

    if (buffers)
        return 0;
    memory =
        mmap(NULL, 2 * ADDRESSES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory + ADDRESSES, WRITTEN, PROT_READ | PROT_WRITE) < 0)
        return -1;
    buffers = memory;
    scratch = memory + ADDRESSES;
    return 0;
}

void *simulated_memory(void)
{
    return buffers;
}

static void moves(double bytes)
{
    works(this_rank(), 0, bytes * model.copy_us_per_byte);
}

void *simulated_copy(void *to, const void *from, size_t bytes)
{
    (void)from;
    moves((double)bytes);
    return to;
}

void *simulated_set(void *to, int byte, size_t bytes)
{
    (void)byte;
    moves((double)bytes / 2);
    return to;
}

/* ---- The verbs of scratch.h --------------------------------------------------------- */

void *scratch_take(struct scratch *from, size_t bytes)
{
    (void)from, (void)bytes;
    return scratch;
}

void scratch_give(struct scratch *from, void *data)
{
    (void)from, (void)data;
}

/* ---- The verbs of combine.h, and call.h's ------------------------------------------- */

/* A copy reads one and writes one. */
static void folds(double bytes, int sources, int destinations)
{
    moves(bytes * (sources + destinations) / 2);
}

void combine_fold_to(const struct fold *fold, void *const *dst, int dsts, const void *const *src,
                     size_t count, int streaming)
{
    (void)dst, (void)src, (void)streaming;
    folds((double)(count * ct_dtype_size(fold->dtype)), fold->sources, dsts);
}

void combine_fold_wide(const struct fold *fold, void *dst, const void *const *src, size_t count)
{
    (void)dst, (void)src;
    folds((double)(count * ct_dtype_size(fold->dtype)), fold->sources, 1);
}

void combine_narrow(ct_dtype dtype, void *dst, const void *src, size_t count)
{
    (void)dst, (void)src;
    folds((double)(count * ct_dtype_size(dtype)), 1, 1);
}

void combine_pair(ct_dtype dtype, ct_op op, void *dst, const void *src, size_t count)
{
    (void)op, (void)dst, (void)src;
    folds((double)(count * ct_dtype_size(dtype)), 2, 1);
}

void combine_divide(ct_dtype dtype, void *dst, size_t count, int n)
{
    (void)dst, (void)n;
    folds((double)(count * ct_dtype_size(dtype)), 1, 1);
}

void copy_streaming(void *dst, const void *src, size_t bytes)
{
    simulated_copy(dst, src, bytes);
}

ct_status call_fold_to(const struct call *c, void *const *dst, int dsts, const void *const *sources,
                       size_t count, int streaming)
{
    (void)dst, (void)sources, (void)streaming;
    folds((double)(count * c->element), c->group->size, dsts);
    return CT_OK;
}
