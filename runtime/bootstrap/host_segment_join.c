/* SPDX-License-Identifier: Apache-2.0 */
/* host_segment_join.c - how the ranks of a host come to share memory.
 *
 * Each rank opens an abstract unix socket and an eventfd.  The leader, the host's first rank,
 * accepts one connection per follower, checks the uid that the kernel reports, and receives the
 * follower's eventfd.  When all followers are connected, it sends the memfd and all eventfds to one
 * follower after the other.  Each follower maps the memory and replies before the next one gets the
 * descriptors, since the kernel limits how many descriptors of a user may be in flight.  The leader
 * then tells all whether every rank could map the memory.  If one could not, all ranks of the host
 * use sockets. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "runtime/net/fd_passing.h"
#include "runtime/net/socket.h"
#include "runtime/shm/host_segment.h"
#include "runtime/store/tcp_store.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"

/* How long a rank waits before it checks whether the awaited rank died, or gave up because it saw
 * another rank's death while it waited at the store. */
#define CHECK_MS 3

struct hello {
    int32_t local_rank;
    int32_t can_share;
};

/* ---- The unix socket ----------------------------------------------------- */

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

/* ---- Connecting ---------------------------------------------------------- */

static ct_status died(const struct node *node, int local_rank)
{
    return ct_fail(CT_ERR_PEER, "rank %d ended before it could share memory",
                   node->ranks[local_rank]);
}

static ct_status accept_failed(const struct node *node, ct_status status)
{
    char limit[48];

    return status != CT_ERR_SYSTEM || errno != EMFILE
               ? status
               : ct_fail(status,
                         "no descriptors are left: the first of %d ranks on a host needs two for "
                         "each of the others (%s)",
                         node->size, descriptor_limit(limit, sizeof limit));
}

/* The next follower that connects, unless one of the missing ones is dead. */
static ct_status accept_follower(struct node *node, ct_store *store, int listener,
                                 const int *sockets, int64_t deadline, int *socket)
{
    ct_status status;

    do {
        status = socket_accept(listener, clock_ms() + time_left_ms(deadline, CHECK_MS), socket);
        if (status != CT_ERR_TIMEOUT)
            return accept_failed(node, status);
        for (int i = 1; i < node->size; i++)
            if (sockets[i] < 0 && node_peer_gone(node, i))
                return died(node, i);
        if (store_check_deaths(store) != CT_OK)
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
        if (store_check_deaths(store) != CT_OK)
            return CT_ERR_PEER;
        poll(NULL, 0, CHECK_MS);
    } while (clock_ms() < deadline);
    return status;
}

/* ---- The leader ---------------------------------------------------------- */

/* If descriptors can't be passed, the ranks of this host use sockets. */
static ct_status or_use_sockets(ct_status status, int *can_share)
{
    if (status != CT_ERR_UNSUPPORTED)
        return status;
    log_line(LOG_WARN, "no shared memory (%s); the ranks of this host use sockets",
             ct_last_error());
    *can_share = 0;
    return CT_OK;
}

/* Accepts all followers and receives their eventfds. */
static ct_status gather(struct node *node, ct_store *store, int listener, int *sockets,
                        int64_t deadline, int *can_share)
{
    int missing = node->size - 1;

    while (missing > 0) {
        struct hello follower;
        int socket;
        uid_t uid;
        ct_status status = accept_follower(node, store, listener, sockets, deadline, &socket);

        if (status != CT_OK)
            return status;
        status = socket_peer(socket, NULL, &uid);
        if (status == CT_OK && uid != geteuid()) {
            close(socket); /* another user's process */
            continue;
        }
        if (status == CT_OK)
            status = socket_read_all(socket, &follower, sizeof follower, deadline);
        if (status == CT_OK
            && (follower.local_rank < 1 || follower.local_rank >= node->size
                || sockets[follower.local_rank] >= 0))
            status = ct_fail(CT_ERR_MISMATCH, "two ranks of this host say that they are the same "
                                              "one");
        if (status != CT_OK) {
            close(socket);
            return status;
        }
        sockets[follower.local_rank] = socket;
        status = or_use_sockets(
            recv_fds(socket, &node->event_fds[follower.local_rank], 1, deadline), can_share);
        if (status != CT_OK)
            return status;
        missing--;
    }
    return CT_OK;
}

/* Sends the memory, if there is any, and all eventfds; then reads whether the follower mapped it.
 */
static ct_status send_segment(const struct node *node, int memory, int socket, int64_t deadline,
                              int *can_share)
{
    const struct hello hello = { 0, *can_share };
    struct hello follower;
    ct_status status = socket_write_all(socket, &hello, sizeof hello, deadline);

    if (status == CT_OK && hello.can_share)
        status = send_fds(socket, &memory, 1, deadline);
    if (status == CT_OK && hello.can_share)
        status = send_all_fds(socket, node->event_fds, node->size, deadline);
    status = or_use_sockets(status, can_share);
    if (status == CT_OK)
        status = socket_read_all(socket, &follower, sizeof follower, deadline);
    if (status == CT_OK)
        *can_share &= follower.can_share;
    return status;
}

/* All ranks get the same result: each says whether it could, the leader whether all could. */
static ct_status lead(struct node *node, ct_store *store, struct node_door *door, int *sockets,
                      int64_t deadline, int *shared)
{
    const int memory = node_make_memory(node);
    int can_share = memory >= 0;
    struct hello hello = { 0, 0 };
    ct_status status = gather(node, store, door->listener, sockets, deadline, &can_share);

    for (int i = 1; i < node->size && status == CT_OK; i++)
        status = send_segment(node, memory, sockets[i], deadline, &can_share);
    hello.can_share = can_share;
    for (int i = 1; i < node->size && status == CT_OK; i++)
        status = socket_write_all(sockets[i], &hello, sizeof hello, deadline);
    *shared = can_share;
    return status;
}

/* ---- A follower ---------------------------------------------------------- */

/* Receives what the leader sends.  That includes our own eventfd, which we have already. */
static ct_status receive_segment(struct node *node, int socket, int64_t deadline, int *memory)
{
    int *received = &node->event_fds[node->rank];
    const int own = *received;
    ct_status status = recv_fds(socket, memory, 1, deadline);

    *received = -1;
    if (status == CT_OK)
        status = recv_all_fds(socket, node->event_fds, node->size, deadline);
    if (*received >= 0)
        close(*received);
    *received = own;
    return status;
}

static ct_status follow(struct node *node, ct_store *store, const char *leader_name, int *sockets,
                        int64_t deadline, int *shared)
{
    struct hello me = { node->rank, 0 }, leader;
    uid_t uid;
    int fd = -1, can_share = 1;
    ct_status status = connect_leader(node, store, leader_name, deadline, &sockets[0]);

    if (status == CT_OK)
        status = socket_peer(sockets[0], NULL, &uid);
    if (status == CT_OK && uid != geteuid())
        return ct_fail(CT_ERR_INVALID, "uid %u listens where rank %d of this job should",
                       (unsigned)uid, node->ranks[0]);
    if (status == CT_OK)
        status = socket_write_all(sockets[0], &me, sizeof me, deadline);
    if (status == CT_OK)
        status = or_use_sockets(send_fds(sockets[0], &node->event_fds[node->rank], 1, deadline),
                                &can_share);
    if (status == CT_OK)
        status = socket_read_all(sockets[0], &leader, sizeof leader, deadline);
    if (status == CT_OK && leader.can_share)
        status = or_use_sockets(receive_segment(node, sockets[0], deadline, &fd), &can_share);
    if (status == CT_OK) {
        me.can_share = can_share && leader.can_share && node_map_memory(node, fd) == 0;
        status = socket_write_all(sockets[0], &me, sizeof me, deadline);
    }
    if (status == CT_OK)
        status = socket_read_all(sockets[0], &leader, sizeof leader, deadline);
    if (fd >= 0 && node->fd != fd)
        close(fd);
    *shared = status == CT_OK && leader.can_share;
    return status;
}

/* ---- Both ---------------------------------------------------------------- */

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
        node_unmap_memory(node);
    return CT_OK;
}
