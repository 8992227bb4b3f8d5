/* SPDX-License-Identifier: Apache-2.0 */
/* admission.c - decides which connections are admitted.
 *
 * A connection's first byte says whether the client uses libct's hello or PyTorch's protocol.  With
 * the hello, the client proves that it knows the job's secret.  PyTorch's protocol has no proof, so
 * such a client is admitted by its address.  For a client on this host, the kernel gives the uid.
 * For a client on another host, the server asks the launcher on that host, which has proved that it
 * knows the secret.  The user may also allow a client's network.  No request is parsed before the
 * client is admitted.  A connection from another user of this host is closed at once.
 *
 * A server that encrypts admits unencrypted clients only from this host. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/net/socket.h"
#include "runtime/store/server/connection.h"
#include "runtime/net/peer_uid.h"

struct admission {
    enum {
        SAME_UID,
        ALLOWED_NETWORK,
        OTHER_UID,
        OTHER_HOST,
        GONE,
        UNKNOWN
    } place; /* where the connection comes from */
    enum { FIRST_BYTE, HELLO, PROOF, QUERIED, CONFIRMED, DENIED } step;
    size_t have;
    unsigned char hello[HELLO_BYTES], nonce[NONCE_BYTES], proof[PROOF_BYTES];
    uint32_t query; /* number of the query to launchers */
    int unanswered; /* launchers that have not answered the query yet */
};

struct admission *admission_create(void)
{
    return calloc(1, sizeof(struct admission));
}

void admission_destroy(struct admission *admission)
{
    free(admission);
}

/* ---- PyTorch's clients ------------------------------------------------------ */

/* Writes the IPv6 address, or the mapped IPv4 address. */
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

static int locate(struct store_server *s, int fd)
{
    struct sockaddr_storage peer = { 0 }, self = { 0 };
    socklen_t peer_size = sizeof peer, self_size = sizeof self;
    uid_t uid = 0;

    if (s->is_unix)
        return socket_peer(fd, NULL, &uid) == CT_OK && uid == geteuid() ? SAME_UID : OTHER_UID;
    if (getpeername(fd, (struct sockaddr *)&peer, &peer_size) < 0
        || getsockname(fd, (struct sockaddr *)&self, &self_size) < 0)
        return GONE;
    if (is_allowed(&s->policy.allow, &peer))
        return ALLOWED_NETWORK;
    switch (peer_uid(s->netlink, &peer, &self, &uid)) {
    case PEER_HERE:
        return uid == geteuid() ? SAME_UID : OTHER_UID;
    case PEER_ELSEWHERE:
    case PEER_PENDING: /* a client on this host has a process unless it is gone */
        return same_address(&peer, &self) ? GONE : OTHER_HOST;
    case PEER_UNKNOWN:
        break;
    }
    return UNKNOWN;
}

enum admission_state admission_locate(struct conn *conn, const char **why)
{
    conn->admission->place = locate(conn->server, conn->fd);
    *why = "it belongs to another user of this host";
    return conn->admission->place == OTHER_UID ? ADMISSION_REFUSED : ADMISSION_PENDING;
}

int admission_is_launcher(const struct conn *conn)
{
    return conn->admission && conn->admission->step == PROOF
           && hello_role(conn->admission->hello) == HELLO_AGENT;
}

int admission_is_remote(const struct conn *conn)
{
    return conn->admission->place != SAME_UID && conn->admission->place != ALLOWED_NETWORK;
}

static enum admission_state admit_pytorch(struct conn *conn, const char **why)
{
    switch (conn->admission->place) {
    case SAME_UID:
    case ALLOWED_NETWORK:
        return ADMISSION_CLIENT;
    case OTHER_HOST:
        return conn->server->policy.open ? ADMISSION_CLIENT : ADMISSION_QUERY;
    case UNKNOWN:
        *why = "the kernel does not tell whose it is (--store-allow lets it in)";
        return ADMISSION_REFUSED;
    case GONE:
    case OTHER_UID:
        break;
    }
    *why = NULL; /* the client is gone, so nothing is logged */
    return ADMISSION_REFUSED;
}

enum admission_state admission_queried(struct conn *conn, uint32_t query, int launchers,
                                       const char **why)
{
    if (launchers > 0) {
        conn->admission->query = query;
        conn->admission->unanswered = launchers;
        conn->admission->step = QUERIED;
        return ADMISSION_PENDING;
    }
    *why = "it comes from another host without the job's secret (CT_STORE_SECRET_FILE there, or "
           "--store-allow here)";
    return ADMISSION_REFUSED;
}

uint32_t admission_query(const struct conn *conn)
{
    return conn->admission && conn->admission->step == QUERIED ? conn->admission->query : 0;
}

int admission_answer(struct conn *conn, int ours)
{
    if (!ours && --conn->admission->unanswered > 0)
        return 0; /* another launcher of that host may still confirm the client */
    conn->admission->step = ours ? CONFIRMED : DENIED;
    return 1;
}

/* ---- Clients with the secret ------------------------------------------------ */

/* Moves received bytes to `to`.  Returns 1 when `to` has all `size` bytes. */
static int admit_fill(struct admission *admission, unsigned char *to, size_t size,
                      const unsigned char *data, size_t bytes, size_t *used)
{
    const size_t missing = size - admission->have,
                 n = missing < bytes - *used ? missing : bytes - *used;

    memcpy(to + admission->have, data + *used, n);
    admission->have += n;
    *used += n;
    return admission->have == size;
}

static void add_reply(struct admission_reply *reply, const void *data, size_t bytes)
{
    memcpy(reply->bytes + reply->size, data, bytes);
    reply->size += bytes;
}

static enum admission_state take_hello(struct conn *conn, struct admission_reply *reply,
                                       const char **why)
{
    struct admission *admission = conn->admission;
    unsigned char hello[HELLO_BYTES];
    const int role = hello_role(admission->hello);

    *why = "its first bytes are neither PyTorch's nor ours";
    if (role != HELLO_CLIENT && role != HELLO_AGENT)
        return ADMISSION_REFUSED;
    *why = "it offers a secret, and the store has none";
    if (conn->server->policy.secret.size == 0 && !conn->server->policy.open
        && admission->place != ALLOWED_NETWORK)
        return ADMISSION_REFUSED;
    *why = "there are no random numbers";
    if (hello_make(hello, HELLO_CLIENT) != CT_OK)
        return ADMISSION_REFUSED;
    memcpy(admission->nonce, hello + HELLO_BYTES - NONCE_BYTES, NONCE_BYTES);
    add_reply(reply, admission->nonce, NONCE_BYTES);
    admission->step = PROOF;
    admission->have = 0;
    return ADMISSION_PENDING;
}

static enum admission_state take_proof(struct conn *conn, struct admission_reply *reply,
                                       const char **why)
{
    struct admission *admission = conn->admission;
    const struct secret *secret = &conn->server->policy.secret;
    unsigned char proof[PROOF_BYTES];

    *why = "the proof needs OpenSSL's libcrypto.so.3, which is not here (Debian: libssl3)";
    if (proof_make(secret, "client", admission->hello, admission->nonce, proof) != CT_OK)
        return ADMISSION_REFUSED;
    *why = "it does not know the job's secret";
    if (!proof_equal(proof, admission->proof)
        || proof_make(secret, "server", admission->hello, admission->nonce, proof) != CT_OK)
        return ADMISSION_REFUSED;
    add_reply(reply, proof, sizeof proof);
    return hello_role(admission->hello) == HELLO_AGENT ? ADMISSION_AGENT : ADMISSION_CLIENT;
}

/* Returns 1 if only one of client and server encrypts, with a notice for the client in reply and
 * the reason in *why.  Returns 0 if they agree or if the client may be unencrypted because its
 * connection does not leave this host. */
static int admit_differs(struct conn *conn, unsigned char first, struct admission_reply *reply,
                         const char **why)
{
    const struct store_server *s = conn->server;

    if (!s->context && first == CHANNEL_FIRST) {
        add_reply(reply, secure_channel_refusal, CHANNEL_REFUSAL_BYTES);
        *why = "it encrypts, but this store does not; set CT_ENCRYPT=1 on all hosts or on none";
        return 1;
    }
    if (!s->context || conn->channel || s->is_unix || socket_stays_here(conn->fd))
        return 0;
    add_reply(reply, encryption_notice, sizeof encryption_notice);
    *why = "it does not encrypt, but this store does; set CT_ENCRYPT=1 on all hosts or on none "
           "(PyTorch's clients can't: they are served on this host only)";
    return 1;
}

enum admission_state admission_feed(struct conn *conn, const unsigned char *data, size_t bytes,
                                    size_t *used, struct admission_reply *reply, const char **why)
{
    struct admission *admission = conn->admission;
    enum admission_state state = ADMISSION_PENDING;

    if (admission->step == CONFIRMED)
        return ADMISSION_CLIENT;
    if (admission->step == DENIED) {
        *why = "the launcher of its host says that it belongs to another user there";
        return ADMISSION_REFUSED;
    }
    if (admission->step == FIRST_BYTE && bytes > 0) {
        if (admit_differs(conn, data[0], reply, why))
            return ADMISSION_REFUSED;
        if (data[0] != HELLO_FIRST)
            return admit_pytorch(conn, why);
        admission->step = HELLO;
    }
    if (admission->step == HELLO
        && admit_fill(admission, admission->hello, HELLO_BYTES, data, bytes, used))
        state = take_hello(conn, reply, why);
    if (admission->step == PROOF && state == ADMISSION_PENDING
        && admit_fill(admission, admission->proof, PROOF_BYTES, data, bytes, used))
        state = take_proof(conn, reply, why);
    return state;
}
