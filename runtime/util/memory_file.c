/* SPDX-License-Identifier: Apache-2.0 */
/* memory_file.c - creates, maps and claims shared memory. */
#include "runtime/util/memory_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/util/log.h"

ct_status file_may_have(uint64_t bytes)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY
        || bytes <= limit.rlim_cur)
        return CT_OK;
    errno = EFBIG;
    return ct_fail(CT_ERR_SYSTEM,
                   "shared memory is a file, and this process may not have a file of %llu bytes "
                   "(ulimit -f is %llu KiB)",
                   (unsigned long long)bytes, (unsigned long long)limit.rlim_cur / 1024);
}

int memory_reserve(int fd, uint64_t offset, uint64_t bytes)
{
    int error;

    while ((error = posix_fallocate(fd, (off_t)offset, (off_t)bytes)) == EINTR)
        continue;
    return error;
}

/* Returns a descriptor, or -1 with errno set. */
static int unlinked_file(const char *folder, const char *name, uint64_t bytes, uint64_t reserved)
{
    char path[4096];
    int fd, cause;

    if (snprintf(path, sizeof path, "%s/%s.XXXXXX", folder, name) >= (int)sizeof path)
        return -1;
    fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        return -1;
    unlink(path);
    cause = ftruncate(fd, (off_t)bytes) < 0 ? errno : memory_reserve(fd, 0, reserved);
    if (cause == 0)
        return fd;
    close(fd);
    errno = cause;
    return -1;
}

/* Returns a descriptor, or -1 with errno set. */
static int file_instead(const char *name, uint64_t bytes, uint64_t reserved)
{
    const char *const folders[] = { "/dev/shm", getenv("TMPDIR"), "/tmp" };
    const int cause = errno;

    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        const int fd =
            folders[i] && *folders[i] ? unlinked_file(folders[i], name, bytes, reserved) : -1;

        if (fd < 0)
            continue;
        log_line(LOG_WARN, "memfd_create() fails here (%s): %s is a file in %s", strerror(cause),
                 name, folders[i]);
        return fd;
    }
    errno = cause;
    return -1;
}

int memory_is_memfd(int fd)
{
    const int seals = fcntl(fd, F_GET_SEALS);

    return seals >= 0 && (seals & F_SEAL_SHRINK);
}

ct_status memory_file(const char *name, uint64_t bytes, uint64_t reserved, int *fd)
{
    ct_status status = file_may_have(bytes);
    int cause;

    *fd = -1;
    if (status != CT_OK)
        return status;
    *fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (*fd >= 0 && ftruncate(*fd, (off_t)bytes) == 0
        && fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        return CT_OK;
    if (*fd < 0 && (errno == ENOSYS || errno == EPERM || errno == EACCES)
        && (*fd = file_instead(name, bytes, reserved)) >= 0)
        return CT_OK;
    cause = errno;
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    ct_fail(CT_ERR_SYSTEM, "%llu bytes of memory to share: %s", (unsigned long long)bytes,
            strerror(cause));
    errno = cause;
    return CT_ERR_SYSTEM;
}

void *memory_map(int fd, uint64_t offset, size_t bytes)
{
    void *base =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, (off_t)offset);

    if (base == MAP_FAILED)
        return NULL;
    madvise(base, bytes, MADV_DONTDUMP);
    return base;
}

ct_status inherited_create(const char *name, size_t bytes, int *fd, void **base)
{
    ct_status status = memory_file(name, bytes, bytes, fd);

    if (status != CT_OK)
        return status;
    *base = memory_map(*fd, 0, bytes);
    if (*base)
        return CT_OK;
    status = ct_fail(CT_ERR_NOMEM, "memory to share: %s", strerror(errno));
    close(*fd);
    *fd = -1;
    return status;
}

void *inherited_map(int fd, size_t least, size_t *bytes)
{
    struct stat info;

    if (fstat(fd, &info) < 0 || !S_ISREG(info.st_mode) || info.st_size < 0
        || (size_t)info.st_size < least)
        return NULL;
    *bytes = (size_t)info.st_size;
    return memory_map(fd, 0, *bytes);
}

enum inherited_claim inherited_claim(_Atomic int32_t *pid)
{
    int32_t there = 0;

    if (atomic_compare_exchange_strong(pid, &there, getpid()))
        return INHERITED_FIRST;
    if (there == getpid())
        return INHERITED_ALREADY;
    return kill(there, 0) < 0 && errno == ESRCH
                   && atomic_compare_exchange_strong(pid, &there, getpid())
               ? INHERITED_FROM_DEAD
               : INHERITED_BY_OTHER;
}
