/* SPDX-License-Identifier: Apache-2.0 */
/* inherited_memory.h - memory that ctrun hands to a worker as the number of a descriptor.
 *
 * A wrapper may have closed it and opened something else under that number, so it is believed
 * only if it is what it should be.  A worker may be several processes that use libct: each part
 * of such memory is the first one's while it lives. */
#ifndef RUNTIME_UTIL_INHERITED_MEMORY_H
#define RUNTIME_UTIL_INHERITED_MEMORY_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/util/error.h"

/* All of it, to munmap(); NULL: that is no memory of at least so many bytes. */
void *handed_down_map(int fd, size_t least, size_t *bytes);

enum handed_down {
    HANDED_TO_OTHERS, /* a process that lives has it */
    HANDED_FRESH,     /* nobody had it */
    HANDED_OURS,      /* this process had it already; perhaps the program before it did */
    HANDED_OVER       /* its process is dead */
};

/* pid: whose it is; 0: nobody's yet. */
enum handed_down handed_down_claim(_Atomic int32_t *pid);

/* ctrun's side: such memory, mapped, and nobody can make it smaller (which would kill its readers
 * by SIGBUS).  On a failure nothing is owed. */
ct_status hand_down(const char *name, size_t bytes, int *fd, void **base);

#endif
