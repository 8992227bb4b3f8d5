/* SPDX-License-Identifier: Apache-2.0 */
/* limits.h - what the kernel allows this process, against what the job needs. */
#ifndef LAUNCHER_WORKERS_LIMITS_H
#define LAUNCHER_WORKERS_LIMITS_H

#include <sys/resource.h>

#include "config/options.h"

/* That ctrun itself may have open, with `size` workers and so many streams of each. */
long limits_descriptors(int size, int streams);

/* Before anything starts: are there processes for `size` workers, and descriptors for ctrun
 * beside them?  `clients` are those that may come to the store which ctrun hosts: where only they
 * don't fit, that is a warning.
 * ctrun's own soft limit of descriptors becomes the hard one; *descriptors is the limit from
 * before, for the workers.  0, or ctrun's exit code and the error is logged. */
int limits_check(const struct options *options, int size, long clients, struct rlimit *descriptors);

#endif
