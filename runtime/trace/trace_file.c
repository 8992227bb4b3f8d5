/* SPDX-License-Identifier: Apache-2.0 */
/* trace_file.c - writes events over the closing line of the file, then a new closing line. */
#include "runtime/trace/trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/util/clock.h"
#include "runtime/util/memory_file.h"

static const char head[] = TRACE_FILE_HEAD, tail[] = "\n" TRACE_FILE_TAIL;

int trace_file_name(char *path, size_t room, const char *name, const char *part)
{
    const char *dot = strrchr(name, '.'), *slash = strrchr(name, '/');
    int length;

    if (!dot || dot == name || (slash && dot <= slash + 1))
        dot = name + strlen(name);
    length =
        snprintf(path, room, "%.*s%s%s%s", (int)(dot - name), name, *part ? "." : "", part, dot);
    return length < (int)room ? length : -1;
}

#define LOOK_MS 10
#define PATIENCE_MS 1000 /* a guard process of ctrun may still write the trace of a killed job */

/* Locks the file, since two writers would overwrite each other's events.  Returns an error if
 * another process holds the lock for PATIENCE_MS.  A file that does not support locks is used
 * without a lock. */
static ct_status trace_file_lock(const struct trace_file *file)
{
    const int64_t until = clock_ms() + PATIENCE_MS;
    struct stat info;

    if (fstat(file->fd, &info) < 0 || !S_ISREG(info.st_mode))
        return CT_OK;
    while (flock(file->fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK) {
        if (clock_ms() > until)
            return ct_fail(CT_ERR_SYSTEM, "trace %s: another job writes to it", file->path);
        poll(NULL, 0, LOOK_MS);
    }
    return CT_OK;
}

static ct_status trace_file_open_at(struct trace_file *file, const char *path,
                                    _Atomic int64_t *body, int flags)
{
    *file = (struct trace_file){ .path = path };
    file->body = body ? body : &file->own_body;
    /* O_NONBLOCK, since open() of a FIFO without a reader would block forever. */
    file->fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | flags, 0666);
    if (file->fd < 0)
        return ct_fail(CT_ERR_SYSTEM, "trace %s: %s", path, strerror(errno));
    if (trace_file_lock(file) == CT_OK)
        return CT_OK;
    trace_file_close(file);
    return CT_ERR_SYSTEM;
}

ct_status trace_file_open(struct trace_file *file, const char *path, _Atomic int64_t *body)
{
    ct_status status = trace_file_open_at(file, path, body, O_CREAT);

    if (status == CT_OK) {
        if (ftruncate(file->fd, 0) < 0 && errno != EINVAL) { /* EINVAL: not a regular file */
            status = ct_fail(CT_ERR_SYSTEM, "trace %s: %s", path, strerror(errno));
            trace_file_close(file);
            return status;
        }
        atomic_store(file->body, 0);
        text_add(&file->pending, head, sizeof head - 1);
        status = trace_file_settle(file);
    }
    return status;
}

ct_status trace_file_resume(struct trace_file *file, const char *path, _Atomic int64_t *body)
{
    return trace_file_open_at(file, path, body, 0);
}

struct text *trace_file_line(struct trace_file *file)
{
    const size_t first = sizeof head - 1;
    const size_t so_far = (size_t)atomic_load(file->body) + file->pending.used;

    text_add(&file->pending, ",\n", so_far > first ? 2 : 0);
    if (so_far <= first)
        text_add(&file->pending, "\n", 1);
    return &file->pending;
}

static int write_at(int fd, const char *data, size_t size, int64_t at)
{
    while (size > 0) {
        const ssize_t n = pwrite(fd, data, size, at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        data += n;
        size -= (size_t)n;
        at += n;
    }
    return 0;
}

ct_status trace_file_settle(struct trace_file *file)
{
    const int64_t body = atomic_load(file->body);
    const size_t used = file->pending.used;
    ct_status status;

    if (used == 0 || file->fd < 0) {
        file->pending.used = 0;
        return CT_OK;
    }
    text_add(&file->pending, tail, sizeof tail - 1);
    file->pending.used = 0;
    status = file_may_have((uint64_t)body + used + sizeof tail - 1);
    if (status == CT_OK
        && write_at(file->fd, file->pending.data, used + sizeof tail - 1, body) == 0) {
        atomic_store(file->body, body + (int64_t)used);
        return CT_OK;
    }
    status = status == CT_OK ? ct_fail(CT_ERR_SYSTEM, "trace %s: %s", file->path, strerror(errno))
                             : ct_fail_in(status, "trace %s: ", file->path);
    /* Restores the old closing line, so that the file stays valid JSON. */
    if (ftruncate(file->fd, body) == 0 && body > 0)
        write_at(file->fd, tail, sizeof tail - 1, body);
    trace_file_close(file);
    return status;
}

void trace_file_close(struct trace_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
    free(file->pending.data);
    file->pending = (struct text){ 0 };
}
