/* SPDX-License-Identifier: Apache-2.0 */
/* host_segment.c - the memory that the ranks of a host share, and how a rank notices that the
 * process of another rank has ended.
 *
 * host_segment.h describes the layout of the file; host_segment_join.c brings its descriptor to all
 * ranks.  A pidfd shows that the process of a rank has ended. */
#include "runtime/shm/host_segment.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/shm/shared_region.h"
#include "runtime/util/memory_file.h"
#include "runtime/util/forks.h"
#include "runtime/util/log.h"
#include "runtime/util/process_state.h"

/* Length of the file.  The file is sparse: pages that were never written take no memory. */
#define MOST_FILE_BYTES ((uint64_t)1 << 60)

/* ---- The memory --------------------------------------------------------- */

#define PAGE ((size_t)4096)

static size_t whole_pages(size_t bytes)
{
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

static size_t pairs(const struct node *node)
{
    return (size_t)node->size * (size_t)node->size;
}

static size_t marks_offset(const struct node *node)
{
    return sizeof(struct node_head) + sizeof(struct doorbell) * (size_t)node->size;
}

/* Returns the bytes from one rank's marks to the next rank's.  The marks of two ranks share
 * no cache line. */
static size_t marks_stride(const struct node *node)
{
    const size_t bytes = (size_t)node_mark_words(node) * sizeof(uint64_t);

    return (bytes + CACHE_PAIR - 1) / CACHE_PAIR * CACHE_PAIR;
}

static size_t goodbyes_offset(const struct node *node)
{
    return whole_pages(marks_offset(node) + (size_t)node->size * marks_stride(node));
}

static size_t rings_offset(const struct node *node)
{
    return whole_pages(goodbyes_offset(node) + (size_t)node->size * sizeof(struct goodbye_log));
}

/* Returns the bytes from one ring's data to the next ring's: one page more than a ring, since
 * otherwise all rings would begin in the same lines of the caches. */
static size_t data_stride(const struct node *node)
{
    return node_ring_bytes(node) + PAGE;
}

static size_t data_offset(const struct node *node)
{
    return rings_offset(node) + whole_pages(pairs(node) * sizeof(struct ring));
}

static size_t arenas_offset(const struct node *node)
{
    return data_offset(node) + pairs(node) * data_stride(node);
}

static size_t mapped_bytes(const struct node *node)
{
    return arenas_offset(node) + (size_t)node->size * ARENA_BYTES;
}

static _Atomic uint64_t *marks_of(const struct node *node, int to)
{
    return (_Atomic uint64_t *)(void *)(node->base + marks_offset(node)
                                        + (size_t)to * marks_stride(node));
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
    node->is_file = !memory_is_memfd(fd);
    madvise(node->base, node->bytes, MADV_DONTFORK); /* else children would keep the memory alive */
    node->head = (struct node_head *)(void *)node->base;
    node->bells = (struct doorbell *)(void *)(node->base + sizeof *node->head);
    node->marks = marks_of(node, node->rank);
    return 0;
}

/* The file gets the greatest length that the kernel allows.  Where `ulimit -f` forbids that, the
 * file is only as long as the mapped part, and there are no regions. */
int node_make_memory(struct node *node)
{
    const size_t bytes = mapped_bytes(node);
    int fd;

    if (node->size > NODE_MOST)
        log_line(LOG_WARN,
                 "%d ranks on this host are more than the %d that can share memory: their groups "
                 "exchange messages, and ct_mem_alloc() gives each rank its own memory",
                 node->size, NODE_MOST);
    if (memory_file("ct", MOST_FILE_BYTES, arenas_offset(node), &fd) == CT_OK
        || memory_file("ct", bytes, arenas_offset(node), &fd) == CT_OK) {
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

static size_t pair(const struct node *node, int from, int to)
{
    return (size_t)to * (size_t)node->size + (size_t)from;
}

struct ring *node_ring(const struct node *node, int from, int to)
{
    return (struct ring *)(void *)(node->base + rings_offset(node)) + pair(node, from, to);
}

/* The sender writes the ring before it sets the bit, and the receiver takes the bits before it
 * reads the rings.  So bytes that the sender writes after the receiver's read are marked for
 * its next read. */
void node_mark(const struct node *node, int from, int to)
{
    atomic_fetch_or(&marks_of(node, to)[from / 64], (uint64_t)1 << from % 64);
}

struct goodbye_log *node_goodbyes(const struct node *node, int local_rank)
{
    return (struct goodbye_log *)(void *)(node->base + goodbyes_offset(node)) + local_rank;
}

unsigned char *node_ring_data(const struct node *node, int from, int to)
{
    return node->base + data_offset(node) + pair(node, from, to) * data_stride(node);
}

void node_ring_bell(const struct node *node, int local_rank)
{
    bell_ring(&node->bells[local_rank], node->wake_fd);
}

/* ---- This rank's arena: blocks for the groups that this rank leads, by first fit ---- */

struct arena_block {
    struct arena_block *next; /* in ascending order of offsets */
    size_t offset, bytes;
    int (*done)(void *memory, size_t bytes); /* NULL while the block is in use */
};

static void reclaim(struct node *node)
{
    for (struct arena_block **link = &node->arena_blocks; *link;) {
        struct arena_block *block = *link;

        if (block->done && block->done(node->base + block->offset, block->bytes)) {
            *link = block->next;
            free(block);
        } else {
            link = &block->next;
        }
    }
}

int node_reserve(const struct node *node, uint64_t offset, size_t bytes)
{
    return node->is_file ? memory_reserve(node->fd, offset, bytes) : 0;
}

size_t node_arena_alloc(struct node *node, size_t bytes)
{
    const size_t start = arenas_offset(node) + (size_t)node->rank * ARENA_BYTES;
    size_t at = start;
    struct arena_block *block = malloc(sizeof *block), **link;

    bytes = whole_pages(bytes);
    pthread_mutex_lock(&node->lock);
    reclaim(node);
    for (link = &node->arena_blocks; *link && (*link)->offset - at < bytes; link = &(*link)->next)
        at = (*link)->offset + (*link)->bytes;
    if (!block || at + bytes > start + ARENA_BYTES || node_reserve(node, at, bytes) != 0) {
        free(block);
        at = SIZE_MAX;
    } else {
        *block = (struct arena_block){ *link, at, bytes, NULL };
        *link = block;
    }
    pthread_mutex_unlock(&node->lock);
    return at;
}

size_t node_first_block(const struct node *node)
{
    return arenas_offset(node);
}

void node_arena_retire(struct node *node, size_t offset, int (*done)(void *memory, size_t bytes))
{
    pthread_mutex_lock(&node->lock);
    for (struct arena_block *block = node->arena_blocks; block; block = block->next)
        if (block->offset == offset)
            block->done = done;
    reclaim(node);
    pthread_mutex_unlock(&node->lock);
}

static void arena_free(struct node *node)
{
    while (node->arena_blocks) {
        struct arena_block *next = node->arena_blocks->next;

        free(node->arena_blocks);
        node->arena_blocks = next;
    }
}

/* ---- Ended processes -------------------------------------------------- */

/* Most pidfds that a rank watches.  If a host has more ranks, only
 * node_peer_gone() finds deaths. */
#define MOST_WATCHED 128

int node_watch_processes(struct node *node, int epoll_fd)
{
    struct epoll_event event = { .events = EPOLLIN | EPOLLONESHOT };
    int count = 0;

    for (int i = 0; i < node->size && node->size <= MOST_WATCHED; i++) {
        if (node->pids[i] <= 0 || node->pids[i] == getpid() || node->ctrun_reports[i])
            continue;
        node->pidfds[i] = process_open(node->pids[i]);
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
    int gone;

    if (atomic_load(&node->ended[local_rank]))
        return 1;
    if (node->pids[local_rank] <= 0 || node->pids[local_rank] == getpid())
        return 0;
    gone = process_has_ended(node->pids[local_rank]);
    if (gone && node->ctrun_reports[local_rank]) {
        node->ctrun_reports[local_rank] = 0;
        return 0;
    }
    return gone;
}

/* ---- Cleaning up ------------------------------------------------------ */

void node_leave(struct node *node)
{
    arena_free(node);
    node_unmap_memory(node);
    if (node->wake_fd >= 0)
        descriptor_close(node->wake_fd);
    free(node->pids);
    free(node->ctrun_reports);
    for (int i = 0; node->pidfds && i < node->size; i++)
        if (node->pidfds[i] >= 0)
            descriptor_close(node->pidfds[i]);
    free(node->pidfds);
    free((void *)(uintptr_t)node->ended);
    free(node->ranks);
    pthread_mutex_destroy(&node->lock);
    pthread_rwlock_destroy(&node->regions_lock);
    memset(node, 0, sizeof *node);
    node->fd = node->wake_fd = -1;
}
