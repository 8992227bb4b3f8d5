/* SPDX-License-Identifier: Apache-2.0 */
/* file_store.c - PyTorch's FileStore: a file that is replayed under its lock before each operation.
 *
 * Writers hold an exclusive flock, readers a shared one; who waits looks every
 * 10 ms.  What lies in the file is for file_store_log.c.  The file goes when the last of
 * num_workers closes it; who had opened it by then, and gets its lock after that, opens the path
 * again.
 *
 * A lock is held for one operation only, but whoever holds it may be stopped: who
 * waits for it gives up at the store's timeout. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "runtime/store/file_store.h"
#include "runtime/store/file_store_internal.h"
#include "runtime/util/clock.h"
#include "runtime/util/forks.h"
#include "runtime/util/log.h"

#define POLL_MS 10         /* between two looks for a key or, at the most, for the lock */
#define FIRST_NAP_US 100   /* before the second look for the lock: it is mostly free by then */
#define LEAST_LOCK_MS 1000 /* for the lock where the store's timeout, of keys, is shorter */
#define CLOSE_LOCK_MS 1000 /* for the lock at the end, where nobody waits for a result */
#define MOST_OPENED 100    /* how often the file is removed under our hands before we give up */

/* ---- The lock --------------------------------------------------------------- */

/* The process that holds it; 0: the kernel tells of none, as where it is another container's.  Nor
 * does it where a file's device is not that of its file system (btrfs, overlayfs on several disks):
 * inodes alone have the same number on several disks. */
static int holder(const struct file_store *f)
{
    FILE *locks = fopen("/proc/locks", "re");
    unsigned major, minor;
    unsigned long long inode;
    struct stat info;
    char line[256];
    int pid, found = 0;

    if (locks && fstat(f->fd, &info) == 0)
        while (!found && fgets(line, sizeof line, locks))
            if (sscanf(line, "%*d: FLOCK %*s %*s %d %x:%x:%llu", &pid, &major, &minor, &inode) == 4
                && makedev(major, minor) == info.st_dev && inode == info.st_ino && pid > 0)
                found = pid;
    if (locks)
        fclose(locks);
    return found;
}

static ct_status not_locked(const struct file_store *f, int64_t waited_ms, int limit_ms)
{
    const int pid = holder(f);
    char who[32] = "another process";

    if (pid > 0)
        snprintf(who, sizeof who, "process %d", pid);
    return ct_fail(CT_ERR_TIMEOUT,
                   "file store %s: %s holds the lock of the file, which was not to be had for %lld "
                   "ms (limit %d ms); see whether that process is stopped",
                   f->path, who, (long long)waited_ms, limit_ms);
}

/* flock() itself would wait for ever. */
static ct_status take_lock(const struct file_store *f, int kind, int limit_ms)
{
    const int64_t start = clock_ms(), deadline = deadline_after(limit_ms);
    long nap_us = FIRST_NAP_US;

    while (flock(f->fd, kind | LOCK_NB) < 0) {
        const struct timespec nap = { .tv_nsec = nap_us * 1000 };

        if (errno == EINTR)
            continue;
        if (errno != EWOULDBLOCK)
            return file_failed(f, "flock");
        if (clock_ms() >= deadline)
            return not_locked(f, clock_ms() - start, limit_ms);
        nanosleep(&nap, NULL);
        nap_us = nap_us * 2 < POLL_MS * 1000 ? nap_us * 2 : POLL_MS * 1000;
    }
    return CT_OK;
}

static int lock_limit_ms(const struct file_store *f)
{
    const int timeout_ms = f->local.store.timeout_ms;

    return timeout_ms >= 0 && timeout_ms < LEAST_LOCK_MS ? LEAST_LOCK_MS : timeout_ms;
}

static ct_status lock_within(struct file_store *f, int to_write, int limit_ms)
{
    ct_status status = take_lock(f, to_write ? LOCK_EX : LOCK_SH, limit_ms);

    if (status != CT_OK)
        return status;
    status = file_replay(f, to_write);
    if (status != CT_OK)
        flock(f->fd, LOCK_UN);
    return status;
}

/* ---- Hooks ----------------------------------------------------------------- */

static ct_status lock(struct local_store *store, int to_write)
{
    struct file_store *f = (struct file_store *)store;

    return lock_within(f, to_write, lock_limit_ms(f));
}

static void unlock(struct local_store *store)
{
    flock(((struct file_store *)store)->fd, LOCK_UN);
}

static ct_status changed(struct local_store *store, struct bytes key, const struct bytes *value)
{
    struct file_store *f = (struct file_store *)store;

    return value ? file_write(f, "/", key, *value)
                 : file_write(f, "-/", key, (struct bytes){ NULL, 0 });
}

/* Who is not counted out leaves the file behind, as one that was killed does. */
static void count_out(struct file_store *f)
{
    if (lock_within(f, 1, CLOSE_LOCK_MS) != CT_OK) {
        log_line(LOG_WARN, "%s; the file stays behind", ct_last_error());
        return;
    }
    file_count(f, "cleanup/", &f->cleanup, 1);
    file_count(f, "refcount/", &f->refcount, -1);
    if (f->refcount == 0 && f->num_workers > 0 && f->cleanup >= f->num_workers)
        unlink(f->path);
    unlock(&f->local);
}

static void close_file(struct local_store *store)
{
    struct file_store *f = (struct file_store *)store;

    if (f->counted)
        count_out(f);
    if (f->fd >= 0)
        descriptor_close(f->fd);
    free(f->path);
    local_store_done(store);
    free(f);
}

static const struct local_hooks hooks = { lock, changed, unlock, close_file, POLL_MS };

static int is_removed(const struct file_store *f)
{
    struct stat ours, there;

    if (fstat(f->fd, &ours) < 0)
        return 0;
    if (stat(f->path, &there) < 0)
        return errno == ENOENT;
    return ours.st_ino != there.st_ino || ours.st_dev != there.st_dev;
}

/* Between our open() and our lock the last of the others may have left, and removed the file: what
 * we write into that one is seen by nobody who comes after us. */
static ct_status open_locked(struct file_store *f)
{
    for (int tries = 0; tries < MOST_OPENED; tries++) {
        ct_status status;

        if (f->fd >= 0)
            close(f->fd); /* and its lock is gone */
        f->fd = open(f->path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
        if (f->fd < 0)
            return file_failed(f, "open");
        status = take_lock(f, LOCK_EX, lock_limit_ms(f));
        if (status != CT_OK || !is_removed(f))
            return status;
    }
    return ct_fail(CT_ERR_SYSTEM,
                   "file store %s: the file was removed each of the %d times that it was opened; "
                   "see who removes it, or take a path of its own for each job",
                   f->path, MOST_OPENED);
}

static ct_status open_and_count(struct file_store *f)
{
    ct_status status = open_locked(f);

    if (status == CT_OK)
        status = lock(&f->local, 1); /* the same once more, and what stands there is read */
    if (status != CT_OK)
        return status;
    status = file_count(f, "refcount/", &f->refcount, 1);
    f->counted = status == CT_OK;
    unlock(&f->local);
    return status;
}

ct_status store_file_open(const char *path, int num_workers, int timeout_ms, ct_store **store)
{
    struct file_store *f = calloc(1, sizeof *f);
    ct_status status;

    if (!f || !(f->path = strdup(path))) {
        free(f);
        return ct_fail(CT_ERR_NOMEM, "no memory for a store");
    }
    f->fd = -1;
    f->num_workers = num_workers;
    status = local_store_init(&f->local, "file", &hooks, timeout_ms);
    if (status != CT_OK) {
        free(f->path);
        free(f);
        return status;
    }
    status = open_and_count(f);
    descriptor_own(f->fd);
    if (status != CT_OK) {
        close_file(&f->local);
        return status;
    }
    *store = &f->local.store;
    return CT_OK;
}

ct_status ct_store_file(const char *path, int timeout_ms, ct_store **store)
{
    if (!path || !*path || !store)
        return ct_fail(CT_ERR_INVALID,
                       "ct_store_file: the path or the place for the store is NULL");
    return store_file_open(path, 0, timeout_ms, store);
}
