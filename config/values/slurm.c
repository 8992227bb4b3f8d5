/* SPDX-License-Identifier: Apache-2.0 */
/* slurm.c - the port that all nodes of a step derive, and the tasks of one node. */
#include "config/values/slurm.h"

#include <stdio.h>
#include <stdlib.h>

int slurm_step_port(void)
{
    const char *job = getenv("SLURM_JOB_ID"), *step = getenv("SLURM_STEP_ID");
    unsigned hash = 2166136261u; /* FNV-1a: neighbours in job or step get ports that differ */

    if (!job || !*job || !step || !*step)
        return 0;
    for (const char *c = job; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 16777619u;
    for (const char *c = step; *c; c++)
        hash = (hash ^ (unsigned char)(*c + 1)) * 16777619u;
    return SLURM_FIRST_PORT + (int)((hash ^ hash >> 16) % (SLURM_LAST_PORT - SLURM_FIRST_PORT + 1));
}

int slurm_tasks_of_node(const char *text, int node)
{
    while (text && *text && node >= 0) {
        int tasks = 0, times = 1, used = 0;

        if (sscanf(text, "%6d%n", &tasks, &used) != 1 || tasks < 1)
            return 0;
        text += used;
        used = 0;
        if (sscanf(text, "(x%6d)%n", &times, &used) == 1 && times > 0)
            text += used;
        if ((node -= times) < 0)
            return tasks;
        text += *text == ',';
    }
    return 0;
}
