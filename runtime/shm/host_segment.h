/* SPDX-License-Identifier: Apache-2.0 */
/* host_segment.h - the ranks of one host and the memory they share.
 *
 * Their leader makes one sparse memfd and sends its descriptor to the others over an abstract unix
 * socket.  Nothing has a name in /dev/shm, so nothing can be left behind there, collide, or be
 * limited by its size.  The segment has, for L ranks:
 *
 *     head                     how much of the file was given to regions; a count of goodbyes
 *     doorbells[L]             waiter.h
 *     marks[L]                 bits: the ranks that wrote to their rings to rank i
 *     goodbyes[L]              the groups that rank i has destroyed: goodbye.c
 *     rings[L][L]              link_shm.c: the counts of the bytes from rank j to rank i, which lie
 *                              side by side for all j
 *     bytes[L][L]              and these bytes
 *     arenas[L]                memory of the groups whose first rank here is i
 *     regions                  shared_region.h: memory of ct_mem_alloc(), mapped while it is in use
 */
#ifndef RUNTIME_SHM_HOST_SEGMENT_H
#define RUNTIME_SHM_HOST_SEGMENT_H

#include <pthread.h>
#include <sys/types.h>

#include "runtime/shm/waiter.h"
#include "runtime/util/error.h"

/* of address space; pages are taken when they are touched */
#define ARENA_BYTES ((size_t)512 << 20)

struct ring {
    /* Written by the sender: two cache lines.  The receiver polls the second one, which is
     * written last. */
    /* number of bytes in note[], plus << 8 the position in the stream at which they begin */
    _Alignas(CACHE_PAIR) _Atomic uint64_t noted;
    _Atomic uint64_t note[14]; /* a copy of the bytes written last, if they were few */
    _Atomic uint64_t written;  /* bytes written since the start */
    /* bytes read since the start; written by the receiver */
    _Alignas(CACHE_PAIR) _Atomic uint64_t read;
    _Atomic uint64_t device_cancels; /* written by the sender, rarely: device_rendezvous.c */
};

struct node_head {
    /* bytes given away behind the arenas since the start */
    _Alignas(CACHE_PAIR) _Atomic uint64_t given;
    _Alignas(CACHE_PAIR) _Atomic uint32_t goodbyes; /* of all ranks, since the start */
};

/* The last groups that a rank has destroyed, for ranks to which it has no connection. */
#define GOODBYES_KEPT 31
struct goodbye_log {
    _Alignas(CACHE_PAIR) _Atomic uint32_t count; /* since the start */
    _Atomic uint64_t channel[GOODBYES_KEPT];
};

struct region; /* shared_region.c */
struct region_offer;
struct arena_block; /* a block of the own arena */

struct node {
    int rank, size;               /* among the ranks of this host */
    int has_processors;           /* the host has one for each of its ranks; equal on all */
    int *ranks;                   /* [size] their ranks in the mesh, ascending */
    int *pidfds;                  /* [size] descriptors in the epoll set of the waiter; -1: none */
    _Atomic unsigned char *ended; /* [size] flags that the waiter sets when a process has ended */
    pid_t *pids;                  /* [size] 0: not visible from here */
    unsigned char
        /* [size] ctrun will write a death notice of it, so a check of its process can wait for
         * that */
        *ctrun_reports;
    int wake_fd;         /* the wake socket of this rank */
    unsigned char *base; /* NULL: this rank is alone, or memory can't be shared */
    size_t bytes;        /* mapped at base: everything but the regions */
    int fd;              /* descriptor of the file; -1: base is NULL */
    uint64_t file_bytes; /* length of the file */
    struct node_head *head;
    struct doorbell *bells;      /* [size] */
    _Atomic uint64_t *marks;     /* this rank's: [node_mark_words()] */
    struct region *regions;      /* these two under regions_lock */
    struct region_offer *offers; /* of all calls that run */
    _Atomic int shares_regions;  /* a region was ever made */
    pthread_rwlock_t regions_lock;
    /* of the own arena: in use, or until their last reader has left */
    struct arena_block *arena_blocks;
    pthread_mutex_t lock; /* over arena_blocks */
};

void node_leave(struct node *node);

/* Size of the ring for each pair of ranks and direction.  Larger rings need fewer switches
 * between ranks that share a processor, and less of a ring is still in the reader's cache when
 * it is written again (slots.c).  But the rings of all pairs may be touched: 30 MiB with 8
 * ranks, 60 with 16, 260 with 64.  A pair that sends nothing costs nothing. */
static inline size_t node_ring_bytes(const struct node *node)
{
    return (size_t)(node->size <= 2    ? 2048
                    : node->size <= 4  ? 1024
                    : node->size <= 8  ? 512
                    : node->size <= 16 ? 256
                                       : 64)
           << 10;
}
/* With at most so many ranks on a host, a rank reads all rings that were ever used, and a sender
 * marks a ring once.  With more ranks a sender marks a ring each time, and a rank reads only marked
 * rings: reading hundreds of rings takes longer than a mark. */
#define RINGS_POLLED 32

struct ring *node_ring(const struct node *node, int from, int to);
static inline int node_mark_words(const struct node *node)
{
    return (node->size + 63) / 64;
}
/* Sets the bit of `from` at `to`. */
void node_mark(const struct node *node, int from, int to);
struct goodbye_log *node_goodbyes(const struct node *node, int local_rank);
unsigned char *node_ring_data(const struct node *node, int from, int to); /* node_ring_bytes() */
void node_ring_bell(const struct node *node, int local_rank);

/* 1: that rank's process has ended.  If ctrun writes a notice of how it ended, only the second
 * check returns 1: by then the notice has come. */
int node_peer_gone(struct node *node, int local_rank);
int process_has_ended(pid_t pid); /* in our pid name space; 1 for a zombie too */

/* Adds a pidfd of each process to epoll_fd; an event's pointer is the address of the flag in
 * ->ended.  Returns how many were added. */
int node_watch_processes(struct node *node, int epoll_fd);

/* A block of the own arena, whose old content is still in it; SIZE_MAX: there is no room.  After
 * node_arena_retire() it is free again as soon as `done` says that no rank reads it any more;
 * each allocation checks that. */
size_t node_arena_alloc(struct node *node, size_t bytes);
/* Where the first block of the arena of the host's first rank begins. */
size_t node_first_block(const struct node *node);
void node_arena_retire(struct node *node, size_t offset, int (*done)(void *memory, size_t bytes));

/* For host_segment_join.c, when ->ranks is filled in.  node_make_memory() returns the descriptor of
 * a new file, mapped, or -1 where memory can't be shared.  node_map_memory() takes over fd; -1: it
 * could not be mapped. */
int node_make_memory(struct node *node);
int node_map_memory(struct node *node, int fd);
void node_unmap_memory(struct node *node);

#endif
