/* SPDX-License-Identifier: Apache-2.0 */
/* host_leader.c - elects the leader of a host, and transfers messages between the leader and its
 * followers.
 *
 * Each rank tries to set its own rank and socket under the host's key with compare_set.  The first
 * rank succeeds and leads the host, and the other ranks get the leader's rank and socket as the
 * answer.  Each message of the leader starts with a head.  The head tells whether data or the error
 * message of a failure follows. */
#include "runtime/bootstrap/host_leader.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/net/fd_passing.h"
#include "runtime/net/socket.h"
#include "runtime/store/tcp_store.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"
#include "runtime/util/process_state.h"

/* The time, in ms, between two checks of a waiting rank.  The rank checks whether the awaited rank
 * has died, or has given up because another rank died. */
#define CHECK_MS 3
#define KEY_BYTES 128
#define WORDS 512        /* size of an error message */
#define FAREWELL_MS 1000 /* longest time to send a follower the leader's failure */

struct leader_head {
    int32_t status;
    uint32_t bytes; /* size of the data or the error message */
};

/* ---- Election ------------------------------------------------------------------ */

static ct_status read_leader(struct host_leader *leader, const char *text, size_t bytes, int rank)
{
    char value[128] = "";

    memcpy(value, text, bytes < sizeof value ? bytes : sizeof value - 1);
    if (sscanf(value, "%d %63s %d %d", &leader->rank, leader->name, &leader->pid, &leader->size)
            != 4
        || leader->rank < 0)
        return ct_fail(CT_ERR_MISMATCH, "the first rank of this host speaks another version of "
                                        "libct");
    leader->is_self = leader->rank == rank;
    return CT_OK;
}

/* Makes this process the leader in place of an earlier process of this rank that has ended. */
static ct_status elect_again(ct_store *store, const char *key, const void *before, size_t bytes,
                             const char *own)
{
    void *value = NULL;
    size_t size = 0;
    const ct_status status =
        ct_store_compare_set(store, key, before, bytes, own, strlen(own), &value, &size);

    free(value);
    return status;
}

ct_status host_leader_elect(struct host_leader *leader, ct_store *store, int rank, int size,
                            const char *machine)
{
    char key[KEY_BYTES], own[128], name[64];
    void *value = NULL;
    size_t bytes = 0;
    ct_status status;

    *leader = (struct host_leader){ .listener = -1, .socket = -1 };
    status = socket_listen_unix(NULL, &leader->listener);
    if (status == CT_OK)
        status = socket_unix_name(leader->listener, name, sizeof name);
    if (status != CT_OK)
        return status;
    snprintf(key, sizeof key, "host/%s", machine);
    snprintf(own, sizeof own, "%d %s %d %d", rank, name, (int)getpid(), size);
    status = ct_store_compare_set(store, key, "", 0, own, strlen(own), &value, &bytes);
    if (status == CT_OK)
        status = read_leader(leader, value, bytes, rank);
    if (status == CT_OK && leader->is_self && strncmp(value, own, bytes) != 0)
        status = elect_again(store, key, value, bytes, own);
    free(value);
    if (!leader->is_self) {
        close(leader->listener);
        leader->listener = -1;
    }
    return status;
}

/* ---- Connections ---------------------------------------------------------------- */

static ct_status ended(int rank)
{
    return ct_fail(CT_ERR_PEER, "rank %d ended before it could share memory", rank);
}

ct_status host_leader_connect(struct host_leader *leader, ct_store *store, int rank,
                              int64_t deadline)
{
    struct long_wait wait = long_wait_begin();
    const int32_t self = rank;
    uid_t uid;
    ct_status status;

    if (leader->is_self || leader->socket >= 0)
        return CT_OK;
    while ((status = socket_connect_unix(leader->name, clock_ms(), &leader->socket))
           == CT_ERR_TIMEOUT) {
        if (errno != EAGAIN)
            return ended(leader->rank);
        if (clock_ms() >= deadline)
            return status;
        if (store_check_deaths(store) != CT_OK)
            return CT_ERR_PEER;
        if (long_wait_is_due(&wait))
            log_line(LOG_WAITS,
                     "waiting %d s for rank %d, which leads this host, to accept; is it "
                     "stopped?",
                     LONG_WAIT_MS / 1000, leader->rank);
        poll(NULL, 0, CHECK_MS);
    }
    if (status == CT_OK)
        status = socket_peer(leader->socket, NULL, &uid);
    if (status == CT_OK && uid != geteuid())
        return ct_fail(CT_ERR_INVALID, "uid %u listens where rank %d of this job should",
                       (unsigned)uid, leader->rank);
    return status == CT_OK
               ? socket_write_all(leader->socket, &self, sizeof self, deadline + CHECK_MS)
               : status;
}

static ct_status accept_failed(const struct node *node, ct_status status)
{
    char limit[48];

    return status != CT_ERR_SYSTEM || errno != EMFILE
               ? status
               : ct_fail(status,
                         "no file descriptors are left: one of the %d ranks of a host needs a "
                         "descriptor for each of the others (%s)",
                         node->size, descriptor_limit(limit, sizeof limit));
}

static void say_late(const struct node *node, int local)
{
    log_line(LOG_WAITS, "waiting %d s for rank %d (pid %d) of this host; is it stopped?",
             LONG_WAIT_MS / 1000, node->ranks[local], (int)node->pids[local]);
}

static void say_who_is_missing(const struct host_leader *leader, const struct node *node)
{
    for (int i = 0; i < node->size; i++)
        if (i != node->rank && leader->sockets[i] < 0) {
            say_late(node, i);
            return;
        }
}

/* Accepts the next follower.  Returns CT_ERR_PEER if a missing follower is dead. */
static ct_status leader_accept_one(struct host_leader *leader, struct node *node, ct_store *store,
                                   int64_t deadline, int *socket)
{
    struct long_wait wait = long_wait_begin();
    ct_status status;

    do {
        status =
            socket_accept(leader->listener, clock_ms() + time_left_ms(deadline, CHECK_MS), socket);
        if (status != CT_ERR_TIMEOUT)
            return accept_failed(node, status);
        for (int i = 0; i < node->size; i++)
            if (i != node->rank && leader->sockets[i] < 0 && node_peer_gone(node, i))
                return ended(node->ranks[i]);
        if (store_check_deaths(store) != CT_OK)
            return CT_ERR_PEER;
        if (long_wait_is_due(&wait))
            say_who_is_missing(leader, node);
    } while (clock_ms() < deadline);
    return status;
}

static int local_of(const struct mesh *mesh, int rank)
{
    return rank >= 0 && rank < mesh->size ? mesh->peers[rank].local : -1;
}

/* Returns 1 if the other end has closed the connection.  A rank may connect, end, start again and
 * connect again. */
static int has_hung_up(int socket)
{
    char byte;

    return recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

ct_status host_leader_accept(struct host_leader *leader, struct mesh *mesh, ct_store *store,
                             int64_t deadline)
{
    struct node *node = &mesh->node;
    int missing = node->size - 1;

    leader->sockets = malloc(sizeof *leader->sockets * (size_t)node->size);
    if (!leader->sockets)
        return ct_fail(CT_ERR_NOMEM, "no memory for %d ranks of this host", node->size);
    leader->count = node->size;
    for (int i = 0; i < node->size; i++)
        leader->sockets[i] = -1;
    while (missing > 0) {
        int32_t rank = -1;
        int socket, local;
        uid_t uid;
        ct_status status = leader_accept_one(leader, node, store, deadline, &socket);

        if (status != CT_OK)
            return status;
        status = socket_peer(socket, NULL, &uid);
        if (status == CT_OK && uid != geteuid()) {
            close(socket); /* another user's process */
            continue;
        }
        if (status == CT_OK)
            status = socket_read_all(socket, &rank, sizeof rank, deadline);
        if (status == CT_OK && has_hung_up(socket)) {
            close(socket);
            continue;
        }
        local = local_of(mesh, rank);
        if (status == CT_OK && (local < 0 || local == node->rank || leader->sockets[local] >= 0))
            status = ct_fail(CT_ERR_MISMATCH, "two ranks of this host say that they are the same "
                                              "one");
        if (status != CT_OK) {
            close(socket);
            return status;
        }
        leader->sockets[local] = socket;
        missing--;
    }
    return CT_OK;
}

/* ---- Messages ------------------------------------------------------------------- */

/* Sets the error message for a read from that rank's socket that failed with `status`, since the
 * rank is silent or has ended. */
static ct_status or_ended(ct_status status, int rank)
{
    if (status == CT_ERR_TIMEOUT)
        return ct_fail(status, "rank %d of this host did not continue in time", rank);
    return status == CT_ERR_PEER ? ended(rank) : status;
}

static ct_status write_message(int socket, ct_status status, const void *data, size_t bytes,
                               int64_t deadline)
{
    const struct leader_head head = { status, (uint32_t)bytes };
    ct_status written = socket_write_all(socket, &head, sizeof head, deadline);

    return written == CT_OK && bytes > 0 ? socket_write_all(socket, data, bytes, deadline)
                                         : written;
}

ct_status host_give(struct host_leader *leader, struct mesh *mesh, const void *data, size_t bytes,
                    int64_t deadline)
{
    ct_status status = CT_OK;

    for (int i = 0; i < leader->count; i++)
        if (leader->sockets[i] >= 0
            && write_message(leader->sockets[i], CT_OK, data, bytes, deadline) != CT_OK)
            status = ended(mesh->node.ranks[i]);
    return status;
}

/* Reads the leader's error message, and fails with this message and the leader's status. */
static ct_status leader_read_failure(const struct host_leader *leader,
                                     const struct leader_head *head, int64_t deadline)
{
    char words[WORDS] = "";
    const size_t bytes = head->bytes < sizeof words ? head->bytes : sizeof words - 1;
    const ct_status status = socket_read_all(leader->socket, words, bytes, deadline);

    if (status != CT_OK)
        return or_ended(status, leader->rank);
    return ct_fail((ct_status)head->status, "%s", words);
}

/* Waits for a message of the leader.  Warns only if the leader is stopped, since a leader that
 * waits for other ranks warns itself. */
static ct_status wait_for_leader(const struct host_leader *leader, ct_store *store,
                                 int64_t deadline)
{
    pid_t pid = 0;
    int said = 0;
    ct_status status;

    while ((status = store_wait_beside(store, leader->socket,
                                       clock_ms() + time_left_ms(deadline, LONG_WAIT_MS)))
               == CT_ERR_TIMEOUT
           && clock_ms() < deadline)
        if (!said && socket_peer(leader->socket, &pid, NULL) == CT_OK && process_is_stopped(pid)) {
            said = 1;
            log_line(LOG_WAITS,
                     "waiting for rank %d, which leads this host and is stopped: kill -CONT %d "
                     "lets it continue",
                     leader->rank, (int)pid);
        }
    return status;
}

ct_status host_take(struct host_leader *leader, ct_store *store, void *data, size_t bytes,
                    int64_t deadline)
{
    struct leader_head head;
    ct_status status = store ? wait_for_leader(leader, store, deadline) : CT_OK;

    if (status != CT_OK)
        return status;
    status = socket_read_all(leader->socket, &head, sizeof head, deadline);
    if (status != CT_OK)
        return or_ended(status, leader->rank);
    if (head.status != CT_OK)
        return leader_read_failure(leader, &head, deadline);
    if (head.bytes != bytes)
        return ct_fail(CT_ERR_MISMATCH, "rank %d speaks another version of libct", leader->rank);
    return bytes == 0
               ? CT_OK
               : or_ended(socket_read_all(leader->socket, data, bytes, deadline), leader->rank);
}

static ct_status read_from(int socket, const struct node *node, int local, void *to, size_t bytes,
                           int64_t deadline)
{
    struct pollfd ready = { .fd = socket, .events = POLLIN };

    if (poll(&ready, 1, time_left_ms(deadline, LONG_WAIT_MS)) == 0 && clock_ms() < deadline)
        say_late(node, local);
    return or_ended(socket_read_all(socket, to, bytes, deadline), node->ranks[local]);
}

ct_status host_gather(struct host_leader *leader, struct mesh *mesh, const void *own, size_t bytes,
                      void *all, int64_t deadline)
{
    ct_status status = CT_OK;

    if (!leader->is_self)
        return socket_write_all(leader->socket, own, bytes, deadline) == CT_OK
                   ? CT_OK
                   : ended(leader->rank);
    for (int i = 0; i < leader->count && status == CT_OK; i++) {
        char *to = (char *)all + (size_t)i * bytes;

        if (leader->sockets[i] < 0)
            memcpy(to, own, bytes);
        else
            status = read_from(leader->sockets[i], &mesh->node, i, to, bytes, deadline);
    }
    return status;
}

/* ---- Closing -------------------------------------------------------------------- */

/* Sends the failure to all followers, including followers that are still connecting. */
static void leader_tell_failure(struct host_leader *leader, ct_status status)
{
    const int64_t until = clock_ms() + FAREWELL_MS;
    char words[WORDS];
    int socket;
    uid_t uid;

    snprintf(words, sizeof words, "%s", ct_last_error());
    for (int i = 0; i < leader->count; i++)
        if (leader->sockets[i] >= 0)
            write_message(leader->sockets[i], status, words, strlen(words),
                          clock_ms() + FAREWELL_MS);
    while (clock_ms() < until && socket_accept(leader->listener, clock_ms(), &socket) == CT_OK) {
        if (socket_peer(socket, NULL, &uid) == CT_OK && uid == geteuid())
            write_message(socket, status, words, strlen(words), until);
        close(socket);
    }
    ct_fail(status, "%s", words);
}

void host_leader_close(struct host_leader *leader, ct_status status)
{
    if (leader->is_self && status != CT_OK)
        leader_tell_failure(leader, status);
    for (int i = 0; i < leader->count; i++)
        if (leader->sockets[i] >= 0)
            close(leader->sockets[i]);
    free(leader->sockets);
    if (leader->listener >= 0)
        close(leader->listener);
    if (leader->socket >= 0)
        close(leader->socket);
    *leader = (struct host_leader){ .listener = -1, .socket = -1 };
}
