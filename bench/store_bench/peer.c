/* SPDX-License-Identifier: Apache-2.0 */
/* peer.c - see peer.h. */
#include "bench/store_bench/peer.h"
#include "bench/store_bench/stats.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

/* ---- Requests ---------------------------------------------------------------------------- */

void put(struct buffer *b, const void *data, size_t bytes)
{
    if (b->size + bytes > b->room) {
        b->room = 2 * (b->size + bytes);
        b->data = realloc(b->data, b->room);
        if (!b->data)
            die("memory");
    }
    memcpy(b->data + b->size, data, bytes);
    b->size += bytes;
}

void put_u8(struct buffer *b, unsigned char value)
{
    put(b, &value, sizeof value);
}

void put_u64(struct buffer *b, uint64_t value)
{
    put(b, &value, sizeof value);
}

void put_blob(struct buffer *b, const void *data, size_t bytes)
{
    put_u64(b, bytes);
    put(b, data, bytes);
}

void put_text(struct buffer *b, const char *text)
{
    put_blob(b, text, strlen(text));
}

void put_ping(struct buffer *b)
{
    const uint32_t nonce = (uint32_t)getpid();

    put_u8(b, PING);
    put(b, &nonce, sizeof nonce);
}

void put_validate(struct buffer *b)
{
    const uint32_t magic = MAGIC;

    put_u8(b, VALIDATE);
    put(b, &magic, sizeof magic);
}

void put_key(struct buffer *b, enum command command, const char *key)
{
    put_u8(b, (unsigned char)command);
    put_text(b, key);
}

void put_one(struct buffer *b, enum command command, const char *key)
{
    put_u8(b, (unsigned char)command);
    put_u64(b, 1);
    put_text(b, key);
}

/* printf would take longer to write a message than a server to understand it. */
size_t number_key(char *key, size_t prefix, int i)
{
    for (size_t digit = 6; digit-- > 0; i /= 10)
        key[prefix + digit] = (char)('0' + i % 10);
    return prefix + 6;
}

void put_many(struct buffer *b, enum command command, int tag, int first, int n)
{
    char key[64], value[VALUE_BYTES];
    const size_t prefix = (size_t)snprintf(key, sizeof key, "/%d/key/", tag);

    memset(value, 'v', sizeof value);
    put_u8(b, (unsigned char)command);
    put_u64(b, (uint64_t)n);
    for (int i = first; i < first + n; i++) {
        put_blob(b, key, number_key(key, prefix, i));
        if (command == MULTI_SET)
            put_blob(b, value, sizeof value);
    }
}

int new_tag(void)
{
    static int tag;

    return ++tag;
}

/* ---- The connection ---------------------------------------------------------------------- */

/* Of a send() or recv(): 0 is to try again. */
static ssize_t moved(const struct peer *peer, ssize_t n)
{
    if (n > 0)
        return n;
    if (n == 0)
        errno = EPIPE;
    else if (errno == EINTR || errno == EAGAIN) {
        if (now() <= peer->deadline)
            return 0;
        errno = ETIMEDOUT;
    }
    return -1;
}

int send_all(struct peer *peer, const void *data, size_t bytes)
{
    const char *at = data;

    while (bytes > 0) {
        const ssize_t n = moved(peer, send(peer->fd, at, bytes, MSG_NOSIGNAL));

        if (n < 0)
            return -1;
        at += n;
        bytes -= (size_t)n;
    }
    return 0;
}

int receive(struct peer *peer, void *data, size_t bytes)
{
    char *at = data;

    while (bytes > 0) {
        const ssize_t n = moved(peer, recv(peer->fd, at, bytes, 0));

        if (n < 0)
            return -1;
        at += n;
        bytes -= (size_t)n;
    }
    return 0;
}

int receive_blob(struct peer *peer)
{
    static char sink[1 << 20];
    uint64_t left;

    if (receive(peer, &left, sizeof left) < 0)
        return -1;
    while (left > 0) {
        const size_t n = left < sizeof sink ? left : sizeof sink;

        if (receive(peer, sink, n) < 0)
            return -1;
        left -= n;
    }
    return 0;
}

/* Many at a time: one recv() for each would measure the client. */
int receive_blobs(struct peer *peer, int64_t n)
{
    static char data[1 << 18];
    size_t have = 0;

    while (n > 0) {
        size_t at = 0;
        uint64_t size;
        const ssize_t got = moved(peer, recv(peer->fd, data + have, sizeof data - have, 0));

        if (got < 0)
            return -1;
        have += (size_t)got;
        for (; n > 0 && have - at >= sizeof size; n--) {
            memcpy(&size, data + at, sizeof size);
            if (have - at < sizeof size + size)
                break;
            at += sizeof size + size;
        }
        memmove(data, data + at, have - at);
        have -= at;
    }
    return 0;
}

int ask(struct peer *peer, const struct buffer *request, void *answer, size_t bytes)
{
    return send_all(peer, request->data, request->size) < 0 ? -1 : receive(peer, answer, bytes);
}

int ask_once(struct peer *peer, struct buffer *request, void *answer, size_t bytes)
{
    const int failed = ask(peer, request, answer, bytes);

    free(request->data);
    *request = (struct buffer){ 0 };
    return failed;
}

int ping(struct peer *peer)
{
    struct buffer b = { 0 };
    uint32_t nonce;

    put_ping(&b);
    return ask_once(peer, &b, &nonce, sizeof nonce);
}

int take_source(int fd, const struct server *server, unsigned crowd)
{
    struct sockaddr_in source = { .sin_family = AF_INET };
    const int one = 1;

    if (ntohl(server->address.sin_addr.s_addr) >> 24 != 127)
        return 0;
    source.sin_addr.s_addr = htonl(0x7f000001u + (crowd % 250 << 8));
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one);
    return bind(fd, (struct sockaddr *)&source, sizeof source);
}

int peer_dial(struct peer *peer, const struct server *server, unsigned crowd)
{
    const struct timeval slice = { 0, 100000 }; /* how late a deadline is noticed */
    const int one = 1;

    peer->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    peer->deadline = now() + LIMIT_SECONDS;
    if (peer->fd < 0)
        die("socket (ulimit -n?)");
    setsockopt(peer->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(peer->fd, SOL_SOCKET, SO_RCVTIMEO, &slice, sizeof slice);
    if (crowd && take_source(peer->fd, server, crowd) < 0)
        return -1;
    if (connect(peer->fd, (const struct sockaddr *)&server->address, sizeof server->address) < 0)
        return -1;
    /* Not before connect(): it would give up when the slice is over. */
    return setsockopt(peer->fd, SOL_SOCKET, SO_SNDTIMEO, &slice, sizeof slice);
}

static int greet(struct peer *peer)
{
    struct buffer b = { 0 };

    put_validate(&b);
    return ask_once(peer, &b, NULL, 0) < 0 ? -1 : ping(peer);
}

int peer_open(struct peer *peer, const struct server *server)
{
    int error;

    if (peer_dial(peer, server, 0) == 0 && greet(peer) == 0)
        return 0;
    error = errno;
    fprintf(stderr, "store_bench: %s: %s\n", server->name, strerror(error));
    peer_close(peer);
    errno = error;
    return -1;
}

void peer_close(struct peer *peer)
{
    if (peer->fd >= 0)
        close(peer->fd);
    peer->fd = -1;
}

void prepare(struct operation ops[OPERATIONS], int tag)
{
    static const char *const names[] = {
        "set+ping", "get", "raw-get", "add", "check", "compare-set"
    };
    static const size_t answers[] = { 4, 1, 16, 8, 1, 16 };
    char key[64], sum[64];

    snprintf(key, sizeof key, "/%d/value", tag);
    snprintf(sum, sizeof sum, "/%d/sum", tag);
    memset(ops, 0, OPERATIONS * sizeof *ops);
    for (int i = 0; i < OPERATIONS; i++) {
        ops[i].name = names[i];
        ops[i].answer = answers[i];
    }
    put_key(&ops[SET_PING].request, SET, key);
    put_text(&ops[SET_PING].request, "12345678");
    put_ping(&ops[SET_PING].request);
    put_one(&ops[WAIT_GET].request, WAIT, key);
    put_key(&ops[WAIT_GET].second, GET, key);
    ops[WAIT_GET].second_answer = 16;
    put_key(&ops[RAW_GET].request, GET, key);
    put_key(&ops[ADD_ONE].request, ADD, sum);
    put_u64(&ops[ADD_ONE].request, 1);
    put_one(&ops[CHECK_ONE].request, CHECK, key);
    put_key(&ops[COMPARE].request, COMPARE_SET, key);
    put_text(&ops[COMPARE].request, "12345678");
    put_text(&ops[COMPARE].request, "12345678");
}

void forget(struct operation ops[OPERATIONS])
{
    for (int i = 0; i < OPERATIONS; i++) {
        free(ops[i].request.data);
        free(ops[i].second.data);
    }
}

int operate(struct peer *peer, const struct operation *op)
{
    char answer[16];

    if (ask(peer, &op->request, answer, op->answer) < 0)
        return -1;
    return op->second_answer ? ask(peer, &op->second, answer, op->second_answer) : 0;
}

/* ---- Keys by the thousand ------------------------------------------------------------ */

void set_all(const struct server *server, int tag, int n)
{
    struct peer peer;
    char nonce[4];

    if (peer_open(&peer, server) < 0)
        return;
    peer.deadline = now() + 3 * LIMIT_SECONDS;
    for (int i = 0; i < n; i += 512) {
        struct buffer b = { 0 };

        put_many(&b, MULTI_SET, tag, i, n - i < 512 ? n - i : 512);
        put_ping(&b);
        if (ask_once(&peer, &b, nonce, sizeof nonce) < 0)
            break;
    }
    peer_close(&peer);
}

void delete_all(const struct server *server, int tag, int n)
{
    struct peer peer;
    char key[64];
    const size_t prefix = (size_t)snprintf(key, sizeof key, "/%d/key/", tag);
    int64_t answers[512];

    if (peer_open(&peer, server) < 0)
        return;
    peer.deadline = now() + 3 * LIMIT_SECONDS;
    for (int i = 0; i < n;) {
        struct buffer b = { 0 };
        const int first = i;

        for (; i < n && i < first + 512; i++) {
            put_u8(&b, DELETE_KEY);
            put_blob(&b, key, number_key(key, prefix, i));
        }
        if (ask_once(&peer, &b, answers, (size_t)(i - first) * 8) < 0)
            break;
    }
    peer_close(&peer);
}
