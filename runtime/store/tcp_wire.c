/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_wire.c - one connection to a store server.
 *
 * wire_command() and wire_put...() collect a request, one send() takes it away.
 * An answer is read greedily into a small buffer, so a length and the bytes that
 * follow come with one recv(); the rest of a large value goes straight to its
 * place.  A length is only what the server claims: memory grows with what came.
 *
 * The first failure closes the connection for both sides and is kept as the
 * cause that each later request repeats.  A request without an answer looks
 * whether the server is still there before it is sent; those that were sent and
 * not followed by an answer are counted, so that none is lost without a word. */
#include "runtime/store/tcp_wire.h"

#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "runtime/net/socket.h"
#include "runtime/util/clock.h"
#include "runtime/util/forks.h"

#define MOST_REPLY ((uint64_t)1 << 31) /* bytes of one value */
#define MOST_AHEAD ((size_t)1 << 20)   /* bytes allocated before the first came */
#define MOST_KEPT ((size_t)64 << 10)   /* bytes of a sent request whose memory is kept */
#define QUOTED_BYTES 60

void wire_open(struct wire *wire, int fd, const char *where, int timeout_ms)
{
    const struct timeval patience = { .tv_sec = timeout_ms / 1000,
                                      .tv_usec = timeout_ms ? timeout_ms % 1000 * 1000 : 1 };

    *wire = (struct wire){ .fd = fd, .timeout_ms = timeout_ms, .call = "connect", .alarm = -1 };
    descriptor_own(fd);
    snprintf(wire->where, sizeof wire->where, "%s", where);
    wire->answered = clock_ms();
    if (timeout_ms >= 0) /* one recv() instead of poll() and recv() */
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
}

void wire_close(struct wire *wire)
{
    descriptor_close(wire->fd);
    free(wire->out);
}

/* ---- What is said ----------------------------------------------------------- */

const char *wire_quote(struct bytes key, char quoted[QUOTED_SIZE])
{
    const unsigned char *from = key.data;
    const size_t size = key.size < QUOTED_BYTES ? key.size : QUOTED_BYTES;
    char *at = quoted;

    *at++ = '"';
    for (size_t i = 0; i < size; i++)
        *at++ = iscntrl(from[i]) ? '?' : (char)from[i];
    snprintf(at, 5, "%s\"", key.size > size ? "..." : "");
    return quoted;
}

/* get "key"; wait "first" and 3 others; num_keys */
static void say_call(const struct wire *wire, char *text, size_t size)
{
    char key[QUOTED_SIZE] = "", others[32] = "";

    if (wire->count > 0)
        wire_quote(wire->keys[0], key);
    if (wire->count > 1)
        snprintf(others, sizeof others, " and %d other%s", wire->count - 1,
                 wire->count > 2 ? "s" : "");
    snprintf(text, size, "%s%s%s%s", wire->call, *key ? " " : "", key, others);
}

ct_status wire_break(struct wire *wire, ct_status status, const char *format, ...)
{
    char call[160], words[200], lost[96] = "";
    va_list args;

    va_start(args, format);
    vsnprintf(words, sizeof words, format, args);
    va_end(args);
    say_call(wire, call, sizeof call);
    snprintf(wire->cause, sizeof wire->cause, "%s during %s", words, call);
    wire->broken_at = clock_ms();
    shutdown(wire->fd, SHUT_RDWR);
    if (wire->unanswered > 0)
        snprintf(lost, sizeof lost, "; %d earlier request%s without an answer may be lost",
                 wire->unanswered, wire->unanswered > 1 ? "s" : "");
    return ct_fail(status, "the store at %s is gone: %s, %.1f s after its last answer%s",
                   wire->where, wire->cause, (double)(wire->broken_at - wire->answered) / 1e3,
                   lost);
}

static ct_status still_gone(const struct wire *wire)
{
    char call[160];

    say_call(wire, call, sizeof call);
    return ct_fail(CT_ERR_PEER, "the store at %s is gone since %.1f s (%s); %s was not sent",
                   wire->where, (double)(clock_ms() - wire->broken_at) / 1e3, wire->cause, call);
}

static ct_status closed(struct wire *wire)
{
    return wire_break(wire, CT_ERR_PEER, "it closed the connection%s",
                      wire->command == STORE_ADD ? " (is the value a number?)" : "");
}

static ct_status broke(struct wire *wire, int error)
{
    return wire_break(wire, CT_ERR_PEER, "the connection broke (%s)", strerror(error));
}

/* ---- Requests --------------------------------------------------------------- */

void wire_call(struct wire *wire, const char *call, const struct bytes *keys, int count)
{
    wire->call = call;
    wire->keys = keys;
    wire->count = count;
}

void wire_put(struct wire *wire, const void *data, size_t bytes)
{
    if (bytes > wire->room - wire->size) {
        const size_t needed = wire->size + bytes;
        const size_t room = needed > 2 * wire->room ? needed + 256 : 2 * wire->room;
        unsigned char *out = realloc(wire->out, room);

        if (!out) {
            wire->out_of_memory = 1;
            return;
        }
        wire->out = out;
        wire->room = room;
    }
    if (bytes > 0)
        memcpy(wire->out + wire->size, data, bytes);
    wire->size += bytes;
}

void wire_command(struct wire *wire, enum store_command command)
{
    const uint8_t byte = (uint8_t)command;

    wire->command = command;
    wire_put(wire, &byte, 1);
}

static void put_u64(struct wire *wire, uint64_t value)
{
    wire_put(wire, &value, sizeof value);
}

void wire_put_blob(struct wire *wire, struct bytes blob)
{
    put_u64(wire, blob.size);
    wire_put(wire, blob.data, blob.size);
}

void wire_put_key(struct wire *wire, struct bytes key)
{
    put_u64(wire, key.size + 1);
    wire_put(wire, "/", 1);
    wire_put(wire, key.data, key.size);
}

void wire_put_keys(struct wire *wire, const struct bytes *keys, int count)
{
    put_u64(wire, (uint64_t)count);
    for (int i = 0; i < count; i++)
        wire_put_key(wire, keys[i]);
}

/* The next request starts from nothing, whatever became of this one. */
static void forget_request(struct wire *wire)
{
    wire->size = 0;
    wire->out_of_memory = 0;
    if (wire->room > MOST_KEPT) {
        free(wire->out);
        wire->out = NULL;
        wire->room = 0;
    }
}

ct_status wire_send(struct wire *wire)
{
    ct_status status;

    if (wire->cause[0])
        status = still_gone(wire);
    else if (wire->out_of_memory)
        status =
            ct_fail(CT_ERR_NOMEM, "no memory for a %s of the store at %s", wire->call, wire->where);
    else {
        status =
            socket_write_all(wire->fd, wire->out, wire->size, deadline_after(wire->timeout_ms));
        if (status != CT_OK)
            status = wire_break(wire, status, "a request could not be sent (%s)", ct_last_error());
    }
    forget_request(wire);
    return status;
}

/* A server that is gone takes the first request after its death without a word:
 * the kernel has it, and nobody will ever answer. */
static ct_status look_for_the_end(struct wire *wire)
{
    char byte;
    const ssize_t n = recv(wire->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

    if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
        return CT_OK;
    return n == 0 ? closed(wire) : broke(wire, errno);
}

ct_status wire_tell(struct wire *wire)
{
    ct_status status = CT_OK;

    if (!wire->cause[0] && wire->taken == wire->filled)
        status = look_for_the_end(wire);
    if (status != CT_OK)
        forget_request(wire);
    else
        status = wire_send(wire);
    wire->unanswered += status == CT_OK;
    return status;
}

ct_status wire_ask(struct wire *wire, void *answer, size_t bytes)
{
    const ct_status status = wire_send(wire);

    return status == CT_OK ? wire_get(wire, answer, bytes) : status;
}

/* ---- Answers ---------------------------------------------------------------- */

int wire_ready(const struct wire *wire, int64_t deadline)
{
    struct pollfd ready = { .fd = wire->fd, .events = POLLIN };

    while (wire->taken == wire->filled) {
        const int polled = poll(&ready, 1, time_left_ms(deadline, 60000));

        if (polled > 0 || (polled < 0 && errno != EINTR))
            return 1;
        if (polled == 0 && clock_ms() >= deadline)
            return 0;
    }
    return 1;
}

/* At least a byte. */
static ct_status receive(struct wire *wire, void *to, size_t room, int64_t deadline, size_t *got)
{
    ssize_t n;

    while ((n = recv(wire->fd, to, room, 0)) < 0) {
        if (errno != EAGAIN && errno != EINTR)
            return broke(wire, errno);
        if (!wire_ready(wire, deadline))
            return wire_break(wire, CT_ERR_TIMEOUT, "it did not answer in %d ms", wire->timeout_ms);
    }
    *got = (size_t)n;
    return n > 0 ? CT_OK : closed(wire);
}

static ct_status take(struct wire *wire, unsigned char *to, size_t bytes, int64_t deadline)
{
    ct_status status = CT_OK;

    while (bytes > 0 && status == CT_OK) {
        size_t n = wire->filled - wire->taken;

        if (n > 0) {
            n = n < bytes ? n : bytes;
            memcpy(to, wire->in + wire->taken, n);
            wire->taken += n;
        } else if (bytes >= sizeof wire->in) {
            status = receive(wire, to, bytes, deadline, &n);
        } else {
            wire->taken = wire->filled = 0;
            status = receive(wire, wire->in, sizeof wire->in, deadline, &wire->filled);
        }
        to += n;
        bytes -= n;
    }
    if (status == CT_OK) {
        wire->answered = clock_ms();
        wire->unanswered = 0;
    }
    return status;
}

ct_status wire_get(struct wire *wire, void *data, size_t bytes)
{
    return take(wire, data, bytes, deadline_after(wire->timeout_ms));
}

/* Never more memory than MOST_AHEAD or twice what came. */
static ct_status take_value(struct wire *wire, size_t size, unsigned char **value)
{
    const int64_t deadline = deadline_after(wire->timeout_ms);
    size_t got = 0;
    ct_status status;

    do {
        const size_t most = got >= MOST_AHEAD ? 2 * got : MOST_AHEAD;
        const size_t room = size < most ? size : most;
        unsigned char *larger = realloc(*value, room + 1);

        if (!larger)
            return wire_break(wire, CT_ERR_NOMEM, "there is no memory for its %zu bytes", size);
        *value = larger;
        status = take(wire, larger + got, room - got, deadline);
        got = room;
    } while (got < size && status == CT_OK);
    return status;
}

ct_status wire_get_blob(struct wire *wire, void **value, size_t *bytes)
{
    unsigned char *data = NULL;
    uint64_t size;
    ct_status status = wire_get(wire, &size, sizeof size);

    if (status == CT_OK && size > MOST_REPLY)
        status = wire_break(wire, CT_ERR_PEER,
                            "it claims a value of %llu bytes, more than the %llu that are taken,",
                            (unsigned long long)size, (unsigned long long)MOST_REPLY);
    if (status == CT_OK)
        status = take_value(wire, (size_t)size, &data);
    if (status != CT_OK) {
        free(data);
        return status;
    }
    data[size] = 0;
    *value = data;
    *bytes = (size_t)size;
    return CT_OK;
}
