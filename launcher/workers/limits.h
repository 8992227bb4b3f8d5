/* SPDX-License-Identifier: Apache-2.0 */
/* limits.h - compares the kernel's limits for this process with the needs of the job. */
#ifndef LAUNCHER_WORKERS_LIMITS_H
#define LAUNCHER_WORKERS_LIMITS_H

#include <sys/resource.h>

#include "config/options.h"

/* Returns the largest number of descriptors that ctrun itself opens with `size` workers and
 * `streams` descriptors for each worker's streams. */
long limits_descriptors(int size, int streams);

/* Checks, before anything starts, that the kernel allows processes for `size` workers and
 * descriptors for ctrun.  `clients` is the number of connections to the store that ctrun hosts.  If
 * only these exceed the limit, logs a warning.  Raises ctrun's soft limit of descriptors to the
 * hard limit, and stores the old limits in *descriptors, for the workers.  Returns 0, or logs an
 * error and returns ctrun's exit code. */
int limits_check(const struct options *options, int size, long clients, struct rlimit *descriptors);

#endif
