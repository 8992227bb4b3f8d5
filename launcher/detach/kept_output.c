/* SPDX-License-Identifier: Apache-2.0 */
/* kept_output.c - the ring of a kept job's output, see kept_job.h.
 *
 * The writer announces in the head how far it is about to write, writes, and then announces how far
 * it has written.  A reader copies bytes and then looks whether the writer has begun to overwrite
 * them.  The ring is written by pwrite(), so that a full disk is an error and no signal.  The two
 * fences order `begun` before the writer's pwrite(), and the reader's pread() before `begun`. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "launcher/detach/kept_job.h"
#include "runtime/shm/waiter.h"

enum { HEAD = 4096 }; /* bytes of the file before the ring */

struct kept_head {
    uint64_t bound;
    _Atomic uint64_t begun; /* the bytes before this offset are written or are being written */
    _Atomic uint64_t written;
};

static int kept_output_map(struct kept_output *output, int protection)
{
    void *head = mmap(NULL, HEAD, protection, MAP_SHARED, output->fd, 0);

    if (head != MAP_FAILED) {
        output->head = head;
        return 0;
    }
    close(output->fd);
    output->fd = -1;
    return -1;
}

int kept_output_create(struct kept_output *output, const char *path, uint64_t bound)
{
    static const char head[HEAD];
    char name[PATH_MAX + 8];

    *output = (struct kept_output){ .bound = bound };
    snprintf(name, sizeof name, "%s/output", path);
    output->fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (output->fd < 0)
        return -1;
    if (pwrite(output->fd, head, HEAD, 0) != HEAD) { /* now the disk has room for it */
        close(output->fd);
        output->fd = -1;
        return -1;
    }
    if (kept_output_map(output, PROT_READ | PROT_WRITE) < 0)
        return -1;
    output->head->bound = bound;
    return 0;
}

/* Reads or writes bytes at their places in the ring.  Returns 0, or -1 with errno set. */
static int kept_output_move(const struct kept_output *output, uint64_t at, char *into,
                            const char *from, size_t size)
{
    while (size > 0) {
        const uint64_t place = at % output->bound, left = output->bound - place;
        const size_t part = size < left ? size : (size_t)left;
        const off_t offset = (off_t)(HEAD + place);
        const ssize_t moved =
            into ? pread(output->fd, into, part, offset) : pwrite(output->fd, from, part, offset);

        if (moved < 0 && errno == EINTR)
            continue;
        if (moved <= 0)
            return -1;
        at += (uint64_t)moved;
        size -= (size_t)moved;
        if (into)
            into += moved;
        else
            from += moved;
    }
    return 0;
}

int kept_output_add(struct kept_output *output, const char *bytes, size_t size)
{
    const uint64_t at = atomic_load(&output->head->written);

    atomic_store(&output->head->begun, at + size);
    bell_fence();
    if (kept_output_move(output, at, NULL, bytes, size) < 0)
        return -1;
    atomic_store(&output->head->written, at + size);
    return 0;
}

/* ---- Reading ------------------------------------------------------------------------ */

/* Returns the offset of the first byte that is kept. */
static uint64_t first_kept(const struct kept_output *output)
{
    const uint64_t begun = atomic_load(&output->head->begun);

    return begun > output->bound ? begun - output->bound : 0;
}

/* Reads bytes that are kept.  Returns 0, or -1 if the writer has overwritten some. */
static int kept_output_copy(const struct kept_output *output, uint64_t at, char *bytes, size_t size)
{
    const int moved = kept_output_move(output, at, bytes, NULL, size);

    bell_fence();
    return moved == 0 && first_kept(output) <= at ? 0 : -1;
}

/* Moves behind the next newline, if one is near. */
static void skip_line(struct kept_output *output)
{
    const uint64_t left = atomic_load(&output->head->written) - output->at;
    char bytes[4096], *newline;
    const size_t size = left < sizeof bytes ? (size_t)left : sizeof bytes;

    if (kept_output_copy(output, output->at, bytes, size) == 0
        && (newline = memchr(bytes, '\n', size)) != NULL)
        output->at += (uint64_t)(newline + 1 - bytes);
}

/* Moves back to the beginning of the last `lines` lines.  A newline at the end ends the last
 * line. */
static void seek_last_lines(struct kept_output *output, int lines)
{
    const uint64_t end = output->at;
    char bytes[4096];

    for (;;) {
        const uint64_t first = first_kept(output),
                       kept = output->at > first ? output->at - first : 0;
        const size_t size = kept < sizeof bytes ? (size_t)kept : sizeof bytes;

        if (size == 0 || kept_output_copy(output, output->at - size, bytes, size) < 0)
            break;
        for (size_t i = size; i > 0; i--, output->at--)
            if (bytes[i - 1] == '\n' && output->at != end && --lines == 0)
                return;
    }
    if (output->at > 0)
        skip_line(output);
}

int kept_output_open(struct kept_output *output, const struct kept_job *job, int lines)
{
    char name[PATH_MAX + 8];

    *output = (struct kept_output){ .fd = -1 };
    snprintf(name, sizeof name, "%s/output", job->path);
    output->fd = open(name, O_RDONLY | O_CLOEXEC);
    if (output->fd < 0 || kept_output_map(output, PROT_READ) < 0)
        return -1;
    output->bound = output->head->bound;
    output->at = atomic_load(&output->head->written);
    if (lines > 0)
        seek_last_lines(output, lines);
    else if (lines < 0) {
        output->at = first_kept(output);
        if (output->at > 0)
            skip_line(output);
    }
    return 0;
}

size_t kept_output_read(struct kept_output *output, char *bytes, size_t size)
{
    for (;;) {
        const uint64_t written = atomic_load(&output->head->written), first = first_kept(output);
        const uint64_t at = output->at;

        if (at < first) {
            output->at = first;
            skip_line(output);
            output->lost += output->at - at;
            continue;
        }
        if (at >= written)
            return 0;
        if (size > written - at)
            size = (size_t)(written - at);
        if (kept_output_copy(output, at, bytes, size) == 0) {
            output->at += size;
            return size;
        }
        if (first_kept(output) <= at)
            return 0; /* the file can't be read */
    }
}

void kept_output_close(struct kept_output *output)
{
    if (output->head)
        munmap(output->head, HEAD);
    if (output->fd >= 0)
        close(output->fd);
    *output = (struct kept_output){ .fd = -1 };
}
