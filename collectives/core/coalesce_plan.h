/* SPDX-License-Identifier: Apache-2.0 */
/* coalesce_plan.h - the trips of a list of collected calls.  The calls are the list's owner's, and
 * outlive them. */
#ifndef COLLECTIVES_CORE_COALESCE_PLAN_H
#define COLLECTIVES_CORE_COALESCE_PLAN_H

#include "collectives/core/call.h"

/* calls[first] and the count - 1 behind it. */
struct trip {
    struct call call;
    int first, count;
};

struct trips {
    struct trip *trips;
    int count;
    char *buffer; /* of one trip after the other */
};

/* *trips is zero, and trips_forget() undoes it, whatever this returns.  CT_ERR_INVALID: calls of
 * one trip write what others of it read or write. */
ct_status trips_plan(struct trips *trips, struct call *calls, int used);
void trips_forget(struct trips *trips);
/* It blocks.  calls: all that were planned. */
ct_status trip_make(struct trip *trip, const struct call *calls);

#endif
