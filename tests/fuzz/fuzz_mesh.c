/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_mesh.c - what comes to the listener of a mesh: strangers, hellos, frames, in any
 * order and cut wherever, while this rank sends, receives and gives up.
 *
 * The input is a row of steps: a byte that says what happens (its low half) and to which
 * connection or request (its high half), then what the step needs.  We are rank 1 of
 * three.  Connections are unix sockets, and the first send to a rank opens one; a second one
 * goes by TCP: rank 0 has a port, and rank 2 refuses.  wireup.c has no thread: it turns with us.
 *
 * No byte that arrives is 0xee and every buffer is full of them before: a receive that
 * says it succeeded must have none left.  Each request and its buffer are freed as soon as
 * it is done, so nobody may hold them then. */
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "runtime/device/memory_kind.h"
#include "runtime/messaging/group_channel.h"
#include "runtime/messaging/messaging_internal.h"
#include "runtime/transport/wireup.h"
#include "runtime/util/log.h"
#include "tests/fuzz/input.h"

enum { ME = 1, RANKS = 3, CONNECTIONS = 8, REQUESTS = 8, EMPTY = 0xee };

static struct scene *the_scene;                 /* for the link that the mesh opens */
static const char token[] = "the mesh's token"; /* 16 bytes and a 0 */

/* What a frame may say of its size, and a request's size may be. */
static const uint64_t sizes[] = {
    0, 1, 8, 64, EAGER_BYTES - 1, EAGER_BYTES, EAGER_BYTES + 1, 70000, UINT64_C(1) << 31, UINT64_MAX
};

struct scene {
    struct mesh *mesh;
    struct sockaddr_un at; /* the mesh's listener */
    socklen_t at_size;
    int door;                     /* rank 0's port; one for all inputs */
    int connections[CONNECTIONS]; /* our ends; -1: none */
    struct request *requests[REQUESTS];
    unsigned char *buffers[REQUESTS];
    struct channel channels[2]; /* of two groups: 6 and 7, 8 and 9 */
    int open[2];
    int from[CONNECTIONS]; /* as whom it said hello */
};

/* ---- Requests ----------------------------------------------------------------- */

static struct signature signature_of(unsigned which, size_t bytes)
{
    return (struct signature){ .seq = 1 + (which & 1),
                               .count = bytes,
                               .operation = OPERATION_SEND,
                               .dtype = which & 2 ? CT_U8 : CT_I8,
                               .op = -1,
                               .root = -1 };
}

static void forget(struct scene *s, int i)
{
    const struct request *request = s->requests[i];

    if (!request->is_send && request->status == CT_OK)
        for (size_t at = 0; at < request->bytes; at++)
            holds(s->buffers[i][at] != EMPTY);
    holds(request->status == CT_OK || request->reason[0]);
    free(s->buffers[i]);
    free(s->requests[i]);
    s->requests[i] = NULL;
}

static int free_connection(const struct scene *s)
{
    int i = 0;

    while (i < CONNECTIONS && s->connections[i] >= 0)
        i++;
    return i;
}

/* -1: nobody is there.  Closing it leaves nothing behind: the next input might run out of ports. */
static int accept_at_door(const struct scene *s)
{
    const struct linger at_once = { .l_onoff = 1 };
    const int fd = accept4(s->door, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd >= 0)
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    return fd;
}

static void say(struct scene *s, int i, const void *data, size_t bytes);

/* Rank 0 takes what the mesh has opened to it; without a secret its answers can be known before the
 * questions. */
static void let_in(struct scene *s)
{
    const int i = free_connection(s);
    unsigned char answers[NONCE_BYTES + PROOF_BYTES] = { 0 };

    if (i == CONNECTIONS || (s->connections[i] = accept_at_door(s)) < 0)
        return;
    s->from[i] = 0;
    memcpy(answers + NONCE_BYTES, token, sizeof token - 1);
    say(s, i, answers, sizeof answers);
}

/* Also makes everything move. */
static void reap(struct scene *s)
{
    for (int i = 0; i < 3; i++)
        wireup_turn(s->mesh->wireup, 0);
    pthread_mutex_lock(&s->mesh->transport->lock);
    progress(s->mesh);
    pthread_mutex_unlock(&s->mesh->transport->lock);
    for (int i = 0; i < REQUESTS; i++)
        if (s->requests[i] && atomic_load(&s->requests[i]->done))
            forget(s, i);
    let_in(s);
}

/* Inputs count themselves first: 0 is us. */
static int rank_of(unsigned who)
{
    static const int ranks[RANKS] = { ME, 0, 2 };

    return ranks[who % RANKS];
}

static void start(struct scene *s, int i, int is_send, struct fuzz_input *in)
{
    const unsigned what = take(in);
    const size_t bytes = sizes[what % 8];
    const struct signature signature = signature_of(what >> 4, bytes);
    const int peer = rank_of(what >> 6), tag = what >> 3 & 1;

    i %= REQUESTS;
    if (s->requests[i])
        return;
    s->requests[i] = malloc(sizeof *s->requests[i]);
    s->buffers[i] = malloc(bytes ? bytes : 1);
    holds(s->requests[i] && s->buffers[i]);
    memset(s->buffers[i], is_send ? 's' : EMPTY, bytes);
    if (is_send)
        request_send(s->mesh, s->requests[i], 7, peer, tag, s->buffers[i], bytes, &signature);
    else
        request_recv(s->mesh, s->requests[i], 7, what >> 6 == 3 ? CT_ANY_SOURCE : peer, tag,
                     s->buffers[i], bytes, &signature);
}

static void cancel(struct scene *s, int i)
{
    if (s->requests[i])
        request_cancel(s->mesh, s->requests[i]);
}

/* ---- Connections -------------------------------------------------------------- */

static void end_connection(struct scene *s, int i)
{
    if (s->connections[i] >= 0)
        close(s->connections[i]);
    s->connections[i] = -1;
}

static void say(struct scene *s, int i, const void *data, size_t bytes)
{
    unsigned char text[4096];

    if (s->connections[i] < 0)
        return;
    memcpy(text, data, bytes);
    for (size_t at = 0; at < bytes; at++)
        text[at] = text[at] == EMPTY ? 0 : text[at];
    if (send(s->connections[i], text, bytes, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        return; /* full, or closed by the mesh */
}

static void say_bytes(struct scene *s, int i, struct fuzz_input *in)
{
    size_t bytes = take(in);

    bytes = bytes < in->left ? bytes : in->left;
    say(s, i, in->data, bytes);
    in->data += bytes;
    in->left -= bytes;
}

/* More of a payload than an input has room for. */
static void say_many(struct scene *s, int i, struct fuzz_input *in)
{
    static const unsigned char many[4096];
    const size_t times = 1 + take(in) % 20;

    for (size_t n = 0; n < times; n++)
        say(s, i, many, sizeof many);
}

static void say_hello(struct scene *s, int i, struct fuzz_input *in)
{
    const unsigned who = take(in);
    const int from = who % 4 < RANKS ? rank_of(who % 4) : RANKS;
    const struct hello hello = { HELLO_MAGIC, .from = from, .to = ME };
    unsigned char proof[PROOF_BYTES] = { 0 };

    s->from[i] = from % RANKS;
    memcpy(proof, token, sizeof token - 1);
    say(s, i, &hello, sizeof hello);
    if (who < 128)
        say(s, i, proof, sizeof proof);
}

/* Mostly its turn has come: all moves after each step. */
static uint32_t turn_of(const struct scene *s, int i, unsigned what)
{
    return s->mesh->transport->endpoints[s->from[i]].received + ((what & 14) == 14);
}

/* One that may fit what we wait for, of any kind, those of later versions included. */
static void say_frame(struct scene *s, int i, struct fuzz_input *in)
{
    const unsigned kind = take(in), what = take(in), ids = take(in);
    const uint64_t bytes = sizes[what % (sizeof sizes / sizeof *sizes)];
    const struct frame frame = { .magic = FRAME_MAGIC,
                                 .kind = (uint16_t)(kind % 32),
                                 .turn = turn_of(s, i, what),
                                 .channel = kind < 224 ? 7 : 8,
                                 .tag = what >> 4 & 1,
                                 .bytes = bytes,
                                 .id = ids & 15,
                                 .answer = ids >> 4,
                                 .signature = signature_of(what >> 5, bytes) };

    say(s, i, &frame, sizeof frame);
}

/* One whose fields are the input's; the magic is right. */
static void say_any_frame(struct scene *s, int i, struct fuzz_input *in)
{
    struct frame frame = { 0 };
    const size_t n = in->left < sizeof frame ? in->left : sizeof frame;

    memcpy(&frame, in->data, n);
    in->data += n;
    in->left -= n;
    frame.magic = FRAME_MAGIC;
    frame.turn = turn_of(s, i, frame.turn);
    say(s, i, &frame, sizeof frame);
}

static void connect_to_mesh(struct scene *s, int i)
{
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    end_connection(s, i);
    holds(fd >= 0);
    if (connect(fd, (struct sockaddr *)&s->at, s->at_size) < 0)
        close(fd); /* more than its backlog: the mesh is not looking */
    else
        s->connections[i] = fd;
}

static void read_some(struct scene *s, int i)
{
    unsigned char nowhere[65536];

    if (s->connections[i] >= 0 && recv(s->connections[i], nowhere, sizeof nowhere, MSG_DONTWAIT) < 0
        && errno != EAGAIN)
        end_connection(s, i);
}

/* ---- The link that the mesh opens --------------------------------------------- */

static int can_reach(const struct mesh *mesh, int peer)
{
    (void)mesh;
    return peer != ME;
}

static ct_status open_pair(struct mesh *mesh, int peer, struct link **link)
{
    const int i = free_connection(the_scene);
    int ends[2];

    (void)mesh;
    if (i == CONNECTIONS)
        return ct_fail(CT_ERR_PEER, "it refuses");
    holds(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    the_scene->connections[i] = ends[1];
    the_scene->from[i] = peer;
    *link = link_tcp_over(ends[0], NULL, 0);
    holds(*link != NULL);
    return CT_OK;
}

/* Instead of runtime/transport/registry.c. */
static const struct link_ops link_pair = { .name = "pair",
                                           .can_reach = can_reach,
                                           .open = open_pair };
const struct link_ops *const link_kinds[] = { &link_pair, NULL };

int spaces_are_there(void)
{
    return 0;
}

ct_status place_of(const void *pointer, struct place *place)
{
    (void)pointer;
    *place = (struct place){ NULL, NULL };
    return CT_OK;
}

ct_status place_current(struct place *place)
{
    *place = (struct place){ NULL, NULL };
    return ct_fail(CT_ERR_UNSUPPORTED, "there is no device here");
}

/* ---- The scene ---------------------------------------------------------------- */

static int open_listener(struct scene *s)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    holds(fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at.sun_family) == 0); /* any name */
    holds(listen(fd, 64) == 0);
    s->at_size = sizeof s->at;
    holds(getsockname(fd, (struct sockaddr *)&s->at, &s->at_size) == 0);
    return fd;
}

static int open_door(struct scene *s)
{
    static int door = -1;
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    socklen_t size = sizeof at;

    if (door < 0) {
        door = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        holds(door >= 0 && bind(door, (struct sockaddr *)&at, size) == 0 && listen(door, 64) == 0);
    }
    s->door = door;
    holds(getsockname(door, (struct sockaddr *)&at, &size) == 0);
    return ntohs(at.sin_port);
}

static void set_up(struct scene *s)
{
    static pid_t nobody;
    struct wireup_identity identity = { .rank = ME, .size = RANKS };
    struct mesh *mesh =
        aligned_alloc(CACHE_PAIR, (sizeof *mesh + CACHE_PAIR - 1) / CACHE_PAIR * CACHE_PAIR);

    holds(mesh != NULL);
    *mesh = (struct mesh){
        .rank = ME, .size = RANKS, .nodes = RANKS, .node = { .size = 1, .pids = &nobody }
    };
    scratch_open(&mesh->scratch);
    holds((mesh->peers = calloc(RANKS, sizeof *mesh->peers)) != NULL);
    for (int i = 0; i < RANKS; i++)
        mesh->peers[i] = (struct peer){ .local = i == ME ? 0 : -1, .node = i, .pid = 100 + i };
    holds((mesh->hosts = calloc(RANKS, sizeof *mesh->hosts)) != NULL);
    for (int i = 0; i < RANKS; i++)
        mesh->hosts[i] = (struct peer_host){ .name = "h", .address = "127.0.0.1" };
    mesh->peers[0].port = open_door(s);
    mesh->peers[2].port = 1; /* nobody listens */
    memcpy(identity.token, token, sizeof token - 1);
    for (int i = 0; i < CONNECTIONS; i++)
        s->connections[i] = -1;
    s->mesh = mesh;
    holds(wireup_start(&identity, open_listener(s), 0, &mesh->wireup) == CT_OK);
    the_scene = s;
    mesh->waiter = (struct waiter){ .bell = &mesh->own_bell, .epoll_fd = -1 };
    holds(wake_socket_open(&mesh->waiter.wake_fd) == CT_OK);
    wake_socket_name(mesh->waiter.wake_fd, &mesh->own_bell);
    holds(messages_create(mesh) == CT_OK);
    atomic_store(&mesh->messages->waiting, 1); /* no thread shall come in between */
}

static void on_failure(void *owner, const struct group_failure *failure)
{
    (void)owner;
    holds(strlen(failure->words) < sizeof failure->words && failure->rank < RANKS);
}

/* A group is made, destroyed, or fails here. */
static void group_changes(struct scene *s, int which)
{
    static const int ranks[RANKS] = { 0, 1, 2 };
    const struct group_failure failure = { .status = CT_ERR_TIMEOUT,
                                           .from_call = 1,
                                           .words = "too late" };
    struct channel *channel = &s->channels[which & 1];

    if (!s->open[which & 1]) {
        *channel = (struct channel){
            .id = which & 1 ? 8 : 6, .ranks = ranks, .size = RANKS, .on_failure = on_failure
        };
        channel_open(s->mesh, channel);
    } else if (which & 2) {
        channel_fail(s->mesh, channel, &failure);
        return;
    } else {
        channel_close(s->mesh, channel);
    }
    s->open[which & 1] ^= 1;
}

static void step(struct scene *s, unsigned what, struct fuzz_input *in)
{
    const int which = what >> 4;

    switch (what % 16) {
    case 0:
        connect_to_mesh(s, which % CONNECTIONS);
        break;
    case 1:
        say_bytes(s, which % CONNECTIONS, in);
        break;
    case 2:
        say_hello(s, which % CONNECTIONS, in);
        break;
    case 3:
        say_any_frame(s, which % CONNECTIONS, in);
        break;
    case 4:
        say_many(s, which % CONNECTIONS, in);
        break;
    case 5:
        read_some(s, which % CONNECTIONS);
        break;
    case 6:
        end_connection(s, which % CONNECTIONS);
        break;
    case 8:
    case 9:
        start(s, which, what & 1, in);
        break;
    case 10:
        cancel(s, which % REQUESTS);
        break;
    case 11:
        group_changes(s, which);
        break;
    default:
        say_frame(s, which % CONNECTIONS, in);
    }
}

static void take_down(struct scene *s)
{
    struct mesh *mesh = s->mesh;

    for (int i = 0; i < REQUESTS; i++)
        cancel(s, i);
    reap(s);
    for (int i = 0; i < REQUESTS; i++)
        holds(s->requests[i] == NULL); /* what is given up is done */
    holds(mesh->messages->active == NULL && mesh->messages->posted == NULL);
    for (int i = 0; i < 2; i++)
        if (s->open[i])
            group_changes(s, i);
    for (int i = 0; i < CONNECTIONS; i++) /* or it would see off what nobody reads */
        end_connection(s, i);
    for (int fd; (fd = accept_at_door(s)) >= 0;)
        close(fd);
    messages_destroy(mesh);
    wireup_stop(mesh->wireup);
    close(mesh->waiter.wake_fd);
    scratch_close(&mesh->scratch);
    free(mesh->peers);
    free(mesh->hosts);
    free(mesh);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = { data, size };
    struct scene scene = { 0 };

    log_setup("fuzz", LOG_NONE);
    set_up(&scene);
    while (in.left > 0) {
        step(&scene, take(&in), &in);
        reap(&scene);
    }
    take_down(&scene);
    return 0;
}
