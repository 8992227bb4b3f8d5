/* SPDX-License-Identifier: Apache-2.0 */
/* limits.h - compares what the kernel allows this process with what the job needs. */
#ifndef LAUNCHER_WORKERS_LIMITS_H
#define LAUNCHER_WORKERS_LIMITS_H

#include <sys/resource.h>

#include "config/options.h"

/* Gives the most descriptors that ctrun itself opens, with `size` workers and `streams` for
 * each. */
long limits_descriptors(int size, int streams);

/* Checks, before anything starts, that the kernel allows processes for `size` workers and
 * descriptors for ctrun.  clients: connections to the store that ctrun hosts; if only these do not
 * fit, it warns.  Sets ctrun's soft limit of descriptors to the hard one; *descriptors gets the old
 * limit, for the workers.  0: success; else ctrun's exit code, and the error is logged. */
int limits_check(const struct options *options, int size, long clients, struct rlimit *descriptors);

#endif
