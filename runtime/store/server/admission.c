/* SPDX-License-Identifier: Apache-2.0 */
/* admission.c - who may be a client.
 *
 * The first byte tells a peer of ours from a PyTorch client.  A peer proves that it
 * knows the job's secret.  PyTorch's protocol has nothing of the kind, so its
 * clients are known by where they are: on this host the kernel says whose
 * they are; on another, the launcher there, which has proved itself, is asked; or
 * the user has named their network.  Until then nothing they sent is looked at.
 * Who belongs to another user of this host is closed as soon as it comes. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/net/socket.h"
#include "runtime/store/server/connection.h"
#include "runtime/store/server/peer_uid.h"

struct door {
    enum { OURS, ALLOWED, FOREIGN, STRANGER, GONE, UNKNOWN } place; /* where it was when it came */
    enum { FIRST_BYTE, HELLO, PROOF, ASKED, VOUCHED, DISOWNED } step;
    size_t have;
    unsigned char hello[HELLO_BYTES], nonce[NONCE_BYTES], proof[PROOF_BYTES];
    uint32_t question;
    int asked; /* launchers that have not answered yet */
};

struct door *door_create(void)
{
    return calloc(1, sizeof(struct door));
}

void door_destroy(struct door *door)
{
    free(door);
}

/* ---- PyTorch's clients ------------------------------------------------------ */

/* An IPv4 address as the IPv6 one that maps it. */
static void address_of(const struct sockaddr_storage *end, unsigned char address[16])
{
    const struct sockaddr_in *v4 = (const void *)end;
    const struct sockaddr_in6 *v6 = (const void *)end;

    memset(address, 0, 16);
    if (end->ss_family == AF_INET) {
        address[10] = address[11] = 0xff;
        memcpy(address + 12, &v4->sin_addr, 4);
    } else {
        memcpy(address, &v6->sin6_addr, 16);
    }
}

static int same_address(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
    unsigned char left[16], right[16];

    address_of(a, left);
    address_of(b, right);
    return !memcmp(left, right, sizeof left);
}

static int is_allowed(const struct networks *allow, const struct sockaddr_storage *peer)
{
    unsigned char address[16];

    address_of(peer, address);
    for (int i = 0; i < allow->count; i++)
        if (network_has(&allow->list[i], address))
            return 1;
    return 0;
}

static enum door_state ask_its_launcher(struct conn *conn, const char **why)
{
    struct store_server *s = conn->server;

    if (++s->questions == 0)
        s->questions = 1;
    conn->door->asked = agents_ask(conn, s->questions);
    if (conn->door->asked > 0) {
        conn->door->question = s->questions;
        conn->door->step = ASKED;
        return DOOR_SHUT;
    }
    *why = "it comes from another host without the job's secret (CT_STORE_SECRET_FILE there, or "
           "--store-allow here)";
    return DOOR_REFUSED;
}

static int place_of(struct store_server *s, int fd)
{
    struct sockaddr_storage peer = { 0 }, self = { 0 };
    socklen_t peer_size = sizeof peer, self_size = sizeof self;
    uid_t uid = 0;

    if (s->is_unix)
        return socket_peer(fd, NULL, &uid) == CT_OK && uid == geteuid() ? OURS : FOREIGN;
    if (getpeername(fd, (struct sockaddr *)&peer, &peer_size) < 0
        || getsockname(fd, (struct sockaddr *)&self, &self_size) < 0)
        return GONE;
    if (is_allowed(&s->policy.allow, &peer))
        return ALLOWED;
    switch (peer_uid(s->netlink, &peer, &self, &uid)) {
    case PEER_HERE:
        return uid == geteuid() ? OURS : FOREIGN;
    case PEER_ELSEWHERE:
    case PEER_PENDING: /* a client that connects has a process */
        return same_address(&peer, &self) ? GONE : STRANGER;
    case PEER_UNKNOWN:
        break;
    }
    return UNKNOWN;
}

enum door_state door_look(struct conn *conn, const char **why)
{
    conn->door->place = place_of(conn->server, conn->fd);
    *why = "it belongs to another user of this host";
    return conn->door->place == FOREIGN ? DOOR_REFUSED : DOOR_SHUT;
}

int door_is_launchers(const struct conn *conn)
{
    return conn->door && conn->door->step == PROOF && hello_role(conn->door->hello) == HELLO_AGENT;
}

int door_is_strangers(const struct conn *conn)
{
    return conn->door->place != OURS && conn->door->place != ALLOWED;
}

static enum door_state let_pytorch_in(struct conn *conn, const char **why)
{
    switch (conn->door->place) {
    case OURS:
    case ALLOWED:
        return DOOR_CLIENT;
    case STRANGER:
        return conn->server->policy.open ? DOOR_CLIENT : ask_its_launcher(conn, why);
    case UNKNOWN:
        *why = "the kernel does not tell whose it is (--store-allow lets it in)";
        return DOOR_REFUSED;
    case GONE:
    case FOREIGN:
        break;
    }
    *why = NULL; /* ours, but it has left already */
    return DOOR_REFUSED;
}

uint32_t door_question(const struct conn *conn)
{
    return conn->door && conn->door->step == ASKED ? conn->door->question : 0;
}

void door_answer(struct conn *conn, int ours)
{
    if (!ours && --conn->door->asked > 0)
        return; /* another launcher of that host may know it */
    conn->door->step = ours ? VOUCHED : DISOWNED;
    conn_run_later(conn);
}

/* ---- Peers of ours ---------------------------------------------------------- */

/* Fills `to`; 1 when it is full. */
static int gather(struct door *door, unsigned char *to, size_t size, const unsigned char *data,
                  size_t bytes, size_t *used)
{
    const size_t left = size - door->have, n = left < bytes - *used ? left : bytes - *used;

    memcpy(to + door->have, data + *used, n);
    door->have += n;
    *used += n;
    return door->have == size;
}

static enum door_state take_hello(struct conn *conn, const char **why)
{
    struct door *door = conn->door;
    unsigned char hello[HELLO_BYTES];
    const int role = hello_role(door->hello);

    *why = "its first bytes are neither PyTorch's nor ours";
    if (role != HELLO_CLIENT && role != HELLO_AGENT)
        return DOOR_REFUSED;
    *why = "it offers a secret, and the store has none";
    if (conn->server->policy.secret.size == 0 && !conn->server->policy.open
        && door->place != ALLOWED)
        return DOOR_REFUSED;
    *why = "there are no random numbers";
    if (hello_make(hello, HELLO_CLIENT) != CT_OK)
        return DOOR_REFUSED;
    memcpy(door->nonce, hello + HELLO_BYTES - NONCE_BYTES, NONCE_BYTES);
    conn_send(conn, door->nonce, NONCE_BYTES);
    door->step = PROOF;
    door->have = 0;
    return DOOR_SHUT;
}

static enum door_state take_proof(struct conn *conn, const char **why)
{
    struct door *door = conn->door;
    const struct secret *secret = &conn->server->policy.secret;
    unsigned char proof[PROOF_BYTES];

    *why = "the proof needs OpenSSL's libcrypto.so.3, which is not here (Debian: libssl3)";
    if (proof_make(secret, "client", door->hello, door->nonce, proof) != CT_OK)
        return DOOR_REFUSED;
    *why = "it does not know the job's secret";
    if (!proof_equal(proof, door->proof)
        || proof_make(secret, "server", door->hello, door->nonce, proof) != CT_OK)
        return DOOR_REFUSED;
    conn_send(conn, proof, sizeof proof);
    return hello_role(door->hello) == HELLO_AGENT ? DOOR_AGENT : DOOR_CLIENT;
}

enum door_state door_knock(struct conn *conn, const unsigned char *data, size_t bytes, size_t *used,
                           const char **why)
{
    struct door *door = conn->door;
    enum door_state state = DOOR_SHUT;

    if (door->step == VOUCHED)
        return DOOR_CLIENT;
    if (door->step == DISOWNED) {
        *why = "the launcher of its host says that it belongs to another user there";
        return DOOR_REFUSED;
    }
    if (door->step == FIRST_BYTE && bytes > 0) {
        if (data[0] != HELLO_FIRST)
            return let_pytorch_in(conn, why);
        door->step = HELLO;
    }
    if (door->step == HELLO && gather(door, door->hello, HELLO_BYTES, data, bytes, used))
        state = take_hello(conn, why);
    if (door->step == PROOF && state == DOOR_SHUT
        && gather(door, door->proof, PROOF_BYTES, data, bytes, used))
        state = take_proof(conn, why);
    return state;
}
