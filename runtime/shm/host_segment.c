/* SPDX-License-Identifier: Apache-2.0 */
/* host_segment.c - the memory that the ranks of a host share, and their ends.
 *
 * What lies where in the file is in host_segment.h; how it came to all of them in
 * host_segment_join.c.  A rank whose process is gone is seen by a pidfd. */
#include "runtime/shm/host_segment.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/shm/shared_region.h"
#include "runtime/util/file_limit.h"
#include "runtime/util/forks.h"
#include "runtime/util/log.h"

/* Of the file: mostly of what was never written, which takes no memory. */
#define MOST_FILE_BYTES ((uint64_t)1 << 60)

/* ---- The memory --------------------------------------------------------- */

static size_t ring_stride(const struct node *node)
{
    return sizeof(struct ring) + node_ring_bytes(node);
}

static size_t bells_bytes(const struct node *node)
{
    return (sizeof(struct node_head) + sizeof(struct doorbell) * (size_t)node->size + 4095) / 4096
           * 4096;
}

static size_t node_arenas_offset(const struct node *node)
{
    const size_t pairs = (size_t)node->size * (size_t)node->size;

    return (bells_bytes(node) + pairs * ring_stride(node) + 4095) / 4096 * 4096;
}

static size_t mapped_bytes(const struct node *node)
{
    return node_arenas_offset(node) + (size_t)node->size * ARENA_BYTES;
}

int node_map_memory(struct node *node, int fd)
{
    struct stat file;

    node->fd = fd;
    node->bytes = mapped_bytes(node);
    if (fstat(fd, &file) < 0 || (uint64_t)file.st_size < node->bytes)
        return -1;
    node->file_bytes = (uint64_t)file.st_size;
    node->base = memory_map(fd, 0, node->bytes);
    if (!node->base)
        return -1;
    madvise(node->base, node->bytes, MADV_DONTFORK); /* it would live on in a child */
    node->head = (struct node_head *)(void *)node->base;
    node->bells = (struct doorbell *)(void *)(node->base + sizeof *node->head);
    return 0;
}

/* As long as a file may be: where that has a limit (ulimit -f), there are no regions. */
int node_make_memory(struct node *node)
{
    const size_t bytes = mapped_bytes(node);
    int fd;

    if (node->size > NODE_MOST)
        log_line(LOG_WARN,
                 "%d ranks on this host are more than %d: their groups exchange messages, without "
                 "common memory, and ct_mem_alloc() gives each rank memory of its own",
                 node->size, NODE_MOST);
    if (memory_file("ct", MOST_FILE_BYTES, &fd) == CT_OK
        || memory_file("ct", bytes, &fd) == CT_OK) {
        if (node_map_memory(node, fd) == 0)
            return fd;
        ct_fail(CT_ERR_SYSTEM, "%zu bytes: %s", bytes, strerror(errno));
    }
    log_line(LOG_WARN, "no shared memory (%s); the ranks of this host use sockets",
             ct_last_error());
    return -1;
}

void node_unmap_memory(struct node *node)
{
    regions_free(node);
    if (node->base)
        munmap(node->base, node->bytes);
    if (node->fd >= 0)
        descriptor_close(node->fd);
    node->base = NULL;
    node->fd = -1;
}

struct ring *node_ring(const struct node *node, int from, int to)
{
    const size_t index = (size_t)from * (size_t)node->size + (size_t)to;

    return (struct ring *)(void *)(node->base + bells_bytes(node) + index * ring_stride(node));
}

void node_ring_bell(const struct node *node, int local_rank)
{
    bell_ring(&node->bells[local_rank], node->event_fds[local_rank]);
}

/* ---- This rank's arena ---------------------------------------------------------- */

struct area {
    struct area *next; /* ascending offsets */
    size_t offset, bytes;
    int (*done)(void *memory, size_t bytes); /* NULL: in use */
};

static void take_back(struct node *node)
{
    for (struct area **link = &node->areas; *link;) {
        struct area *area = *link;

        if (area->done && area->done(node->base + area->offset, area->bytes)) {
            *link = area->next;
            free(area);
        } else {
            link = &area->next;
        }
    }
}

size_t node_area_alloc(struct node *node, size_t bytes)
{
    const size_t start = node_arenas_offset(node) + (size_t)node->rank * ARENA_BYTES;
    size_t at = start;
    struct area *area = malloc(sizeof *area), **link;

    bytes = (bytes + 4095) / 4096 * 4096;
    pthread_mutex_lock(&node->lock);
    take_back(node);
    for (link = &node->areas; *link && (*link)->offset - at < bytes; link = &(*link)->next)
        at = (*link)->offset + (*link)->bytes;
    if (!area || at + bytes > start + ARENA_BYTES) {
        free(area);
        at = SIZE_MAX;
    } else {
        *area = (struct area){ *link, at, bytes, NULL };
        *link = area;
    }
    pthread_mutex_unlock(&node->lock);
    return at;
}

void node_area_retire(struct node *node, size_t offset, int (*done)(void *memory, size_t bytes))
{
    pthread_mutex_lock(&node->lock);
    for (struct area *area = node->areas; area; area = area->next)
        if (area->offset == offset)
            area->done = done;
    take_back(node);
    pthread_mutex_unlock(&node->lock);
}

static void node_areas_free(struct node *node)
{
    while (node->areas) {
        struct area *next = node->areas->next;

        free(node->areas);
        node->areas = next;
    }
}

/* ---- Ends ---------------------------------------------------------------- */

#define MOST_WATCHED 128 /* descriptors; with more ranks here, deaths are looked for */

int node_watch(struct node *node, int epoll_fd)
{
    struct epoll_event event = { .events = EPOLLIN | EPOLLONESHOT };
    int count = 0;

    for (int i = 0; i < node->size && node->size <= MOST_WATCHED; i++) {
        if (node->pids[i] <= 0 || node->pids[i] == getpid() || node->told[i])
            continue;
        node->pidfds[i] = (int)syscall(SYS_pidfd_open, node->pids[i], 0);
        descriptor_own(node->pidfds[i]);
        event.data.ptr = (void *)(uintptr_t)&node->ended[i];
        if (node->pidfds[i] >= 0)
            count += epoll_ctl(epoll_fd, EPOLL_CTL_ADD, node->pidfds[i], &event) == 0;
        else if (errno == ESRCH)
            atomic_store(&node->ended[i], 1);
    }
    return count;
}

int node_peer_gone(struct node *node, int local_rank)
{
    struct pollfd ended = { .events = POLLIN };
    int gone;

    if (atomic_load(&node->ended[local_rank]))
        return 1;
    if (node->pids[local_rank] <= 0 || node->pids[local_rank] == getpid())
        return 0;
    ended.fd = (int)syscall(SYS_pidfd_open, node->pids[local_rank], 0);
    if (ended.fd < 0) {
        gone = errno == ESRCH;
    } else {
        gone = poll(&ended, 1, 0) > 0; /* a zombie's is readable */
        close(ended.fd);
    }
    if (gone && node->told[local_rank]) {
        node->told[local_rank] = 0;
        return 0;
    }
    return gone;
}

/* ---- Life ---------------------------------------------------------------- */

void node_leave(struct node *node)
{
    node_areas_free(node);
    node_unmap_memory(node);
    for (int i = 0; node->event_fds && i < node->size; i++)
        if (node->event_fds[i] >= 0)
            descriptor_close(node->event_fds[i]);
    free(node->event_fds);
    free(node->pids);
    free(node->told);
    for (int i = 0; node->pidfds && i < node->size; i++)
        if (node->pidfds[i] >= 0)
            descriptor_close(node->pidfds[i]);
    free(node->pidfds);
    free((void *)(uintptr_t)node->ended);
    free(node->ranks);
    pthread_mutex_destroy(&node->lock);
    pthread_rwlock_destroy(&node->regions_lock);
    memset(node, 0, sizeof *node);
    node->fd = -1;
}
