/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_store_admission.c - connections to the store's socket: clients of libct with and without the
 * secret, PyTorch's clients, launchers and their messages, other programs, cut anywhere, in any
 * order.
 *
 * The input is a byte for the store's policy, then a row of steps: a byte that says what happens
 * (its low half) and to which connection (its high half), then the arguments of the step.  The
 * connections are unix sockets without a port.  Their names say which uid and address peer_uid()
 * and getpeername() report, and getrandom() always gives the same bytes.  A client may be served
 * only if it has our uid, comes from an allowed network, knows the secret, or a launcher of its
 * host confirms it.  Once all have left and the keys are cleared, no memory may be in use. */
#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "config/values/parse_number.h"
#include "runtime/store/server/connection.h"
#include "runtime/net/peer_uid.h"
#include "runtime/util/log.h"
#include "tests/fuzz/input.h"

enum { CONNECTIONS = 8, MOST_EVER = 200 };
enum place { SAME_UID, ALLOWED_NETWORK, OTHER_UID, HOST_A, HOST_B, UNKNOWN, GONE, PLACES };

struct scene {
    struct event_base *base;
    struct store_server *server;
    struct sockaddr_un at;
    socklen_t at_size;
    int connections[CONNECTIONS], numbers[CONNECTIONS]; /* -1: none; which of all ever made */
    int ever;
    enum place places[MOST_EVER];
    int proved[MOST_EVER], greeted[MOST_EVER];
    int vouched[PLACES]; /* a launcher came from there */
    unsigned long heard; /* of launchers */
};

/* ---- Instead of the C library's functions --------------------------------------- */

ssize_t getrandom(void *bytes, size_t size, unsigned flags)
{
    (void)flags;
    memset(bytes, 7, size);
    return (ssize_t)size;
}

/* "C<place>.<number>.<pid>" is a client's name. */
static int name_of(int fd, int peer, int *place, int *number)
{
    struct sockaddr_un at = { 0 };
    socklen_t size = sizeof at - 1;

    if (syscall(peer ? SYS_getpeername : SYS_getsockname, fd, &at, &size) < 0)
        return -1;
    return sscanf(at.sun_path + 1, "C%d.%d.", place, number) == 2 ? 1 : 0;
}

static int put_address(const char *address, int port, struct sockaddr *to, socklen_t *size)
{
    struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };

    inet_pton(AF_INET, address, &v4.sin_addr);
    memcpy(to, &v4, *size < sizeof v4 ? *size : sizeof v4);
    *size = sizeof v4;
    return 0;
}

int getsockname(int fd, struct sockaddr *to, socklen_t *size)
{
    (void)fd;
    return put_address("10.0.0.1", 29500, to, size);
}

int getpeername(int fd, struct sockaddr *to, socklen_t *size)
{
    static const char *const addresses[] = { "127.0.0.1", "10.1.0.1", "127.0.0.1", "10.2.0.1",
                                             "10.3.0.1",  "10.4.0.1", "10.0.0.1" };
    int place = 0, number = 0;

    if (name_of(fd, 1, &place, &number) <= 0) {
        errno = ENOTCONN;
        return -1;
    }
    return put_address(addresses[place], place << 8 | number, to, size);
}

/* Instead of runtime/net/peer_uid.c. */
int peer_uid_open(void)
{
    return -1;
}

enum peer_place peer_uid(int netlink, const struct sockaddr_storage *peer,
                         const struct sockaddr_storage *self, uid_t *uid)
{
    const enum place place =
        (enum place)(ntohs(((const struct sockaddr_in *)(const void *)peer)->sin_port) >> 8);

    (void)netlink;
    (void)self;
    *uid = place == OTHER_UID ? geteuid() + 1 : geteuid();
    return place == SAME_UID || place == OTHER_UID ? PEER_HERE
           : place == UNKNOWN                      ? PEER_UNKNOWN
                                                   : PEER_ELSEWHERE;
}

/* ---- Who is served ------------------------------------------------------------- */

static void look_at(struct scene *s, const struct list_node *ring)
{
    const struct store_policy *policy = &s->server->policy;

    for (const struct list_node *node = ring->next; node != ring; node = node->next) {
        const struct conn *conn = (const struct conn *)node; /* `all` comes first */
        int place = 0, number = 0;

        holds(name_of(conn->fd, 1, &place, &number) == 1);
        if (conn->admission || (!conn->session && !conn->agent))
            continue;
        holds(place == SAME_UID || s->proved[number] || (policy->open && place != OTHER_UID)
              || (place == ALLOWED_NETWORK && policy->allow.count > 0)
              || ((place == ALLOWED_NETWORK || place == HOST_A || place == HOST_B)
                  && s->vouched[place]));
        holds(!conn->agent || s->proved[number]);
        holds(place != OTHER_UID);
        s->vouched[place] |= conn->agent != NULL;
    }
}

static void turn(struct scene *s)
{
    for (int i = 0; i < 3; i++)
        event_base_loop(s->base, EVLOOP_NONBLOCK);
    look_at(s, &s->server->pending);
    look_at(s, &s->server->unverified);
    look_at(s, &s->server->conns);
}

static void said(void *arg, struct store_agent *agent, int type, const void *data, size_t bytes)
{
    struct scene *s = arg;

    for (size_t i = 0; i < bytes; i++) /* every byte must be readable */
        s->heard += ((const unsigned char *)data)[i] + 1u;
    if (type == AGENT_FIRST + 1)
        store_agent_send(agent, type, data, bytes);
}

static void left(void *arg, struct store_agent *agent, int error)
{
    (void)error;
    ((struct scene *)arg)->heard += agent != NULL;
}

static const struct store_agent_hooks hooks = { said, left };

/* ---- Steps --------------------------------------------------------------------- */

static void end_connection(struct scene *s, int i)
{
    if (s->connections[i] >= 0)
        close(s->connections[i]);
    s->connections[i] = -1;
}

static void come(struct scene *s, int i, struct fuzz_input *in)
{
    const enum place place = (enum place)(take(in) % PLACES);
    struct sockaddr_un name = { .sun_family = AF_UNIX };
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int size;

    end_connection(s, i);
    holds(fd >= 0);
    size = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "C%d.%d.%d.", place, s->ever,
                    (int)getpid());
    if (s->ever == MOST_EVER
        || bind(fd, (struct sockaddr *)&name,
                (socklen_t)(sizeof name.sun_family + 1) + (socklen_t)size)
               < 0
        || connect(fd, (struct sockaddr *)&s->at, s->at_size) < 0) {
        close(fd);
        return;
    }
    s->connections[i] = fd;
    s->numbers[i] = s->ever;
    s->places[s->ever++] = place;
}

static void say(const struct scene *s, int i, const void *data, size_t bytes)
{
    if (s->connections[i] >= 0
        && send(s->connections[i], data, bytes, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        return; /* full, or closed by the store */
}

static void say_bytes(const struct scene *s, int i, struct fuzz_input *in)
{
    size_t bytes = take(in);

    bytes = bytes < in->left ? bytes : in->left;
    say(s, i, in->data, bytes);
    in->data += bytes;
    in->left -= bytes;
}

static void say_hello(struct scene *s, int i, struct fuzz_input *in)
{
    unsigned char hello[HELLO_BYTES];
    const unsigned role = take(in);

    holds(hello_make(hello, role % 2 ? HELLO_AGENT : HELLO_CLIENT) == CT_OK);
    if (role > 200)
        hello[7] = (unsigned char)role;
    if (s->connections[i] >= 0)
        s->greeted[s->numbers[i]] = hello[7];
    say(s, i, hello, sizeof hello);
}

/* The right one, for the hello that was said and for the nonce that is always the same. */
static void say_proof(struct scene *s, int i)
{
    unsigned char hello[HELLO_BYTES], proof[PROOF_BYTES];

    if (s->connections[i] < 0)
        return;
    hello_make(hello, HELLO_CLIENT);
    hello[7] = (unsigned char)s->greeted[s->numbers[i]];
    if (proof_make(&s->server->policy.secret, "client", hello, hello + 8, proof) != CT_OK)
        return; /* no libcrypto: no client is admitted by the secret */
    s->proved[s->numbers[i]] = 1;
    say(s, i, proof, sizeof proof);
}

static void say_magic(const struct scene *s, int i)
{
    static const unsigned char magic[] = { STORE_VALIDATE, 0xce, 0xf7, 0x85, 0x3c };

    say(s, i, magic, sizeof magic);
}

/* A launcher's, whole: the size is right. */
static void say_message(const struct scene *s, int i, struct fuzz_input *in)
{
    const unsigned type = take(in);
    uint32_t size = take(in);
    unsigned char message[5 + 255];

    size = size < in->left ? size : (uint32_t)in->left;
    memcpy(message + 5, in->data, size);
    in->data += size;
    in->left -= size;
    message[4] = (unsigned char)type;
    size++;
    memcpy(message, &size, 4);
    say(s, i, message, 4 + size);
}

static void say_answer(const struct scene *s, int i, struct fuzz_input *in)
{
    unsigned char message[10] = { 6, 0, 0, 0, AGENT_OURS };

    message[5] = (unsigned char)take(in);
    message[9] = (unsigned char)take(in);
    say(s, i, message, sizeof message);
}

/* More than an input has room for. */
static void say_many(const struct scene *s, int i, struct fuzz_input *in)
{
    static const unsigned char many[4096];
    const size_t times = 1 + take(in) % 20;

    for (size_t n = 0; n < times; n++)
        say(s, i, many, sizeof many);
}

static void read_some(struct scene *s, int i)
{
    unsigned char nowhere[65536];

    if (s->connections[i] >= 0 && recv(s->connections[i], nowhere, sizeof nowhere, MSG_DONTWAIT) < 0
        && errno != EAGAIN)
        end_connection(s, i);
}

static void let_time_pass(struct scene *s)
{
    struct list_node *const rings[] = { &s->server->pending, &s->server->unverified };

    for (int i = 0; i < 2; i++)
        for (struct list_node *node = rings[i]->next; node != rings[i]; node = node->next)
            ((struct conn *)node)->accepted_at = 0;
    event_active(&s->server->timer, EV_TIMEOUT, 0);
}

static void step(struct scene *s, unsigned what, struct fuzz_input *in)
{
    const int i = (int)(what >> 4) % CONNECTIONS;

    switch (what % 16) {
    case 0:
        come(s, i, in);
        break;
    case 1:
        say_bytes(s, i, in);
        break;
    case 2:
        say_hello(s, i, in);
        break;
    case 3:
        say_proof(s, i);
        break;
    case 4:
        say_magic(s, i);
        break;
    case 5:
        say_message(s, i, in);
        break;
    case 6:
        say_answer(s, i, in);
        break;
    case 7:
        say_many(s, i, in);
        break;
    case 8:
        read_some(s, i);
        break;
    case 9:
        end_connection(s, i);
        break;
    case 10:
        let_time_pass(s);
        break;
    case 11:
        store_server_clear(s->server);
        break;
    case 12:
        store_server_put(s->server, "/k", "value", 5);
        break;
    case 13:
        if (s->connections[i] >= 0)
            shutdown(s->connections[i], SHUT_WR);
        break;
    default:
        break; /* time to look */
    }
}

/* ---- One input ------------------------------------------------------------------ */

static int open_listener(struct scene *s)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    holds(fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at.sun_family) == 0); /* any name */
    holds(listen(fd, 64) == 0);
    s->at_size = sizeof s->at;
    holds(syscall(SYS_getsockname, fd, &s->at, &s->at_size) == 0);
    return fd;
}

/* Bit 0: a secret; 1: others are let in without; 2: networks; 3: few clients, little memory. */
static void set_up(struct scene *s, unsigned what)
{
    struct store_policy policy = STORE_POLICY_INIT;
    struct why why;

    for (int i = 0; i < CONNECTIONS; i++)
        s->connections[i] = -1;
    if (what & 1)
        policy.secret = (struct secret){ "a secret of some length", 23 };
    policy.open = what & 2 && !(what & 1);
    if (what & 4)
        holds(parse_networks("10.1.0.0/16,fd00::/8", &policy.allow, &why) == 0);
    policy.clients = what & 8 ? 4 : 65536;
    policy.memory = what & 8 ? 16384 : 1 << 20;
    policy.request = 1 << 16;
    holds((s->base = event_base_new()) != NULL);
    holds(store_server_create(s->base, open_listener(s), &policy, &s->server) == CT_OK);
    store_server_on_agents(s->server, &hooks, s);
}

static void take_down(struct scene *s)
{
    const struct engine *engine = s->server->engine;

    for (int i = 0; i < CONNECTIONS; i++)
        end_connection(s, i);
    for (int i = 0; i < 100 && store_server_clients(s->server) > 0; i++) {
        let_time_pass(s); /* a connection with an open query is not read, so its end is not seen */
        turn(s);
    }
    holds(store_server_clients(s->server) == 0 && s->server->unverified_count == 0);
    store_server_clear(s->server);
    holds(engine->map.entries == 0 && engine->map.keys == 0);
    holds(engine->budget.used == engine->map.bucket_room * sizeof(struct entry *));
    store_server_destroy(s->server);
    event_base_free(s->base);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = { data, size };
    struct scene scene = { 0 };

    log_setup("fuzz", LOG_NONE);
    set_up(&scene, take(&in));
    while (in.left > 0) {
        step(&scene, take(&in), &in);
        turn(&scene);
    }
    take_down(&scene);
    return 0;
}
