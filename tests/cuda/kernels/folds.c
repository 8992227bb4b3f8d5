/* SPDX-License-Identifier: Apache-2.0 */
/* folds.c - a fold goes through the plan, and its launches to the function that the program set. */
#include "tests/cuda/kernels/folds.h"

enum { GUARD = 64, ROOM = LONG * 16 + 16 + 2 * GUARD };

int is_drawn(void)
{
    return any(effort.drawn) == 0;
}

static ct_status run_launch(const struct launch *launch, void *arg)
{
    (void)arg;
    EXPECT(launch->blocks > 0 && launch->threads <= BLOCK_THREADS);
    execute(launch);
    return CT_OK;
}

void run_parts(const struct fold *fold, const void *const *scalars, const struct fold_part *parts,
               int count, int processors, uint64_t called_off)
{
    EXPECT_OK(fold_plan(fold, scalars, parts, count, processors, called_off, run_launch, NULL));
}

void run(const struct fold *fold, void *const *dst, int dsts, const void *const *src, size_t count,
         int processors)
{
    run_parts(fold, NULL,
              &(struct fold_part){ .dst = dst, .src = src, .dsts = dsts, .count = count }, 1,
              processors, 0);
}

char *place_in(int row, const struct way *way)
{
    static char area[SOURCES + COPIES][ROOM];

    return area[row] + GUARD + (way->alike || row == 0 ? way->shift : way->shift + any(16)) % 16;
}
