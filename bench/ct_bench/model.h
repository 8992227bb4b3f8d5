/* SPDX-License-Identifier: Apache-2.0 */
/* model.h - what an algorithm over messages would take if only the bytes on each rank's wire
 * counted, and how fast that wire is. */
#ifndef CT_BENCH_MODEL_H
#define CT_BENCH_MODEL_H

#include <stddef.h>

#include "include/ct.h"

/* Bytes in a microsecond, one way, of large messages from rank 0 to the last: into *wire on rank
 * 0.  All ranks call it.  NULL, or a sentence until the next call of libct. */
const char *model_measure(int rank, int ranks, double *wire);

/* Microseconds; NAN where the algorithm has no model.  `bytes` as in a row: of the larger buffer.
 */
double model_of(const char *operation, const char *algorithm, double bytes, int ranks, double wire);

#endif
