/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LAUNCHER_NPROC_H
#define LAUNCHER_NPROC_H

#include <stddef.h>

#include "config/values.h"

/* The number of workers that --nproc-per-node means here, and why, for
 * --explain.  0: there is none of what was asked for; why says so. */
int nproc_count(const struct nproc *nproc, char *why, size_t size);

/* GPUs by their device files in `devices` ("/dev"), narrowed by the value of
 * CUDA_VISIBLE_DEVICES (NULL: unset; "": none is visible), as CUDA reads it. */
int gpu_count(const char *devices, const char *visible);

#endif
