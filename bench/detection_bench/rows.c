/* SPDX-License-Identifier: Apache-2.0 */
/* rows.c - see rows.h. */
#include "bench/detection_bench/rows.h"

#include <stddef.h>
#include <string.h>

#define LIBRARIES "ctrun libct gloo"
#define ALL_LIBRARIES LIBRARIES " openmpi hydra"
#define LAUNCHERS "ctrun-stop torchrun openmpi hydra"

static const struct layout layouts[] = {
    { "2", 2, 1, NULL },      { "4", 4, 1, NULL },      { "8", 8, 1, NULL },
    { "2-tcp", 2, 1, "tcp" }, { "4-tcp", 4, 1, "tcp" }, { "2+2", 4, 2, NULL },
};

const struct row_kind row_kinds[] = {
    { "all_reduce", ANYBODY, ALL_LIBRARIES, "2 4 8 2-tcp 4-tcp 2+2" },
    { "broadcast", ANYBODY, ALL_LIBRARIES, "2 4 2-tcp 4-tcp 2+2" },
    { "reduce", ANYBODY, ALL_LIBRARIES, "2 4 2-tcp 4-tcp 2+2" },
    { "barrier", ANYBODY, ALL_LIBRARIES, "2 4 8 2-tcp 4-tcp 2+2" },
    { "wait", ANYBODY, ALL_LIBRARIES, "2 4 2-tcp 4-tcp 2+2" },
    { "recv", ANYBODY, ALL_LIBRARIES, "2 4 8 2-tcp 4-tcp 2+2" },
    { "send", ANYBODY, ALL_LIBRARIES, "2 4 2-tcp 4-tcp 2+2" },
    { "init-before", NOT_RANK_0, ALL_LIBRARIES, "2 4 2+2" },
    { "init-within", NOT_RANK_0, LIBRARIES, "4 2+2" },
    { "store", NOT_RANK_0, LIBRARIES, "2 4 8 2+2" },
    { "store-host", RANK_0, LIBRARIES, "2 4 2+2" },
    { "anywhere", ANYBODY, LAUNCHERS, "2 4" },
};
const int row_kind_count = (int)(sizeof row_kinds / sizeof *row_kinds);

int listed(const char *list, const char *word)
{
    const size_t length = strlen(word);

    for (const char *at = list; (at = strstr(at, word)); at += length)
        if ((at == list || at[-1] == ' ') && (at[length] == ' ' || at[length] == 0))
            return 1;
    return 0;
}

int row_next(const struct row_kind *kind, int *position, struct row *row)
{
    while (*position < (int)(sizeof layouts / sizeof *layouts)) {
        const struct layout *layout = &layouts[(*position)++];

        if (listed(kind->layouts, layout->name)) {
            *row = (struct row){ kind, layout };
            return 1;
        }
    }
    return 0;
}

/* Of a reduction only the root needs the victim. */
int row_waits(const struct row *row, int rank, int victim)
{
    if (!strcmp(row->kind->place, "reduce"))
        return rank == (victim + 1) % row->layout->ranks;
    return rank != victim;
}

int row_victim(const struct row *row, int run)
{
    const int ranks = row->layout->ranks;

    switch (row->kind->dies) {
    case RANK_0:
        return 0;
    case NOT_RANK_0:
        return 1 + run % (ranks - 1);
    default:
        return run % ranks;
    }
}
