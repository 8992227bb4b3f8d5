/* SPDX-License-Identifier: Apache-2.0 */
/* node.c - sharing memory with the ranks of the same host.
 *
 * Each rank opens a door (an unnamed-to-the-file-system unix socket) and an
 * eventfd.  The leader accepts one connection per follower, checks the uid the
 * kernel reports, takes the follower's eventfd, and when all are there sends
 * everybody the memfd and all eventfds.  A follower maps it and says so; only
 * when all could does the leader say "go".  One failure, and the whole node
 * uses sockets: a map that worked decides, not a variable. */
#include "runtime/node.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/clock.h"
#include "runtime/descriptors.h"
#include "runtime/file_size.h"
#include "runtime/log.h"
#include "runtime/region.h"
#include "runtime/socket.h"
#include "runtime/store/store.h"

/* Of the file: mostly of what was never written, which takes no memory. */
#define MOST_FILE_BYTES ((uint64_t)1 << 60)

struct hello {
    int32_t local_rank;
    int32_t can_share;
};

ct_status node_door_open(struct node_door *door)
{
    door->listener = -1;
    door->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (door->event_fd < 0)
        return ct_fail(CT_ERR_SYSTEM, "eventfd: %s", strerror(errno));
    if (socket_listen_unix(NULL, &door->listener) != CT_OK
        || socket_unix_name(door->listener, door->name, sizeof door->name) != CT_OK) {
        node_door_close(door);
        return CT_ERR_SYSTEM;
    }
    return CT_OK;
}

void node_door_close(struct node_door *door)
{
    if (door->listener >= 0)
        close(door->listener);
    if (door->event_fd >= 0)
        close(door->event_fd);
    door->listener = door->event_fd = -1;
}

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

size_t node_arenas_offset(const struct node *node)
{
    const size_t pairs = (size_t)node->size * (size_t)node->size;

    return (bells_bytes(node) + pairs * ring_stride(node) + 4095) / 4096 * 4096;
}

static size_t mapped_bytes(const struct node *node)
{
    return node_arenas_offset(node) + (size_t)node->size * ARENA_BYTES;
}

/* Takes over fd. */
static int map_memory(struct node *node, int fd)
{
    struct stat file;
    void *base;

    node->fd = fd;
    node->bytes = mapped_bytes(node);
    if (fstat(fd, &file) < 0 || (uint64_t)file.st_size < node->bytes)
        return -1;
    node->file_bytes = (uint64_t)file.st_size;
    base = mmap(NULL, node->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (base == MAP_FAILED)
        return -1;
    node->base = base;
    node->head = base;
    node->bells = (struct doorbell *)(void *)(node->base + sizeof *node->head);
    return 0;
}

/* As long as a file may be: where that has a limit (ulimit -f), there are no regions. */
static int make_memory(struct node *node)
{
    const size_t bytes = mapped_bytes(node);
    int fd;

    if (memory_file("ct", 0, MOST_FILE_BYTES, &fd) == CT_OK
        || memory_file("ct", 0, bytes, &fd) == CT_OK) {
        if (map_memory(node, fd) == 0)
            return fd;
        ct_fail(CT_ERR_SYSTEM, "%zu bytes: %s", bytes, strerror(errno));
    }
    log_line(LOG_WARN, "no shared memory (%s); the ranks of this host use sockets",
             ct_last_error());
    return -1;
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

#define MOST_WATCHED 128 /* descriptors; with more ranks here, deaths are looked for */

int node_watch(struct node *node, int epoll_fd)
{
    struct epoll_event event = { .events = EPOLLIN | EPOLLONESHOT };
    int count = 0;

    for (int i = 0; i < node->size && node->size <= MOST_WATCHED; i++) {
        if (node->pids[i] <= 0 || node->pids[i] == getpid() || node->told[i])
            continue;
        node->pidfds[i] = (int)syscall(SYS_pidfd_open, node->pids[i], 0);
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

/* ---- Joining ------------------------------------------------------------- */

/* Who is waited for may have died, or live and have given up, since it knew of another's death
 * when it was still at the store. */
#define GLANCE_MS 3

static ct_status died(const struct node *node, int local_rank)
{
    return ct_fail(CT_ERR_PEER, "rank %d ended before it could share memory",
                   node->ranks[local_rank]);
}

/* The next one that connects, unless one of those that are to come is dead. */
static ct_status accept_follower(struct node *node, ct_store *store, int listener,
                                 const int *sockets, int64_t deadline, int *socket)
{
    ct_status status;

    do {
        status = socket_accept(listener, clock_ms() + time_left_ms(deadline, GLANCE_MS), socket);
        if (status != CT_ERR_TIMEOUT)
            return status;
        for (int i = 1; i < node->size; i++)
            if (sockets[i] < 0 && node_peer_gone(node, i))
                return died(node, i);
        if (store_look(store) != CT_OK)
            return CT_ERR_PEER;
    } while (clock_ms() < deadline);
    return status;
}

static ct_status connect_leader(struct node *node, ct_store *store, const char *name,
                                int64_t deadline, int *socket)
{
    ct_status status;

    do {
        status = socket_connect_unix(name, clock_ms(), socket); /* once */
        if (status != CT_ERR_TIMEOUT)
            return status;
        if (node_peer_gone(node, 0))
            return died(node, 0);
        if (store_look(store) != CT_OK)
            return CT_ERR_PEER;
        poll(NULL, 0, GLANCE_MS);
    } while (clock_ms() < deadline);
    return status;
}

/* All ranks learn the same verdict: each says whether it could, the leader whether all could. */
static ct_status lead(struct node *node, ct_store *store, struct node_door *door, int *sockets,
                      int64_t deadline, int *shared)
{
    int fd = make_memory(node);
    struct hello hello = { 0, fd >= 0 }, follower;
    uid_t uid;
    ct_status status = CT_OK;

    for (int i = 1; i < node->size && status == CT_OK; i++) {
        int socket;

        status = accept_follower(node, store, door->listener, sockets, deadline, &socket);
        if (status != CT_OK)
            break;
        status = socket_peer(socket, NULL, &uid);
        if (status == CT_OK && uid != geteuid()) {
            close(socket);
            i--; /* a stranger: as if it had never come */
            continue;
        }
        if (status == CT_OK)
            status = socket_read_all(socket, &follower, sizeof follower, deadline);
        if (status != CT_OK || follower.local_rank < 1 || follower.local_rank >= node->size
            || sockets[follower.local_rank] >= 0) {
            close(socket);
            return status != CT_OK ? status
                                   : ct_fail(CT_ERR_MISMATCH, "two ranks of this host say that "
                                                              "they are the same one");
        }
        sockets[follower.local_rank] = socket;
        status = recv_fds(socket, &node->event_fds[follower.local_rank], 1, deadline);
    }
    for (int i = 1; i < node->size && status == CT_OK; i++) {
        status = socket_write_all(sockets[i], &hello, sizeof hello, deadline);
        if (status == CT_OK && fd >= 0)
            status = send_fds(sockets[i], &fd, 1);
        if (status == CT_OK)
            status = send_all_fds(sockets[i], node->event_fds, node->size);
    }
    for (int i = 1; i < node->size && status == CT_OK; i++) {
        status = socket_read_all(sockets[i], &follower, sizeof follower, deadline);
        hello.can_share &= follower.can_share;
    }
    for (int i = 1; i < node->size && status == CT_OK; i++)
        status = socket_write_all(sockets[i], &hello, sizeof hello, deadline);
    *shared = hello.can_share;
    return status;
}

static ct_status follow(struct node *node, ct_store *store, const char *leader_name, int *sockets,
                        int64_t deadline, int *shared)
{
    struct hello me = { node->rank, 0 }, leader;
    uid_t uid;
    int fd = -1, own = node->event_fds[node->rank];
    ct_status status = connect_leader(node, store, leader_name, deadline, &sockets[0]);

    if (status == CT_OK)
        status = socket_peer(sockets[0], NULL, &uid);
    if (status == CT_OK && uid != geteuid())
        return ct_fail(CT_ERR_INVALID, "uid %u listens where rank %d of this job should",
                       (unsigned)uid, node->ranks[0]);
    if (status == CT_OK)
        status = socket_write_all(sockets[0], &me, sizeof me, deadline);
    if (status == CT_OK)
        status = send_fds(sockets[0], &own, 1);
    if (status == CT_OK)
        status = socket_read_all(sockets[0], &leader, sizeof leader, deadline);
    if (status == CT_OK && leader.can_share)
        status = recv_fds(sockets[0], &fd, 1, deadline);
    if (status == CT_OK) {
        node->event_fds[node->rank] = -1; /* replaced by the copy that comes back */
        close(own);
        status = recv_all_fds(sockets[0], node->event_fds, node->size, deadline);
    }
    if (status == CT_OK) {
        me.can_share = fd >= 0 && map_memory(node, fd) == 0;
        status = socket_write_all(sockets[0], &me, sizeof me, deadline);
    }
    if (status == CT_OK)
        status = socket_read_all(sockets[0], &leader, sizeof leader, deadline);
    if (fd >= 0 && node->fd != fd)
        close(fd);
    *shared = status == CT_OK && leader.can_share;
    return status;
}

static void unmap_memory(struct node *node)
{
    regions_free(node);
    if (node->base)
        munmap(node->base, node->bytes);
    if (node->fd >= 0)
        close(node->fd);
    node->base = NULL;
    node->fd = -1;
}

ct_status node_join(struct node *node, ct_store *store, struct node_door *door,
                    const char *leader_name, int64_t deadline, int *shared)
{
    int *sockets = malloc(sizeof *sockets * (size_t)node->size);
    ct_status status;

    *shared = 0;
    if (!sockets)
        return ct_fail(CT_ERR_NOMEM, "no memory to join the ranks of this host");
    for (int i = 0; i < node->size; i++)
        sockets[i] = -1;
    node->event_fds[node->rank] = door->event_fd;
    door->event_fd = -1;
    status = node->rank == 0 ? lead(node, store, door, sockets, deadline, shared)
                             : follow(node, store, leader_name, sockets, deadline, shared);
    for (int i = 0; i < node->size; i++)
        if (sockets[i] >= 0)
            close(sockets[i]);
    free(sockets);
    node_door_close(door);
    if (status != CT_OK)
        return ct_fail_in(status, "sharing memory on this host: ");
    if (!*shared)
        unmap_memory(node);
    return CT_OK;
}

void node_leave(struct node *node)
{
    node_areas_free(node);
    unmap_memory(node);
    for (int i = 0; node->event_fds && i < node->size; i++)
        if (node->event_fds[i] >= 0)
            close(node->event_fds[i]);
    free(node->event_fds);
    free(node->pids);
    free(node->told);
    for (int i = 0; node->pidfds && i < node->size; i++)
        if (node->pidfds[i] >= 0)
            close(node->pidfds[i]);
    free(node->pidfds);
    free((void *)(uintptr_t)node->ended);
    free(node->ranks);
    pthread_mutex_destroy(&node->lock);
    pthread_rwlock_destroy(&node->regions_lock);
    memset(node, 0, sizeof *node);
    node->fd = -1;
}
