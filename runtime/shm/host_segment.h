/* SPDX-License-Identifier: Apache-2.0 */
/* host_segment.h - the ranks of one host and the memory they share.
 *
 * The leader of these ranks creates one sparse memfd and sends its descriptor to the other ranks
 * over an abstract unix socket.  Nothing has a name in /dev/shm, so nothing can be left behind
 * there, collide, or be limited by its size.  Without memfd_create() the segment is a file in a
 * folder that may be full.  A write to a page for which there is no room would kill the writer, so
 * the pages of such a file are reserved before their first use.  For L ranks the segment has:
 *
 *     head            how much of the file was given to regions; a count of goodbyes
 *     doorbells[L]    see waiter.h
 *     marks[L]        for rank i: a bit for each rank that wrote to its ring to rank i
 *     goodbyes[L]     for rank i: the groups that it has destroyed (goodbye.c)
 *     rings[L][L]     counts of the bytes from rank j to rank i (link_shm.c), adjacent for all j
 *     bytes[L][L]     the bytes from rank j to rank i
 *     arenas[L]       memory of the groups whose first rank on this host is i
 *     regions         memory of ct_mem_alloc(), mapped while it is in use (shared_region.h) */
#ifndef RUNTIME_SHM_HOST_SEGMENT_H
#define RUNTIME_SHM_HOST_SEGMENT_H

#include <pthread.h>
#include <sys/types.h>

#include "runtime/shm/waiter.h"
#include "runtime/util/error.h"

/* bytes of address space; a page takes memory when it is first touched */
#define ARENA_BYTES ((size_t)512 << 20)

struct ring {
    /* The sender writes the first fields, which fill two cache lines.  The receiver polls the
     * second line, which is written last. */
    /* (stream position of the first byte in note[] << 8) + number of bytes in note[]. */
    _Alignas(CACHE_PAIR) _Atomic uint64_t noted;
    _Atomic uint64_t note[14]; /* a copy of the bytes written last, if they were few */
    _Atomic uint64_t written;  /* bytes written since the start */
    /* Bytes read since the start; written by the receiver. */
    _Alignas(CACHE_PAIR) _Atomic uint64_t read;
    _Atomic uint64_t device_cancels; /* written by the sender, rarely (device_rendezvous.c) */
};

struct node_head {
    /* Bytes given to regions since the start, behind the arenas. */
    _Alignas(CACHE_PAIR) _Atomic uint64_t given;
    _Alignas(CACHE_PAIR) _Atomic uint32_t goodbyes; /* goodbyes of all ranks since the start */
};

/* The last groups that a rank has destroyed, for ranks to which it has no connection. */
#define GOODBYES_KEPT 31
struct goodbye_log {
    _Alignas(CACHE_PAIR) _Atomic uint32_t count; /* destroyed groups since the start */
    _Atomic uint64_t channel[GOODBYES_KEPT];
};

struct region; /* defined in shared_region.c */
struct region_offer;
struct arena_block; /* a block of this rank's arena */

struct node {
    int rank, size;               /* among the ranks of this host */
    int has_processors;           /* true if the host has a processor per rank; same on all ranks */
    int *ranks;                   /* [size] the mesh ranks of this host's ranks, ascending */
    int *pidfds;                  /* [size] descriptors in the waiter's epoll set, or -1 */
    _Atomic unsigned char *ended; /* [size] flags that the waiter sets when a process has ended */
    pid_t *pids;                  /* [size] 0 if the process is not visible from here */
    unsigned char
        /* [size] true if ctrun will report the rank's death, so that a check of its process can
         * wait for the death notice */
        *ctrun_reports;
    int wake_fd;         /* this rank's wake socket */
    unsigned char *base; /* NULL if this rank is alone or memory can't be shared */
    size_t bytes;        /* bytes mapped at base: all but the regions */
    int fd;              /* descriptor of the file; -1 if base is NULL */
    int is_file;         /* true if the file is not a memfd */
    uint64_t file_bytes; /* length of the file */
    struct node_head *head;
    struct doorbell *bells;      /* [size] */
    _Atomic uint64_t *marks;     /* this rank's: [node_mark_words()] */
    struct region *regions;      /* guarded by regions_lock */
    struct region_offer *offers; /* of all running calls; guarded by regions_lock */
    _Atomic int shares_regions;  /* true once a region was made */
    pthread_rwlock_t regions_lock;
    /* Blocks of this rank's arena that are in use, or that another rank may still read. */
    struct arena_block *arena_blocks;
    pthread_mutex_t lock; /* guards arena_blocks */
};

void node_leave(struct node *node);

/* Returns the size of a ring in bytes.  Each pair of ranks has one ring for each direction.  A
 * larger ring needs fewer switches between ranks that share a processor.  Two ranks share one only
 * on a host with a single processor.  Their two rings of 512 KiB fit in a second-level cache; with
 * rings of 2 MiB messages of 64 KiB took 1.3 us in one run and 3.5 us in the next.  All rings
 * together may take 30 MiB with 8 ranks, 60 with 16 and 260 with 64.  A ring takes memory only when
 * its pair sends messages. */
static inline size_t node_ring_bytes(const struct node *node)
{
    return (size_t)(node->size <= 2    ? 512
                    : node->size <= 4  ? 1024
                    : node->size <= 8  ? 512
                    : node->size <= 16 ? 256
                                       : 64)
           << 10;
}
/* With at most so many ranks on a host, a rank reads all rings that were ever used, and a sender
 * marks a ring once.  With more ranks a sender marks a ring each time, and a rank reads only marked
 * rings, since reading hundreds of rings takes longer than a mark. */
#define RINGS_POLLED 32

struct ring *node_ring(const struct node *node, int from, int to);
static inline int node_mark_words(const struct node *node)
{
    return (node->size + 63) / 64;
}
/* Sets the bit of `from` in the marks of `to`. */
void node_mark(const struct node *node, int from, int to);
struct goodbye_log *node_goodbyes(const struct node *node, int local_rank);
unsigned char *node_ring_data(const struct node *node, int from, int to); /* [node_ring_bytes()] */
void node_ring_bell(const struct node *node, int local_rank);

/* Returns 1 if that rank's process has ended.  If ctrun writes a death notice for that
 * rank, the first check that finds the process ended still returns 0; by the second one the
 * notice has come. */
int node_peer_gone(struct node *node, int local_rank);

/* Adds a pidfd of each process to epoll_fd.  The pointer of such an event is the address of the
 * process's flag in node->ended.  Returns the number of pidfds added. */
int node_watch_processes(struct node *node, int epoll_fd);

/* Reserves pages of a file that is not a memfd.  Returns 0 or an errno. */
int node_reserve(const struct node *node, uint64_t offset, size_t bytes);

/* Allocates a block of this rank's arena and returns its offset; SIZE_MAX if the block does not
 * fit.  The block still has its old content.  After node_arena_retire() the block is free again
 * as soon as done() returns true, which means that no rank reads the block any more; each
 * allocation calls done(). */
size_t node_arena_alloc(struct node *node, size_t bytes);
/* Returns the offset of the first block in the arena of the host's first rank. */
size_t node_first_block(const struct node *node);
void node_arena_retire(struct node *node, size_t offset, int (*done)(void *memory, size_t bytes));

/* For host_segment_join.c, once node->ranks is filled in.  node_make_memory() creates and maps a
 * new file and returns its descriptor; -1 if memory can't be shared.  node_map_memory() takes over
 * fd and returns 0; -1 if the file could not be mapped. */
int node_make_memory(struct node *node);
int node_map_memory(struct node *node, int fd);
void node_unmap_memory(struct node *node);

#endif
