/* SPDX-License-Identifier: Apache-2.0 */
/* file_store_log.c - the log of PyTorch's FileStore: records that everybody replays.
 *
 *   u32 key length, key, u32 value length, value      little-endian
 *   "/key" value       a key of the API               "-/key" ""   its deletion
 *   "refcount/", "cleanup/"   how many have it open, and how many ever closed it
 *
 * file_replay() reads what others wrote since the last time into the map, file_write() adds one
 * record behind it; file_store.c has the lock for both. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/store/file_store_internal.h"
#include "runtime/util/file_limit.h"

#define MOST_BYTES (1u << 30) /* of a key or a value: a longer one is not a record of ours */

ct_status file_failed(const struct file_store *f, const char *what)
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
ct_status file_replay(struct file_store *f, int to_write)
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

/* ---- Writing --------------------------------------------------------------- */

/* After our own replay the file ends where we are, so one write is one record. */
ct_status file_write(struct file_store *f, const char *head, struct bytes key, struct bytes value)
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

ct_status file_count(struct file_store *f, const char *key, int64_t *value, int delta)
{
    char text[24];

    *value += delta;
    snprintf(text, sizeof text, "%" PRId64, *value);
    return file_write(f, key, (struct bytes){ NULL, 0 }, (struct bytes){ text, strlen(text) });
}
