/* SPDX-License-Identifier: Apache-2.0 */
/* file_store.c - a store that works like PyTorch's FileStore.  The file is a log, which each
 * process replays before each operation.  A record of the log is, in little-endian:
 *
 *   u32 key length, key, u32 value length, value
 *
 * The log has these records:
 *
 *   "/key" value      sets a key of the API
 *   "-/key" ""        deletes that key
 *   "refcount/" n     n stores have the file open
 *   "cleanup/" n      n stores have closed the file so far
 *
 * Writers hold an exclusive flock, and readers hold a shared flock.  A process that waits for the
 * lock tries again, at most every 10 ms.  file_replay() reads the records that were added since the
 * last replay into the map.  file_write() appends a record.  A lock is held for one operation only.
 * But the process that holds the lock may be stopped, so a process that waits for the lock gives up
 * at the store's timeout.
 *
 * The last of num_workers stores that closes the file removes it.  Another process may have opened
 * the file before the removal, and get the lock after the removal.  That process opens the path
 * again. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/types.h>
#include <unistd.h>

#include "runtime/store/local_store.h"
#include "runtime/util/clock.h"
#include "runtime/util/memory_file.h"
#include "runtime/util/forks.h"
#include "runtime/util/log.h"

#define MOST_BYTES (1u << 30) /* most bytes of a key or a value */
#define POLL_MS 10            /* time between two checks for a key; most time between two tries */
#define FIRST_NAP_US 100      /* time before the second try; the lock is mostly free by then */
#define LEAST_LOCK_MS 1000    /* limit of a wait for the lock if the store's timeout is shorter */
#define CLOSE_LOCK_MS 1000    /* limit of the wait for the lock in ct_store_close() */
#define MOST_OPENED 100       /* most tries to open the file while other processes remove it */

struct file_store {
    struct local_store local;
    char *path;
    int fd;
    off_t at; /* offset up to which the log was replayed */
    int num_workers;
    int counted;               /* true if refcount counts this store */
    int64_t refcount, cleanup; /* the values of "refcount/" and "cleanup/" in the log */
};

static ct_status file_failed(const struct file_store *f, const char *what)
{
    return ct_fail(CT_ERR_SYSTEM, "file store %s: %s: %s", f->path, what, strerror(errno));
}

/* ---- Reading the log -------------------------------------------------------- */

/* Reads a count, limited to 32 bits, since a sum could overflow with a larger count that another
 * process wrote. */
static int64_t file_store_count_of(const char *text)
{
    const long long count = strtoll(text, NULL, 10);

    return count > INT32_MAX ? INT32_MAX : count < INT32_MIN ? INT32_MIN : count;
}

static void bookkeeping(struct file_store *f, struct bytes key, struct bytes value)
{
    char text[32];

    snprintf(text, sizeof text, "%.*s", (int)value.size, (const char *)value.data);
    if (key.size == 9 && !memcmp(key.data, "refcount/", 9))
        f->refcount = file_store_count_of(text);
    if (key.size == 8 && !memcmp(key.data, "cleanup/", 8))
        f->cleanup = file_store_count_of(text);
}

static ct_status replay_record(struct file_store *f, struct bytes key, struct bytes value)
{
    struct map *map = &f->local.map;
    const char *text = key.data;
    struct entry *entry;

    if (key.size > 0 && text[0] == '/') {
        entry = map_get(map, (struct bytes){ text + 1, key.size - 1 });
        return entry
                       && entry_set(map, entry, value_create(map->budget, value.data, value.size))
                              == 0
                   ? CT_OK
                   : ct_fail(CT_ERR_NOMEM, "no memory for the keys of %s", f->path);
    }
    if (key.size > 1 && text[0] == '-' && text[1] == '/') {
        entry = map_find(map, (struct bytes){ text + 2, key.size - 2 });
        if (entry) {
            entry_delete(map, entry);
            map_drop_if_idle(map, entry);
        }
        return CT_OK;
    }
    bookkeeping(f, key, value);
    return CT_OK;
}

/* Reads a length into *size, and returns the data behind the length.  Moves *at behind the data.
 * Returns NULL at the end, if the record is incomplete because its writer died, or if the length is
 * over MOST_BYTES. */
static const char *file_store_take(const char **at, const char *end, uint32_t *size)
{
    const char *data;

    if (end - *at < 4)
        return NULL;
    memcpy(size, *at, 4);
    if (*size > MOST_BYTES || end - *at - 4 < (ptrdiff_t)*size)
        return NULL;
    data = *at + 4;
    *at = data + *size;
    return data;
}

static ct_status replay_all(struct file_store *f, const char *data, size_t bytes)
{
    const char *at = data, *end = data + bytes, *whole = data;
    ct_status status = CT_OK;

    while (status == CT_OK) {
        uint32_t key_size, value_size;
        const char *key = file_store_take(&at, end, &key_size);
        const char *value = key ? file_store_take(&at, end, &value_size) : NULL;

        if (!value)
            break;
        status =
            replay_record(f, (struct bytes){ key, key_size }, (struct bytes){ value, value_size });
        whole = at;
    }
    f->at += whole - data;
    return status;
}

/* Reads new records into the map.  The caller holds the lock, which is exclusive if to_write is
 * set.  A writer that died may have left an incomplete record at the end.  If to_write is set, this
 * function cuts that record off.  Otherwise a shorter new record would leave the rest of the old
 * record behind it, which would then be read as records. */
static ct_status file_replay(struct file_store *f, int to_write)
{
    struct stat info;
    size_t bytes;
    char *data;
    ct_status status;

    if (fstat(f->fd, &info) < 0)
        return file_failed(f, "fstat");
    if (info.st_size <= f->at)
        return CT_OK;
    bytes = (size_t)(info.st_size - f->at);
    data = malloc(bytes);
    if (!data)
        return ct_fail(CT_ERR_NOMEM, "no memory to read %s", f->path);
    if (pread(f->fd, data, bytes, f->at) != (ssize_t)bytes)
        status = file_failed(f, "read");
    else
        status = replay_all(f, data, bytes);
    free(data);
    if (status == CT_OK && to_write && f->at < info.st_size && ftruncate(f->fd, f->at) < 0)
        status = file_failed(f, "truncate");
    return status;
}

/* ---- Writing the log -------------------------------------------------------- */

/* Appends a record with the key head + key.  The caller holds the exclusive lock and has replayed
 * the log, so the file ends at f->at.  head is "/", "-/", "refcount/" or "cleanup/". */
static ct_status file_write(struct file_store *f, const char *head, struct bytes key,
                            struct bytes value)
{
    const uint32_t head_size = (uint32_t)strlen(head);
    const uint32_t sizes[2] = { head_size + (uint32_t)key.size, (uint32_t)value.size };
    const size_t bytes = 8 + (size_t)sizes[0] + sizes[1];
    char *record, *at;
    ssize_t written;

    if (key.size > MOST_BYTES || value.size > MOST_BYTES)
        return ct_fail(CT_ERR_INVALID, "file store %s: a value of %zu bytes is too large", f->path,
                       value.size);
    if (file_may_have((uint64_t)f->at + bytes) != CT_OK)
        return ct_fail_in(CT_ERR_SYSTEM, "file store %s: ", f->path);
    record = malloc(bytes);
    if (!record)
        return ct_fail(CT_ERR_NOMEM, "no memory to write %s", f->path);
    at = record;
    memcpy(at, &sizes[0], 4);
    at = (char *)memcpy(at + 4, head, head_size) + head_size;
    if (key.size > 0)
        memcpy(at, key.data, key.size);
    at += key.size;
    memcpy(at, &sizes[1], 4);
    if (value.size > 0)
        memcpy(at + 4, value.data, value.size);
    written = pwrite(f->fd, record, bytes, f->at);
    free(record);
    if (written != (ssize_t)bytes)
        return file_failed(f, "write");
    f->at += (off_t)bytes;
    return CT_OK;
}

/* Adds delta to a count.  value points to f->refcount or f->cleanup, and key is the count's key in
 * the file. */
static ct_status file_count(struct file_store *f, const char *key, int64_t *value, int delta)
{
    char text[24];

    *value += delta;
    snprintf(text, sizeof text, "%" PRId64, *value);
    return file_write(f, key, (struct bytes){ NULL, 0 }, (struct bytes){ text, strlen(text) });
}

/* ---- The lock --------------------------------------------------------------- */

/* Returns the pid of the process that holds the lock; 0 if /proc/locks does not show it.  That is
 * so if the process is in another container, or if the file's device number differs from its file
 * system's (btrfs, overlayfs on several disks).  The device number is compared because inode
 * numbers alone are not unique. */
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
                   "file store %s: %s holds the lock of the file; this process has waited %lld ms "
                   "for it (limit %d ms); is the other process stopped?",
                   f->path, who, (long long)waited_ms, limit_ms);
}

/* Takes the lock.  Tries repeatedly and sleeps between the tries, since flock() without LOCK_NB
 * could block forever. */
static ct_status file_store_take_lock(const struct file_store *f, int kind, int limit_ms)
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
    ct_status status = file_store_take_lock(f, to_write ? LOCK_EX : LOCK_SH, limit_ms);

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

static ct_status file_store_changed(struct local_store *store, struct bytes key,
                                    const struct bytes *value)
{
    struct file_store *f = (struct file_store *)store;

    return value ? file_write(f, "/", key, *value)
                 : file_write(f, "-/", key, (struct bytes){ NULL, 0 });
}

/* Counts this store as closed, and removes the file if this was the last store.  If this fails, the
 * file stays behind, as after a kill. */
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

static const struct local_hooks hooks = { lock, file_store_changed, unlock, close_file, POLL_MS };

static int is_removed(const struct file_store *f)
{
    struct stat ours, there;

    if (fstat(f->fd, &ours) < 0)
        return 0;
    if (stat(f->path, &there) < 0)
        return errno == ENOENT;
    return ours.st_ino != there.st_ino || ours.st_dev != there.st_dev;
}

/* Opens and locks the file.  If another process removed the file in between, opens the path again,
 * since later processes would not see what this process writes into the removed file. */
static ct_status open_locked(struct file_store *f)
{
    for (int tries = 0; tries < MOST_OPENED; tries++) {
        ct_status status;

        if (f->fd >= 0)
            close(f->fd); /* also releases the lock */
        f->fd = open(f->path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
        if (f->fd < 0)
            return file_failed(f, "open");
        status = file_store_take_lock(f, LOCK_EX, lock_limit_ms(f));
        if (status != CT_OK || !is_removed(f))
            return status;
    }
    return ct_fail(CT_ERR_SYSTEM,
                   "file store %s: the file was removed each of the %d times that it was opened; "
                   "find out who removes it, or give each job its own path",
                   f->path, MOST_OPENED);
}

static ct_status open_and_count(struct file_store *f)
{
    ct_status status = open_locked(f);

    if (status == CT_OK)
        status = lock(&f->local, 1); /* takes the same lock again, and replays the log */
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
                       "ct_store_file: the path or the pointer for the store is NULL");
    return store_file_open(path, 0, timeout_ms, store);
}
