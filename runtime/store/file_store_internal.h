/* SPDX-License-Identifier: Apache-2.0 */
/* file_store_internal.h - what file_store.c and file_store_log.c share. */
#ifndef RUNTIME_STORE_FILE_STORE_INTERNAL_H
#define RUNTIME_STORE_FILE_STORE_INTERNAL_H

#include <sys/types.h>

#include "runtime/store/local_store.h"

struct file_store {
    struct local_store local;
    char *path;
    int fd;
    off_t at; /* replayed up to here */
    int num_workers;
    int counted; /* in refcount, by this store */
    int64_t refcount, cleanup;
};

/* The system said no, by errno, to `what`. */
ct_status file_failed(const struct file_store *f, const char *what);

/* Under the file's lock, an exclusive one where to_write is set. */
ct_status file_replay(struct file_store *f, int to_write);

/* Under the exclusive lock, after a replay.  head: "/", "-/" or a key of the book-keeping. */
ct_status file_write(struct file_store *f, const char *head, struct bytes key, struct bytes value);
/* value is f's refcount or cleanup, and key its name. */
ct_status file_count(struct file_store *f, const char *key, int64_t *value, int delta);

#endif
