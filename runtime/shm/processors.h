/* SPDX-License-Identifier: Apache-2.0 */
/* processors.h - the processors that the ranks of a host may use together.  Their number decides
 * whether a wait spins. */
#ifndef RUNTIME_SHM_PROCESSORS_H
#define RUNTIME_SHM_PROCESSORS_H

#include "runtime/util/cpu_set.h"

struct processors {
    struct cpus cpus;
    long long milli; /* thousandths of a processor that a control group allows; 0: no limit */
};

/* Gets the processors that the calling process may use.  root: the root folder of /proc and /sys;
 * "" except in tests. */
void processors_own(struct processors *processors, const char *root);

/* Adds the CPUs of another rank.  The ranks usually share the time of one control group,
 * so their limits are not added.  If they have several control groups, the lowest limit is
 * the safe guess. */
void processors_add(struct processors *processors, const struct processors *more);

/* Returns the number of whole processors, at least 1. */
int processors_count(const struct processors *processors);

#endif
