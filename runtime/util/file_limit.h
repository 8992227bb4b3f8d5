/* SPDX-License-Identifier: Apache-2.0 */
/* file_limit.h - files and shared memory within RLIMIT_FSIZE.
 *
 * Beyond RLIMIT_FSIZE the kernel sends SIGXFSZ before it returns EFBIG, and by default the signal
 * kills the process.  A library may not change signal handling, so it checks the limit first. */
#ifndef RUNTIME_UTIL_FILE_LIMIT_H
#define RUNTIME_UTIL_FILE_LIMIT_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/util/error.h"

/* If a file of so many bytes is too large, the error names the limit, and errno is EFBIG. */
ct_status file_may_have(uint64_t bytes);

/* A memfd with MFD_CLOEXEC.  Its size is sealed: no process can shrink it, which would kill its
 * readers by SIGBUS. */
ct_status memory_file(const char *name, uint64_t bytes, int *fd);

/* Maps a part of such a file, shared.  Core dumps leave it out: to dump it, the kernel would read,
 * and so allocate, all pages that were never touched.  NULL: see errno. */
void *memory_map(int fd, uint64_t offset, size_t bytes);

#endif
