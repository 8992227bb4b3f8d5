/* SPDX-License-Identifier: Apache-2.0 */
/* restart_budget.c - see restart_budget.h.  A restart stops counting when its window has passed. */
#include "launcher/nodes/restart_budget.h"

#include <stdlib.h>
#include <string.h>

static void forget(struct restarts *b, int64_t before)
{
    int old = 0;

    while (old < b->used && b->times[old] <= before)
        old++;
    b->used -= old;
    memmove(b->times, b->times + old, (size_t)b->used * sizeof *b->times);
}

int restarts_take(struct restarts *b, int64_t now_ms)
{
    if (b->limit.window_seconds > 0 && b->used > 0)
        forget(b, now_ms - (int64_t)b->limit.window_seconds * 1000);
    if (b->used >= b->limit.most)
        return 0;
    if (b->used == b->room) {
        const int room = b->room ? 2 * b->room : 8;
        int64_t *grown = realloc(b->times, (size_t)room * sizeof *grown);

        if (!grown)
            return 0;
        b->times = grown;
        b->room = room;
    }
    b->times[b->used++] = now_ms;
    return 1;
}

void restarts_give_back(struct restarts *b)
{
    b->used -= b->used > 0;
}

void restarts_free(struct restarts *b)
{
    free(b->times);
    *b = (struct restarts){ .limit = b->limit };
}
