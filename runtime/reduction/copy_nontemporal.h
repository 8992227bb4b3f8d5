/* SPDX-License-Identifier: Apache-2.0 */
/* copy_nontemporal.h - copies that leave the caches as they are, in parts. */
#ifndef RUNTIME_REDUCTION_COPY_NONTEMPORAL_H
#define RUNTIME_REDUCTION_COPY_NONTEMPORAL_H

#include <stddef.h>

/* Other threads may see its stores late, even after later ordinary stores, */
void copy_streaming_part(void *dst, const void *src, size_t bytes);
/* until this has returned. */
void copy_streaming_end(void);

#endif
