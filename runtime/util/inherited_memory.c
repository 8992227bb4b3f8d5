/* SPDX-License-Identifier: Apache-2.0 */
/* inherited_memory.c - how ctrun creates such memory, and how a worker maps and claims it. */
#include "runtime/util/inherited_memory.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/util/file_limit.h"

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

ct_status inherited_create(const char *name, size_t bytes, int *fd, void **base)
{
    ct_status status = memory_file(name, bytes, fd);

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
