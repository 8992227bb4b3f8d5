/* SPDX-License-Identifier: Apache-2.0 */
/* memory.h - memory of which only the addresses exist.
 *
 * All ranks have the same buffers, and none is read or written: what copies and folds them takes
 * time, by the number of bytes, and does nothing else.  The algorithms' sources are compiled with
 * memcpy and memset as these. */
#ifndef NETWORK_SIM_MEMORY_H
#define NETWORK_SIM_MEMORY_H

#include <stddef.h>

int simulated_memory_open(void); /* 0, or -1: it can't be */
void *simulated_memory(void);    /* a buffer; of any rank */
void *simulated_copy(void *to, const void *from, size_t bytes);
void *simulated_set(void *to, int byte, size_t bytes);

#endif
