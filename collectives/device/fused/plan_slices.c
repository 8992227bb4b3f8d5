/* SPDX-License-Identifier: Apache-2.0 */
/* plan_slices.c - a plan's parts, shared out among the leaders.
 *
 * Where the plan is one part, it is cut: each leader reads its slice of all sources and writes it
 * to all destinations, so every device's links carry as much.  Where it has a part for each block,
 * a part is done by the device that has the block's only source, or its only destination: nothing
 * of it crosses twice.  Few bytes are done by one leader, the one that is nearest: to share them
 * takes longer.
 *
 * A slice begins at a line of the devices' caches, counted from the part's beginning: at whole
 * elements, and as well aligned as the part.  An element's bits don't depend on who folds it. */
#include "collectives/device/fused/copy_plan.h"
#include "collectives/device/group/leaders.h"

enum {
    LINE = 128,
    LEAST = 32 << 10 /* bytes for a leader; an estimate: no machine with two GPUs has run it */
};

static size_t cut_at(size_t bytes, int slice, int slices)
{
    return slice == slices ? bytes : bytes / LINE * (size_t)slice / (size_t)slices * LINE;
}

struct slice slice_of(const struct leaders *l, int near, int shared, size_t bytes)
{
    const int first = l->of[near];
    const int own = (l->mine - first + l->count) % l->count; /* counted from the nearest */
    int slices = 1;
    size_t at;

    if (shared && bytes / LEAST >= 2)
        slices = bytes / LEAST < (size_t)l->count ? (int)(bytes / LEAST) : l->count;
    if (own >= slices)
        return (struct slice){ 0, 0 };
    at = cut_at(bytes, own, slices);
    return (struct slice){ at, cut_at(bytes, own + 1, slices) - at };
}

/* All of a part's pointers lie one behind the other. */
static void move_part(const struct plan *plan, int part, size_t pointers, size_t bytes)
{
    const void *const *const first = plan->parts[part].src;

    for (size_t i = 0; i < pointers; i++)
        plan->pointers[(size_t)(first - (const void *const *)plan->pointers) + i] =
            (char *)(uintptr_t)first[i] + bytes;
}

void plan_cut(const struct leaders *l, struct plan *plan, size_t element)
{
    const size_t each = plan->folds ? element : 1;
    int left = 0;

    for (int i = 0; i < plan->count; i++) {
        struct fold_part *const part = &plan->parts[i];
        const struct slice slice = slice_of(l, plan->near[i], plan->one, part->count * each);

        if (slice.bytes == 0)
            continue;
        if (slice.at > 0)
            move_part(plan, i, (size_t)(plan->folds ? l->ranks : 1) + (size_t)part->dsts, slice.at);
        part->count = slice.bytes / each;
        plan->parts[left++] = *part;
    }
    plan->count = left;
}
