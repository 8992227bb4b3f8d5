/* SPDX-License-Identifier: Apache-2.0 */
/* restart_budget.h - how many restarts are left, in all or in a time. */
#ifndef LAUNCHER_NODES_RESTART_BUDGET_H
#define LAUNCHER_NODES_RESTART_BUDGET_H

#include <stdint.h>

#include "config/values/parse_restart.h"

struct restarts {
    struct restart_budget limit;
    int64_t *times; /* of the restarts that still count; malloc'ed */
    int used, room;
};

/* 1: there was one left, and it is taken.  Times are those of a clock that only goes on. */
int restarts_take(struct restarts *restarts, int64_t now_ms);
void restarts_give_back(struct restarts *restarts); /* the last: another node failed first */
void restarts_free(struct restarts *restarts);

#endif
