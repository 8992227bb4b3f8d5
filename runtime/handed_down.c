/* SPDX-License-Identifier: Apache-2.0 */
/* handed_down.c - see handed_down.h. */
#include "runtime/handed_down.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/file_size.h"

void *handed_down_map(int fd, size_t least, size_t *bytes)
{
    struct stat info;
    void *base;

    if (fstat(fd, &info) < 0 || !S_ISREG(info.st_mode) || info.st_size < 0
        || (size_t)info.st_size < least)
        return NULL;
    *bytes = (size_t)info.st_size;
    base = mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return base == MAP_FAILED ? NULL : base;
}

enum handed_down handed_down_claim(_Atomic int32_t *pid)
{
    int32_t there = 0;

    if (atomic_compare_exchange_strong(pid, &there, getpid()))
        return HANDED_FRESH;
    if (there == getpid())
        return HANDED_OURS;
    return kill(there, 0) < 0 && errno == ESRCH
                   && atomic_compare_exchange_strong(pid, &there, getpid())
               ? HANDED_OVER
               : HANDED_TO_OTHERS;
}

static ct_status seal_and_map(int fd, size_t bytes, void **base)
{
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
        return ct_fail(CT_ERR_SYSTEM, "memory to share: %s", strerror(errno));
    *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return *base != MAP_FAILED ? CT_OK
                               : ct_fail(CT_ERR_NOMEM, "memory to share: %s", strerror(errno));
}

ct_status hand_down(const char *name, size_t bytes, int *fd, void **base)
{
    ct_status status = memory_file(name, MFD_ALLOW_SEALING, bytes, fd);

    if (status != CT_OK)
        return status;
    status = seal_and_map(*fd, bytes, base);
    if (status != CT_OK) {
        close(*fd);
        *fd = -1;
        *base = NULL;
    }
    return status;
}
