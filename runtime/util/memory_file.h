/* SPDX-License-Identifier: Apache-2.0 */
/* memory_file.h - shared memory in files without a name (memfd), and the limit on a file's size.
 *
 * When a process makes a file larger than RLIMIT_FSIZE, the kernel sends SIGXFSZ before the call
 * returns EFBIG, and by default the signal kills the process.  A library may not change signal
 * handling, so libct checks the limit first.
 *
 * ctrun passes such memory to a worker as the number of a descriptor.  A wrapper may have closed
 * the descriptor and opened another file under the same number, so the worker checks the file.
 * Several processes of a worker may use libct.  Each part of the memory belongs to the first
 * process that claims it, for as long as that process lives. */
#ifndef RUNTIME_UTIL_MEMORY_FILE_H
#define RUNTIME_UTIL_MEMORY_FILE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/util/error.h"

/* Fails if a file of so many bytes would exceed RLIMIT_FSIZE.  The error then names the limit, and
 * errno is EFBIG. */
ct_status file_may_have(uint64_t bytes);

/* Creates a memfd with MFD_CLOEXEC.  Its size is sealed so that no process can shrink it;
 * shrinking it would kill readers with SIGBUS.  On failure *fd is -1 and errno is set.
 *
 * Without memfd_create() it is an unlinked file in /dev/shm, TMPDIR or /tmp, and a line (LOG_WARN)
 * says so.  That file has no seals.  Its first `reserved` bytes are reserved at once, so a full
 * folder is an error here and does not kill a writer later.  The caller must reserve the others
 * before it writes them. */
ct_status memory_file(const char *name, uint64_t bytes, uint64_t reserved, int *fd);
int memory_is_memfd(int fd);
int memory_reserve(int fd, uint64_t offset, uint64_t bytes); /* returns 0 or an errno */

/* Maps `bytes` bytes of the file from `offset`, shared and writable.  Core dumps omit the mapping,
 * since dumping it would make the kernel allocate every page that was never touched.  Returns NULL
 * with errno set on failure. */
void *memory_map(int fd, uint64_t offset, size_t bytes);

/* Creates and maps the whole memory file, for ctrun. */
ct_status inherited_create(const char *name, size_t bytes, int *fd, void **base);

/* Maps the whole memory file in a worker, which unmaps it with munmap().  Sets *bytes to the size.
 * Returns NULL if fd is not a file of at least `least` bytes or can't be mapped. */
void *inherited_map(int fd, size_t least, size_t *bytes);

enum inherited_claim {
    INHERITED_BY_OTHER, /* another live process has the memory */
    INHERITED_FIRST,    /* no process had the memory before */
    INHERITED_ALREADY,  /* this process had the memory already, perhaps before an exec */
    INHERITED_FROM_DEAD /* the process that had the memory is dead */
};

/* Claims a part of the memory for this process, unless another live process has it.  *pid is the
 * process that has this part, or 0 before the first claim. */
enum inherited_claim inherited_claim(_Atomic int32_t *pid);

#endif
