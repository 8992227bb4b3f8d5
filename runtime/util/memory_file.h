/* SPDX-License-Identifier: Apache-2.0 */
/* memory_file.h - shared memory that is a file without a name (memfd), and the limit of files.
 *
 * Beyond RLIMIT_FSIZE the kernel sends SIGXFSZ before it returns EFBIG, and by default the signal
 * kills the process.  A library may not change signal handling, so it checks the limit first.
 *
 * ctrun gives such memory to a worker as the number of a descriptor.  A wrapper may have closed the
 * descriptor and opened another file under that number, so the worker checks what it is.  Several
 * processes of a worker may use libct: each part of the memory belongs to the first of them while
 * that one lives. */
#ifndef RUNTIME_UTIL_MEMORY_FILE_H
#define RUNTIME_UTIL_MEMORY_FILE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/util/error.h"

/* If a file of so many bytes is too large, the error names the limit, and errno is EFBIG. */
ct_status file_may_have(uint64_t bytes);

/* A memfd with MFD_CLOEXEC.  Its size is sealed: no process can shrink it, which would kill its
 * readers by SIGBUS. */
ct_status memory_file(const char *name, uint64_t bytes, int *fd);

/* For little memory.  Without a memfd it makes an unlinked file in /dev/shm, TMPDIR or /tmp, and a
 * line says so (LOG_WARN).  The file has no seals.  Its bytes are reserved: a full folder is an
 * error here and does not kill a writer later. */
ct_status little_memory_file(const char *name, uint64_t bytes, int *fd);

/* Maps a part of such a file, shared.  Core dumps leave it out: to dump it, the kernel would read,
 * and so allocate, all pages that were never touched.  NULL: see errno. */
void *memory_map(int fd, uint64_t offset, size_t bytes);

/* For ctrun: creates and maps all of it. */
ct_status inherited_create(const char *name, size_t bytes, int *fd, void **base);

/* For a worker: maps all of it; the caller calls munmap().  NULL: it is no memory of at least
 * `least` bytes. */
void *inherited_map(int fd, size_t least, size_t *bytes);

enum inherited_claim {
    INHERITED_BY_OTHER, /* another live process has it */
    INHERITED_FIRST,    /* no process had it */
    INHERITED_ALREADY,  /* this process had it already, perhaps before an exec */
    INHERITED_FROM_DEAD /* the process that had it is dead */
};

/* *pid: the process that has it; 0: none. */
enum inherited_claim inherited_claim(_Atomic int32_t *pid);

#endif
