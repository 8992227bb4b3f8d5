/* SPDX-License-Identifier: Apache-2.0 */
/* inherited_memory.h - a memfd that ctrun gives to a worker as the number of a descriptor.
 *
 * A wrapper may have closed the descriptor and opened another file under that number, so the worker
 * checks what it is.  Several processes of a worker may use libct: each part of the memory belongs
 * to the first of them while that one lives. */
#ifndef RUNTIME_UTIL_INHERITED_MEMORY_H
#define RUNTIME_UTIL_INHERITED_MEMORY_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/util/error.h"

/* Maps all of it; the caller calls munmap().  NULL: it is no memory of at least `least` bytes. */
void *inherited_map(int fd, size_t least, size_t *bytes);

enum inherited_claim {
    INHERITED_BY_OTHER, /* another live process has it */
    INHERITED_FIRST,    /* no process had it */
    INHERITED_ALREADY,  /* this process had it already, perhaps before an exec */
    INHERITED_FROM_DEAD /* the process that had it is dead */
};

/* *pid: the process that has it; 0: none. */
enum inherited_claim inherited_claim(_Atomic int32_t *pid);

/* For ctrun: creates such memory and maps it.  It is sealed against shrinking, which would kill its
 * readers by SIGBUS. */
ct_status inherited_create(const char *name, size_t bytes, int *fd, void **base);

#endif
