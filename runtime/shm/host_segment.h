/* SPDX-License-Identifier: Apache-2.0 */
/* host_segment.h - the ranks of one host and the memory they share.
 *
 * The first of them makes one memfd, sparse, and hands it to the others over
 * an abstract unix socket, together with everybody's eventfd.  Nothing has a
 * name in /dev/shm, so nothing can leak or collide or be too small there.
 * What lies in it, for L ranks:
 *
 *     head                     one word: how much of the file was given to regions
 *     doorbells[L]             waiter.h
 *     rings[L][L]              link_shm.c: the bytes from rank i to rank j
 *     arenas[L]                areas of the groups whose first rank here is i
 *     regions                  shared_region.h: memory of ct_mem_alloc(), mapped while it is in use
 */
#ifndef RUNTIME_SHM_HOST_SEGMENT_H
#define RUNTIME_SHM_HOST_SEGMENT_H

#include <pthread.h>
#include <sys/types.h>

#include "runtime/shm/waiter.h"
#include "runtime/util/error.h"

#define ARENA_BYTES ((size_t)512 << 20) /* of address space; memory is taken when touched */

struct ring {
    /* By the sender; two lines, of which the receiver polls the second, which is written last. */
    _Alignas(CACHE_PAIR) _Atomic uint64_t noted; /* bytes of note[], and << 8 where they begin */
    _Atomic uint64_t note[14];                   /* the bytes written last, if they were few */
    _Atomic uint64_t written;                    /* bytes ever */
    _Alignas(CACHE_PAIR) _Atomic uint64_t read;  /* by the receiver */
    _Atomic uint64_t device_cancels;           /* by the sender, hardly ever: device_rendezvous.c */
    _Alignas(CACHE_PAIR) unsigned char data[]; /* node_ring_bytes() */
};

struct node_head {
    _Alignas(CACHE_PAIR) _Atomic uint64_t given; /* bytes behind the arenas, ever */
};

struct region; /* shared_region.c */
struct region_offer;
struct area; /* a piece of the own arena */

struct node {
    int rank, size;               /* among the ranks of this host */
    int *ranks;                   /* [size] their ranks in the mesh, ascending */
    int *pidfds;                  /* [size] watched by the waiter; -1 */
    _Atomic unsigned char *ended; /* [size] seen by the waiter to have ended */
    pid_t *pids;                  /* [size] 0: not to be seen from here */
    unsigned char
        *told;      /* [size] ctrun tells of its death, so that a look can wait for its words */
    int *event_fds; /* [size] */
    unsigned char *base; /* NULL: alone, or memory can't be shared */
    size_t bytes;        /* mapped at base: all but the regions */
    int fd;              /* of the file; -1: base is NULL */
    uint64_t file_bytes; /* of which it has so many */
    struct node_head *head;
    struct doorbell *bells;      /* [size] */
    struct region *regions;      /* under regions_lock, */
    struct region_offer *offers; /* as are these: all calls' */
    _Atomic int shares_regions;  /* there was one */
    pthread_rwlock_t regions_lock;
    struct area *areas;   /* of the own arena, in use or waiting for their last reader */
    pthread_mutex_t lock; /* over areas */
};

/* Before the others are known: the socket to hand out or take the memory, and the own eventfd. */
struct node_door {
    int listener;
    int event_fd;
    char name[64]; /* of the listener, to be told to the others */
};

ct_status node_door_open(struct node_door *door);
void node_door_close(struct node_door *door);

/* store: where the ranks met, which knows whose death ends this.  leader_name: the door of
 * ranks[0].  Takes over door's descriptors.  When memory can't be shared, every rank of the node
 * gets *shared == 0 and CT_OK. */
ct_status node_join(struct node *node, ct_store *store, struct node_door *door,
                    const char *leader_name, int64_t deadline, int *shared);
void node_leave(struct node *node);

/* Of each pair and way.  The larger the fewer changes of ranks that share a processor, and the less
 * of it lies in the reader's cache when it is written again (shm_group.c); but the rings of
 * all pairs may be touched, 30 MiB of 8 ranks, 60 of 16, 260 of 64. */
static inline size_t node_ring_bytes(const struct node *node)
{
    return (size_t)(node->size <= 2    ? 2048
                    : node->size <= 4  ? 1024
                    : node->size <= 8  ? 512
                    : node->size <= 16 ? 256
                                       : 64)
           << 10;
}
struct ring *node_ring(const struct node *node, int from, int to);
void node_ring_bell(const struct node *node, int local_rank);

/* 1 if that rank's process is seen to be gone; if ctrun is to tell how it ended, only at the
 * second look: by then it would have told. */
int node_peer_gone(struct node *node, int local_rank);

/* Lets epoll_fd tell of the ends of their processes, by a pointer to the flag in ->ended.  How
 * many. */
int node_watch(struct node *node, int epoll_fd);

/* A piece of the own arena, its old content in it; SIZE_MAX: none left.  It is taken back when
 * `done` says that no rank looks at it any more, asked at the next allocation. */
size_t node_area_alloc(struct node *node, size_t bytes);
void node_area_retire(struct node *node, size_t offset, int (*done)(void *memory, size_t bytes));

/* For host_segment_join.c.  To make: the file, mapped, or -1 where memory can't be shared.  To map:
 * takes over fd; -1: it can't. */
int node_make_memory(struct node *node);
int node_map_memory(struct node *node, int fd);
void node_unmap_memory(struct node *node);

#endif
