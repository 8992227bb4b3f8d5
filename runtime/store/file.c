/* SPDX-License-Identifier: Apache-2.0 */
/* file.c - PyTorch's FileStore: a log of records that everybody replays.
 *
 *   u32 key length, key, u32 value length, value      little-endian
 *   "/key" value       a key of the API               "-/key" ""   its deletion
 *   "refcount/", "cleanup/"   how many have it open, and how many ever closed it
 *
 * Writers hold an exclusive flock, readers a shared one; who waits looks every
 * 10 ms.  The file goes when the last of num_workers closes it. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/file_size.h"
#include "runtime/store/file.h"
#include "runtime/store/local.h"

#define POLL_MS 10
#define MOST_BYTES (1u << 30)

#define MOST_OPENED 100

struct file_store {
    struct local_store local;
    char *path;
    int fd;
    off_t at; /* replayed up to here */
    int num_workers;
    int64_t refcount, cleanup;
};

static ct_status failed(const struct file_store *f, const char *what)
{
    return ct_fail(CT_ERR_SYSTEM, "file store %s: %s: %s", f->path, what, strerror(errno));
}

/* ---- Reading --------------------------------------------------------------- */

/* No sum with what others wrote may overflow. */
static int64_t count_of(const char *text)
{
    const long long count = strtoll(text, NULL, 10);

    return count > INT32_MAX ? INT32_MAX : count < INT32_MIN ? INT32_MIN : count;
}

static void bookkeeping(struct file_store *f, struct bytes key, struct bytes value)
{
    char text[32];

    snprintf(text, sizeof text, "%.*s", (int)value.size, (const char *)value.data);
    if (key.size == 9 && !memcmp(key.data, "refcount/", 9))
        f->refcount = count_of(text);
    if (key.size == 8 && !memcmp(key.data, "cleanup/", 8))
        f->cleanup = count_of(text);
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

/* A length and as many bytes; NULL at the end, or where a writer died half way. */
static const char *take(const char **at, const char *end, uint32_t *size)
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
        const char *key = take(&at, end, &key_size);
        const char *value = key ? take(&at, end, &value_size) : NULL;

        if (!value)
            break;
        status =
            replay_record(f, (struct bytes){ key, key_size }, (struct bytes){ value, value_size });
        whole = at;
    }
    f->at += whole - data;
    return status;
}

/* Behind the whole records lies what a writer left that died half way.  Under a shorter record
 * of ours its rest would be read as more records: it goes before we write. */
static ct_status replay(struct file_store *f, int to_write)
{
    struct stat info;
    size_t bytes;
    char *data;
    ct_status status;

    if (fstat(f->fd, &info) < 0)
        return failed(f, "fstat");
    if (info.st_size <= f->at)
        return CT_OK;
    bytes = (size_t)(info.st_size - f->at);
    data = malloc(bytes);
    if (!data)
        return ct_fail(CT_ERR_NOMEM, "no memory to read %s", f->path);
    if (pread(f->fd, data, bytes, f->at) != (ssize_t)bytes)
        status = failed(f, "read");
    else
        status = replay_all(f, data, bytes);
    free(data);
    if (status == CT_OK && to_write && f->at < info.st_size && ftruncate(f->fd, f->at) < 0)
        status = failed(f, "truncate");
    return status;
}

/* ---- Writing --------------------------------------------------------------- */

/* After our own replay the file ends where we are, so one write is one record. */
static ct_status write_record(struct file_store *f, const char *head, struct bytes key,
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
        return failed(f, "write");
    f->at += (off_t)bytes;
    return CT_OK;
}

static ct_status count(struct file_store *f, const char *key, int64_t *value, int delta)
{
    char text[24];

    *value += delta;
    snprintf(text, sizeof text, "%" PRId64, *value);
    return write_record(f, key, (struct bytes){ NULL, 0 }, (struct bytes){ text, strlen(text) });
}

/* ---- Hooks ----------------------------------------------------------------- */

static ct_status lock(struct local_store *store, int to_write)
{
    struct file_store *f = (struct file_store *)store;
    ct_status status;

    while (flock(f->fd, to_write ? LOCK_EX : LOCK_SH) < 0)
        if (errno != EINTR)
            return failed(f, "flock");
    status = replay(f, to_write);
    if (status != CT_OK)
        flock(f->fd, LOCK_UN);
    return status;
}

static void unlock(struct local_store *store)
{
    flock(((struct file_store *)store)->fd, LOCK_UN);
}

static ct_status changed(struct local_store *store, struct bytes key, const struct bytes *value)
{
    struct file_store *f = (struct file_store *)store;

    return value ? write_record(f, "/", key, *value)
                 : write_record(f, "-/", key, (struct bytes){ NULL, 0 });
}

static void close_file(struct local_store *store)
{
    struct file_store *f = (struct file_store *)store;

    if (f->fd >= 0 && lock(store, 1) == CT_OK) {
        count(f, "cleanup/", &f->cleanup, 1);
        count(f, "refcount/", &f->refcount, -1);
        if (f->refcount == 0 && f->num_workers > 0 && f->cleanup >= f->num_workers)
            unlink(f->path);
        unlock(store);
    }
    if (f->fd >= 0)
        close(f->fd);
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
static ct_status open_and_count(struct file_store *f)
{
    ct_status status;

    for (int tries = 0; tries < MOST_OPENED; tries++) {
        if (f->fd >= 0)
            close(f->fd); /* and its lock is gone */
        f->fd = open(f->path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
        if (f->fd < 0)
            return failed(f, "open");
        while (flock(f->fd, LOCK_EX) < 0)
            if (errno != EINTR)
                return failed(f, "flock");
        if (!is_removed(f))
            break;
    }
    status = lock(&f->local, 1); /* the same once more, and what stands there is read */
    if (status == CT_OK) {
        status = count(f, "refcount/", &f->refcount, 1);
        unlock(&f->local);
    }
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
