/* SPDX-License-Identifier: Apache-2.0 */
/* file_limit.h - files, and memory to share, that the limit of file sizes allows.
 *
 * Beyond RLIMIT_FSIZE the kernel sends SIGXFSZ before it says EFBIG, and by default that ends
 * the process without a word.  A library may not change what signals do, so it asks first. */
#ifndef RUNTIME_UTIL_FILE_LIMIT_H
#define RUNTIME_UTIL_FILE_LIMIT_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/util/error.h"

/* CT_OK, or a sentence that names the limit; errno is then EFBIG. */
ct_status file_may_have(uint64_t bytes);

/* A memfd with MFD_CLOEXEC, of so many bytes for ever: nobody can make it smaller, which would kill
 * its readers by SIGBUS. */
ct_status memory_file(const char *name, uint64_t bytes, int *fd);

/* Maps a part of such a file, to be shared.  A core dump leaves it out: to dump it the kernel would
 * read, and so allocate, all pages that were never touched.  NULL: errno says why. */
void *memory_map(int fd, uint64_t offset, size_t bytes);

#endif
