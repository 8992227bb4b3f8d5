/* SPDX-License-Identifier: Apache-2.0 */
/* hier_deaths.c - ranks that die in such a call; see hier.h. */
#include "tests/cuda/hier.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/cuda/deaths.h"
#include "tests/cuda/device.h"

struct scene {
    const struct hier_run *run;
    const struct pick *call;
    const char *operation; /* what CT_FAULT calls it */
};

static ct_status make_calls(ct_group *group, const void *arg, int calls)
{
    const struct scene *scene = arg;
    const size_t bytes = (size_t)program_size() * HIER_COUNT * sizeof(float);
    ct_status status = CT_OK;
    char *there;

    if (!hier_open(scene->run, program_rank()))
        return CT_OK;
    there = device_alloc(2 * bytes, 0);
    for (int i = 0; i < calls && status == CT_OK; i++)
        status = make(group, scene->call, there, there + bytes);
    return status; /* the memory may still be read by others: it goes with the process */
}

/* There are that many in the group's first call, and in any other one. */
enum { PHASES_FIRST = 12, PHASES = 6 };

static void kill_in(const struct scene *scene, int victim, int call)
{
    const struct death death = { make_calls, scene, HIER_CALLS, victim };
    char fault[120];

    for (int phase = 1; phase <= (call == 1 ? PHASES_FIRST : PHASES); phase++) {
        snprintf(fault, sizeof fault, "%s;rank:%d,op:%s,call:%d,phase:%d,kill", scene->run->hosts,
                 victim, scene->operation, call, phase);
        hier_settings(scene->run);
        setenv("CT_FAULT", fault, 1);
        one_of_them_dies(4, &death);
    }
}

void hier_kill_each(const struct hier_run *run, const struct pick *call, const char *operation,
                    int in_call)
{
    for (int victim = 0; victim < 3; victim++)
        kill_in(&(struct scene){ run, call, operation }, victim, in_call);
}
