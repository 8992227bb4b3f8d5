/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_wire.c - one connection to a store server.
 *
 * wire_command() and wire_put...() collect a request that one send() sends.  An answer is read
 * greedily into a small buffer, so that a length and the bytes behind it come with one recv(); the
 * rest of a large value is received in its place.  The server may claim any length, so memory grows
 * with the bytes that came.
 *
 * The first failure shuts the connection down.  Each later request repeats its cause.  Before a
 * request without an answer is sent, the client checks that the server has not closed the
 * connection.  The requests sent since the last answer are counted, and the error of a broken
 * connection says how many may be lost.
 *
 * The server has no timeouts.  A wait that runs into its deadline is cancelled; then the client
 * checks which keys are missing, names them, and the connection can be used again.  A wait that a
 * death ends is cancelled, too: the dead rank may be the one that sets the key. */
#include "runtime/store/tcp_wire.h"

#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "runtime/monitor/control_page.h"
#include "runtime/net/secure_channel.h"
#include "runtime/net/socket.h"
#include "runtime/util/clock.h"
#include "runtime/util/forks.h"

#define MOST_REPLY ((uint64_t)1 << 31) /* bytes of one value */
#define MOST_AHEAD ((size_t)1 << 20)   /* bytes allocated before the first byte comes */
#define MOST_KEPT ((size_t)64 << 10)   /* bytes of a sent request whose memory is kept */
#define QUOTED_BYTES 60

enum {
    MOST_LOOKED_FOR = 64, /* missing keys of a wait that timed out */
    MOST_NAMED = 8
};

void wire_open(struct store_wire *wire, int fd, struct secure_channel *channel, const char *where,
               int timeout_ms)
{
    const struct timeval patience = { .tv_sec = timeout_ms / 1000,
                                      .tv_usec = timeout_ms ? timeout_ms % 1000 * 1000 : 1 };

    *wire = (struct store_wire){
        .fd = fd, .channel = channel, .timeout_ms = timeout_ms, .call = "connect", .alarm = -1
    };
    descriptor_own(fd);
    snprintf(wire->where, sizeof wire->where, "%s", where);
    wire->answered = clock_ms();
    if (timeout_ms >= 0) /* one recv() instead of poll() and recv() */
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
}

void wire_close(struct store_wire *wire)
{
    secure_channel_destroy(wire->channel);
    descriptor_close(wire->fd);
    free(wire->out);
}

/* ---- Error text ------------------------------------------------------------- */

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

/* Names the call: get "key"; wait "first" and 3 others; num_keys. */
static void say_call(const struct store_wire *wire, char *text, size_t size)
{
    char key[QUOTED_SIZE] = "", others[32] = "";

    if (wire->count > 0)
        wire_quote(wire->keys[0], key);
    if (wire->count > 1)
        snprintf(others, sizeof others, " and %d other%s", wire->count - 1,
                 wire->count > 2 ? "s" : "");
    snprintf(text, size, "%s%s%s%s", wire->call, *key ? " " : "", key, others);
}

ct_status wire_break(struct store_wire *wire, ct_status status, const char *format, ...)
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

static ct_status still_gone(const struct store_wire *wire)
{
    char call[160];

    say_call(wire, call, sizeof call);
    return ct_fail(CT_ERR_PEER, "the store at %s is gone since %.1f s (%s); %s was not sent",
                   wire->where, (double)(clock_ms() - wire->broken_at) / 1e3, wire->cause, call);
}

static ct_status closed(struct store_wire *wire)
{
    return wire_break(wire, CT_ERR_PEER, "it closed the connection%s",
                      wire->command == STORE_ADD ? " (is the value a number?)" : "");
}

static ct_status broke(struct store_wire *wire, int error)
{
    return wire_break(wire, CT_ERR_PEER, "the connection broke (%s)", strerror(error));
}

/* ---- Requests --------------------------------------------------------------- */

void wire_call(struct store_wire *wire, const char *call, const struct bytes *keys, int count)
{
    wire->call = call;
    wire->keys = keys;
    wire->count = count;
}

void wire_put(struct store_wire *wire, const void *data, size_t bytes)
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

void wire_command(struct store_wire *wire, enum store_command command)
{
    const uint8_t byte = (uint8_t)command;

    wire->command = command;
    wire_put(wire, &byte, 1);
}

static void put_u64(struct store_wire *wire, uint64_t value)
{
    wire_put(wire, &value, sizeof value);
}

void wire_put_blob(struct store_wire *wire, struct bytes blob)
{
    put_u64(wire, blob.size);
    wire_put(wire, blob.data, blob.size);
}

void wire_put_key(struct store_wire *wire, struct bytes key)
{
    put_u64(wire, key.size + 1);
    wire_put(wire, "/", 1);
    wire_put(wire, key.data, key.size);
}

void wire_put_keys(struct store_wire *wire, const struct bytes *keys, int count)
{
    put_u64(wire, (uint64_t)count);
    for (int i = 0; i < count; i++)
        wire_put_key(wire, keys[i]);
}

/* Empties the buffer for the next request. */
static void forget_request(struct store_wire *wire)
{
    wire->size = 0;
    wire->out_of_memory = 0;
    if (wire->room > MOST_KEPT) {
        free(wire->out);
        wire->out = NULL;
        wire->room = 0;
    }
}

ct_status wire_send(struct store_wire *wire)
{
    ct_status status;

    if (wire->cause[0])
        status = still_gone(wire);
    else if (wire->out_of_memory)
        status =
            ct_fail(CT_ERR_NOMEM, "no memory for a %s of the store at %s", wire->call, wire->where);
    else {
        status = secure_write_all(wire->channel, wire->fd, wire->out, wire->size,
                                  deadline_after(wire->timeout_ms));
        if (status != CT_OK)
            status = wire_break(wire, status, "a request could not be sent (%s)", ct_last_error());
    }
    forget_request(wire);
    return status;
}

/* Checks that the server has not closed the connection: the kernel would still take one request
 * without an error.  All received bytes are read, so there is room for one that comes. */
static ct_status look_for_the_end(struct store_wire *wire)
{
    char byte;
    ssize_t n;

    if (wire->channel) {
        n = secure_channel_read(wire->channel, wire->in, sizeof wire->in);
        wire->taken = 0;
        wire->filled = n > 0 ? (size_t)n : 0;
    } else {
        n = recv(wire->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    }

    if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
        return CT_OK;
    return n == 0 ? closed(wire) : broke(wire, errno);
}

ct_status wire_post(struct store_wire *wire)
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

ct_status wire_ask(struct store_wire *wire, void *answer, size_t bytes)
{
    const ct_status status = wire_send(wire);

    return status == CT_OK ? wire_get(wire, answer, bytes) : status;
}

/* ---- Answers ---------------------------------------------------------------- */

/* Says whether the channel has bytes, even if the socket is not readable. */
static int has_more(const struct store_wire *wire)
{
    return wire->channel && secure_channel_has_more(wire->channel);
}

int wire_ready(const struct store_wire *wire, int64_t deadline)
{
    struct pollfd ready = { .fd = wire->fd, .events = POLLIN };

    while (wire->taken == wire->filled && !has_more(wire)) {
        const int polled = poll(&ready, 1, time_left_ms(deadline, 60000));

        if (polled > 0 || (polled < 0 && errno != EINTR))
            return 1;
        if (polled == 0 && clock_ms() >= deadline)
            return 0;
    }
    return 1;
}

/* Receives at least one byte. */
static ct_status wire_receive(struct store_wire *wire, void *to, size_t room, int64_t deadline,
                              size_t *got)
{
    ssize_t n;

    while ((n = wire->channel ? secure_channel_read(wire->channel, to, room)
                              : recv(wire->fd, to, room, 0))
           < 0) {
        if (errno != EAGAIN && errno != EINTR)
            return broke(wire, errno);
        if (!wire_ready(wire, deadline))
            return wire_break(wire, CT_ERR_TIMEOUT, "it did not answer in %d ms", wire->timeout_ms);
    }
    *got = (size_t)n;
    return n > 0 ? CT_OK : closed(wire);
}

static ct_status wire_take(struct store_wire *wire, unsigned char *to, size_t bytes,
                           int64_t deadline)
{
    ct_status status = CT_OK;

    while (bytes > 0 && status == CT_OK) {
        size_t n = wire->filled - wire->taken;

        if (n > 0) {
            n = n < bytes ? n : bytes;
            memcpy(to, wire->in + wire->taken, n);
            wire->taken += n;
        } else if (bytes >= sizeof wire->in) {
            status = wire_receive(wire, to, bytes, deadline, &n);
        } else {
            wire->taken = wire->filled = 0;
            status = wire_receive(wire, wire->in, sizeof wire->in, deadline, &wire->filled);
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

ct_status wire_get(struct store_wire *wire, void *data, size_t bytes)
{
    return wire_take(wire, data, bytes, deadline_after(wire->timeout_ms));
}

/* Never allocates more than MOST_AHEAD or twice the bytes that came. */
static ct_status wire_take_value(struct store_wire *wire, size_t size, unsigned char **value)
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
        status = wire_take(wire, larger + got, room - got, deadline);
        got = room;
    } while (got < size && status == CT_OK);
    return status;
}

ct_status wire_get_blob(struct store_wire *wire, void **value, size_t *bytes)
{
    unsigned char *data = NULL;
    uint64_t size;
    ct_status status = wire_get(wire, &size, sizeof size);

    if (status == CT_OK && size > MOST_REPLY)
        status = wire_break(wire, CT_ERR_PEER,
                            "it claims a value of %llu bytes, more than the %llu that are taken,",
                            (unsigned long long)size, (unsigned long long)MOST_REPLY);
    if (status == CT_OK)
        status = wire_take_value(wire, (size_t)size, &data);
    if (status != CT_OK) {
        free(data);
        return status;
    }
    data[size] = 0;
    *value = data;
    *bytes = (size_t)size;
    return CT_OK;
}

/* ---- Waits that end early ---------------------------------------------------- */

/* The server answers 1.  If the wait was released just before, it answers 0 and 1. */
static ct_status cancel_wait(struct store_wire *w, int *released)
{
    uint8_t answer = 0;
    ct_status status;

    wire_command(w, STORE_CANCEL_WAIT);
    status = wire_ask(w, &answer, 1);
    *released = status == CT_OK && answer == 0;
    if (*released)
        status = wire_get(w, &answer, 1);
    if (status == CT_OK && answer != 1)
        status =
            wire_break(w, CT_ERR_PEER, "it answered %d instead of 1 to a cancelled wait", answer);
    return status;
}

static ct_status missing(const struct store_wire *w, const struct bytes *keys, int count,
                         const uint8_t *absent, int looked_for, int64_t waited)
{
    char names[MOST_NAMED * (QUOTED_SIZE + 2) + 1] = "", others[64] = "", key[QUOTED_SIZE];
    size_t used = 0;
    int found = 0;

    for (int i = 0; i < looked_for; i++)
        if (absent[i] && found++ < MOST_NAMED)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s",
                                     found > 1 ? ", " : "", wire_quote(keys[i], key));
    if (count > looked_for)
        snprintf(others, sizeof others, "%sperhaps some of %d others", found ? " and " : "",
                 count - looked_for);
    else if (found > MOST_NAMED)
        snprintf(others, sizeof others, " and %d other%s", found - MOST_NAMED,
                 found > MOST_NAMED + 1 ? "s" : "");
    return ct_fail(CT_ERR_TIMEOUT, "the store at %s: key%s %s%s %s not there after %lld ms",
                   w->where, found == 1 ? "" : "s", names, others,
                   found == 1 && !*others ? "is" : "are", (long long)waited);
}

ct_status wire_check_each(struct store_wire *w, const struct bytes *keys, int count,
                          uint8_t *absent)
{
    for (int i = 0; i < count; i++) {
        wire_command(w, STORE_CHECK);
        wire_put_keys(w, &keys[i], 1);
    }
    return count > 0 ? wire_ask(w, absent, (size_t)count) : CT_OK;
}

/* Fails with the missing keys.  CT_OK: all keys came at the last moment. */
static ct_status look_for(struct store_wire *w, const struct bytes *keys, int count, int64_t waited)
{
    const int looked_for = count < MOST_LOOKED_FOR ? count : MOST_LOOKED_FOR;
    uint8_t absent[MOST_LOOKED_FOR] = { 1 };
    ct_status status = CT_OK;
    int found = 0;

    if (count > 1)
        status = wire_check_each(w, keys, looked_for, absent);
    for (int i = 0; i < looked_for; i++)
        found += absent[i] == 0;
    if (status != CT_OK || found == count)
        return status;
    return missing(w, keys, count, absent, looked_for, waited);
}

/* ---- Deaths ------------------------------------------------------------------ */

void wire_watch_deaths(struct store_wire *w, struct control *control, uint32_t known, int any)
{
    if (w->control && w->alarm >= 0)
        descriptor_close(w->alarm);
    w->control = control && control->head ? control : NULL;
    w->alarm = w->control ? control_alarm(control) : -1;
    descriptor_own(w->alarm);
    w->known = known;
    w->any = any;
}

static const struct control_death *new_death(struct store_wire *w)
{
    const uint32_t told = w->control ? control_deaths(w->control) : 0;

    for (; w->known < told; w->known++) {
        const struct control_death *death = control_death(w->control, w->known);

        if (w->any || death->how != CLD_EXITED || death->code != 0)
            return death;
    }
    return NULL;
}

/* Tells ctrun which rank's death ended the wait. */
static ct_status fail_for_death(struct store_wire *w, const struct control_death *death)
{
    const struct control_blame blame = { .on = { death->rank, BLAME_DIED } };
    char sentence[256];

    control_death_sentence(death, sentence, sizeof sentence);
    control_blame(w->control, &blame);
    return ct_fail(CT_ERR_PEER, "%s", sentence); /* ctrun's numbers are not those of a group */
}

ct_status wire_check_deaths(struct store_wire *w)
{
    const struct control_death *death = new_death(w);

    return death ? fail_for_death(w, death) : CT_OK;
}

/* 1: fd is readable; 0: the deadline passed; -1: *death. */
static int readable_or_death(struct store_wire *w, int fd, int64_t deadline,
                             const struct control_death **death)
{
    struct pollfd ready[2] = { { .fd = fd, .events = POLLIN },
                               { .fd = w && w->control ? w->alarm : -1, .events = POLLIN } };
    struct epoll_event event;

    for (;;) {
        const int polled = (*death = w ? new_death(w) : NULL)
                               ? poll(ready, 1, 0)
                               : poll(ready, 2, time_left_ms(deadline, 60000));

        if (polled > 0 && ready[1].revents) /* only clears the edge; new_death() reads the page */
            epoll_wait(w->alarm, &event, 1, 0);
        if ((polled > 0 && ready[0].revents) || (polled < 0 && errno != EINTR))
            return 1;
        if (*death)
            return -1;
        if (polled == 0 && clock_ms() >= deadline)
            return 0;
    }
}

/* 1: something came; 0: the deadline passed; -1: *death. */
static int answer_or_death(struct store_wire *w, int64_t deadline,
                           const struct control_death **death)
{
    if (!w->control)
        return wire_ready(w, deadline);
    return w->taken < w->filled || has_more(w) ? 1 : readable_or_death(w, w->fd, deadline, death);
}

ct_status wire_wait_beside(struct store_wire *w, int fd, int64_t deadline)
{
    const struct control_death *death;
    const int result = readable_or_death(w, fd, deadline, &death);

    if (result > 0)
        return CT_OK;
    if (result == 0)
        return ct_fail(CT_ERR_TIMEOUT, "the deadline passed");
    return fail_for_death(w, death);
}

static ct_status say_death(struct store_wire *w, const struct bytes *keys,
                           const struct control_death *death)
{
    char key[QUOTED_SIZE];

    w->known++;
    return ct_fail_in(fail_for_death(w, death),
                      "waiting for key %s of the store at %s: ", wire_quote(keys[0], key),
                      w->where);
}

/* ---- WAIT -------------------------------------------------------------------- */

ct_status wire_wait(struct store_wire *w, const struct bytes *keys, int count, int64_t deadline)
{
    const int64_t start = clock_ms();
    const struct control_death *death = NULL;
    char key[QUOTED_SIZE];
    uint8_t answer = 0;
    int released, came;
    ct_status status;

    wire_command(w, STORE_WAIT);
    wire_put_keys(w, keys, count);
    status = wire_send(w);
    if (status != CT_OK)
        return status;
    if (w->control && count > 0)
        control_waiting(w->control, "key %s of the store", wire_quote(keys[0], key));
    came = answer_or_death(w, deadline, &death);
    if (w->control)
        control_waiting(w->control, "%s", "");
    if (came > 0) {
        status = wire_get(w, &answer, 1);
        if (status == CT_OK && answer != 0)
            status = wire_break(w, CT_ERR_PEER, "it answered %d instead of 0", answer);
        return status;
    }
    status = cancel_wait(w, &released);
    if (status != CT_OK || released)
        return status;
    return death ? say_death(w, keys, death) : look_for(w, keys, count, clock_ms() - start);
}
