/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LAUNCHER_PLACEMENT_NPROC_H
#define LAUNCHER_PLACEMENT_NPROC_H

#include <stddef.h>

#include "config/options.h"

/* The number of workers that --nproc-per-node means here, and why, for
 * --explain.  0: there is none of what was asked for; why is the sentence. */
int nproc_count(const struct options *options, char *why, size_t size);

#endif
