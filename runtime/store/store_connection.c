/* SPDX-License-Identifier: Apache-2.0 */
/* store_connection.c - a client's connection to a store server.
 *
 * store_connection_command() and store_connection_put...() collect a request, which one send()
 * sends.  Received bytes go into a small buffer, so one recv() gets a length and the bytes behind
 * it.  The rest of a large value is received directly into the value's memory.  The server may
 * claim any length, so the memory of the value grows only as bytes come.
 *
 * The first failure shuts the connection down, and each later request fails with the same cause.
 * Before the client sends a request that gets no answer, it checks that the server has not closed
 * the connection.  The client counts such requests since the last answer.  The error of a broken
 * connection says how many of them may be lost.
 *
 * The server has no timeouts.  When a wait reaches its deadline, the client cancels the wait and
 * checks which keys are missing, to name them.  The connection can then be used again.  The client
 * also cancels a wait when a worker dies, since that worker may be the one that sets the key. */
#include "runtime/store/store_connection.h"

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

#define MOST_REPLY ((uint64_t)1 << 31) /* most bytes of a value */
#define MOST_AHEAD ((size_t)1 << 20)   /* most bytes allocated before a value's first byte comes */
#define MOST_KEPT ((size_t)64 << 10)   /* a larger request buffer is freed after the send */
#define QUOTED_BYTES 60                /* most bytes of a key in an error message */

enum {
    MOST_LOOKED_FOR = 64, /* most keys that are checked after a wait timed out */
    MOST_NAMED = 8        /* most missing keys that the error message names */
};

void store_connection_open(struct store_connection *c, int fd, struct secure_channel *channel,
                           const char *where, int timeout_ms)
{
    const struct timeval patience = { .tv_sec = timeout_ms / 1000,
                                      .tv_usec = timeout_ms ? timeout_ms % 1000 * 1000 : 1 };

    *c = (struct store_connection){
        .fd = fd, .channel = channel, .timeout_ms = timeout_ms, .call = "connect", .alarm = -1
    };
    descriptor_own(fd);
    snprintf(c->where, sizeof c->where, "%s", where);
    c->answered = clock_ms();
    if (timeout_ms >= 0) /* recv() then ends by itself, without a poll() before it */
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
}

void store_connection_close(struct store_connection *c)
{
    secure_channel_destroy(c->channel);
    descriptor_close(c->fd);
    free(c->out);
}

/* ---- Error text ------------------------------------------------------------- */

const char *store_connection_quote(struct bytes key, char quoted[QUOTED_SIZE])
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

/* Writes the operation and its keys, for example 'wait "first" and 3 others'. */
static void say_call(const struct store_connection *c, char *text, size_t size)
{
    char key[QUOTED_SIZE] = "", others[32] = "";

    if (c->count > 0)
        store_connection_quote(c->keys[0], key);
    if (c->count > 1)
        snprintf(others, sizeof others, " and %d other%s", c->count - 1, c->count > 2 ? "s" : "");
    snprintf(text, size, "%s%s%s%s", c->call, *key ? " " : "", key, others);
}

ct_status store_connection_break(struct store_connection *c, ct_status status, const char *format,
                                 ...)
{
    char call[160], words[200], lost[96] = "";
    va_list args;

    va_start(args, format);
    vsnprintf(words, sizeof words, format, args);
    va_end(args);
    say_call(c, call, sizeof call);
    snprintf(c->cause, sizeof c->cause, "%s during %s", words, call);
    c->broken_at = clock_ms();
    shutdown(c->fd, SHUT_RDWR);
    if (c->unanswered > 0)
        snprintf(lost, sizeof lost, "; %d earlier request%s without an answer may be lost",
                 c->unanswered, c->unanswered > 1 ? "s" : "");
    return ct_fail(status, "the store at %s is gone: %s, %.1f s after its last answer%s", c->where,
                   c->cause, (double)(c->broken_at - c->answered) / 1e3, lost);
}

static ct_status still_gone(const struct store_connection *c)
{
    char call[160];

    say_call(c, call, sizeof call);
    return ct_fail(CT_ERR_PEER, "the store at %s has been gone for %.1f s (%s); %s was not sent",
                   c->where, (double)(clock_ms() - c->broken_at) / 1e3, c->cause, call);
}

static ct_status closed(struct store_connection *c)
{
    return store_connection_break(c, CT_ERR_PEER, "it closed the connection%s",
                                  c->command == STORE_ADD ? " (is the value a number?)" : "");
}

static ct_status broke(struct store_connection *c, int error)
{
    return store_connection_break(c, CT_ERR_PEER, "the connection broke (%s)", strerror(error));
}

/* ---- Requests --------------------------------------------------------------- */

void store_connection_call(struct store_connection *c, const char *call, const struct bytes *keys,
                           int count)
{
    c->call = call;
    c->keys = keys;
    c->count = count;
}

void store_connection_put(struct store_connection *c, const void *data, size_t bytes)
{
    if (bytes > c->room - c->size) {
        const size_t needed = c->size + bytes;
        const size_t room = needed > 2 * c->room ? needed + 256 : 2 * c->room;
        unsigned char *out = realloc(c->out, room);

        if (!out) {
            c->out_of_memory = 1;
            return;
        }
        c->out = out;
        c->room = room;
    }
    if (bytes > 0)
        memcpy(c->out + c->size, data, bytes);
    c->size += bytes;
}

void store_connection_command(struct store_connection *c, enum store_command command)
{
    const uint8_t byte = (uint8_t)command;

    c->command = command;
    store_connection_put(c, &byte, 1);
}

static void put_u64(struct store_connection *c, uint64_t value)
{
    store_connection_put(c, &value, sizeof value);
}

void store_connection_put_blob(struct store_connection *c, struct bytes blob)
{
    put_u64(c, blob.size);
    store_connection_put(c, blob.data, blob.size);
}

void store_connection_put_key(struct store_connection *c, struct bytes key)
{
    put_u64(c, key.size + 1);
    store_connection_put(c, "/", 1);
    store_connection_put(c, key.data, key.size);
}

void store_connection_put_keys(struct store_connection *c, const struct bytes *keys, int count)
{
    put_u64(c, (uint64_t)count);
    for (int i = 0; i < count; i++)
        store_connection_put_key(c, keys[i]);
}

/* Empties the request buffer.  Frees it if it is large. */
static void forget_request(struct store_connection *c)
{
    c->size = 0;
    c->out_of_memory = 0;
    if (c->room > MOST_KEPT) {
        free(c->out);
        c->out = NULL;
        c->room = 0;
    }
}

ct_status store_connection_send(struct store_connection *c)
{
    ct_status status;

    if (c->cause[0])
        status = still_gone(c);
    else if (c->out_of_memory)
        status = ct_fail(CT_ERR_NOMEM, "no memory for a %s of the store at %s", c->call, c->where);
    else {
        status =
            secure_write_all(c->channel, c->fd, c->out, c->size, deadline_after(c->timeout_ms));
        if (status != CT_OK)
            status = store_connection_break(c, status, "a request could not be sent (%s)",
                                            ct_last_error());
    }
    forget_request(c);
    return status;
}

/* Returns an error if the server has closed the connection.  This check is needed because the
 * kernel reports no error for the first send after the server closed.  c->in must be empty, since
 * bytes of an encrypted connection are read into it. */
static ct_status look_for_the_end(struct store_connection *c)
{
    char byte;
    ssize_t n;

    if (c->channel) {
        n = secure_channel_read(c->channel, c->in, sizeof c->in);
        c->taken = 0;
        c->filled = n > 0 ? (size_t)n : 0;
    } else {
        n = recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    }

    if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
        return CT_OK;
    return n == 0 ? closed(c) : broke(c, errno);
}

ct_status store_connection_post(struct store_connection *c)
{
    ct_status status = CT_OK;

    if (!c->cause[0] && c->taken == c->filled)
        status = look_for_the_end(c);
    if (status != CT_OK)
        forget_request(c);
    else
        status = store_connection_send(c);
    c->unanswered += status == CT_OK;
    return status;
}

ct_status store_connection_ask(struct store_connection *c, void *answer, size_t bytes)
{
    const ct_status status = store_connection_send(c);

    return status == CT_OK ? store_connection_get(c, answer, bytes) : status;
}

/* ---- Answers ---------------------------------------------------------------- */

/* Returns 1 if the encrypted channel has received bytes that the caller can read, even if the
 * socket is not readable. */
static int has_more(const struct store_connection *c)
{
    return c->channel && secure_channel_has_more(c->channel);
}

int store_connection_ready(const struct store_connection *c, int64_t deadline)
{
    struct pollfd ready = { .fd = c->fd, .events = POLLIN };

    while (c->taken == c->filled && !has_more(c)) {
        const int polled = poll(&ready, 1, time_left_ms(deadline, 60000));

        if (polled > 0 || (polled < 0 && errno != EINTR))
            return 1;
        if (polled == 0 && clock_ms() >= deadline)
            return 0;
    }
    return 1;
}

/* Receives at least one byte.  Sets *got to the number of bytes. */
static ct_status store_connection_receive(struct store_connection *c, void *to, size_t room,
                                          int64_t deadline, size_t *got)
{
    ssize_t n;

    while ((n = c->channel ? secure_channel_read(c->channel, to, room) : recv(c->fd, to, room, 0))
           < 0) {
        if (errno != EAGAIN && errno != EINTR)
            return broke(c, errno);
        if (!store_connection_ready(c, deadline))
            return store_connection_break(c, CT_ERR_TIMEOUT, "it did not answer in %d ms",
                                          c->timeout_ms);
    }
    *got = (size_t)n;
    return n > 0 ? CT_OK : closed(c);
}

static ct_status store_connection_take(struct store_connection *c, unsigned char *to, size_t bytes,
                                       int64_t deadline)
{
    ct_status status = CT_OK;

    while (bytes > 0 && status == CT_OK) {
        size_t n = c->filled - c->taken;

        if (n > 0) {
            n = n < bytes ? n : bytes;
            memcpy(to, c->in + c->taken, n);
            c->taken += n;
        } else if (bytes >= sizeof c->in) {
            status = store_connection_receive(c, to, bytes, deadline, &n);
        } else {
            c->taken = c->filled = 0;
            status = store_connection_receive(c, c->in, sizeof c->in, deadline, &c->filled);
        }
        to += n;
        bytes -= n;
    }
    if (status == CT_OK) {
        c->answered = clock_ms();
        c->unanswered = 0;
    }
    return status;
}

ct_status store_connection_get(struct store_connection *c, void *data, size_t bytes)
{
    return store_connection_take(c, data, bytes, deadline_after(c->timeout_ms));
}

/* Receives a value of `size` bytes.  Never allocates more than MOST_AHEAD or twice the bytes that
 * have come.  The caller frees *value, also after a failure. */
static ct_status store_connection_take_value(struct store_connection *c, size_t size,
                                             unsigned char **value)
{
    const int64_t deadline = deadline_after(c->timeout_ms);
    size_t got = 0;
    ct_status status;

    do {
        const size_t most = got >= MOST_AHEAD ? 2 * got : MOST_AHEAD;
        const size_t room = size < most ? size : most;
        unsigned char *larger = realloc(*value, room + 1);

        if (!larger)
            return store_connection_break(c, CT_ERR_NOMEM, "there is no memory for its %zu bytes",
                                          size);
        *value = larger;
        status = store_connection_take(c, larger + got, room - got, deadline);
        got = room;
    } while (got < size && status == CT_OK);
    return status;
}

ct_status store_connection_get_blob(struct store_connection *c, void **value, size_t *bytes)
{
    unsigned char *data = NULL;
    uint64_t size;
    ct_status status = store_connection_get(c, &size, sizeof size);

    if (status == CT_OK && size > MOST_REPLY)
        status = store_connection_break(
            c, CT_ERR_PEER, "it claims a value of %llu bytes, more than the %llu that are taken,",
            (unsigned long long)size, (unsigned long long)MOST_REPLY);
    if (status == CT_OK)
        status = store_connection_take_value(c, (size_t)size, &data);
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

/* Cancels a wait.  Sets *released to 1 if the wait ended just before.  The server then answers 0 to
 * the wait and 1 to the cancellation; otherwise it answers only 1. */
static ct_status cancel_wait(struct store_connection *c, int *released)
{
    uint8_t answer = 0;
    ct_status status;

    store_connection_command(c, STORE_CANCEL_WAIT);
    status = store_connection_ask(c, &answer, 1);
    *released = status == CT_OK && answer == 0;
    if (*released)
        status = store_connection_get(c, &answer, 1);
    if (status == CT_OK && answer != 1)
        status = store_connection_break(c, CT_ERR_PEER,
                                        "it answered %d instead of 1 to a cancelled wait", answer);
    return status;
}

static ct_status missing(const struct store_connection *c, const struct bytes *keys, int count,
                         const uint8_t *absent, int looked_for, int64_t waited)
{
    char names[MOST_NAMED * (QUOTED_SIZE + 2) + 1] = "", others[64] = "", key[QUOTED_SIZE];
    size_t used = 0;
    int found = 0;

    for (int i = 0; i < looked_for; i++)
        if (absent[i] && found++ < MOST_NAMED)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s",
                                     found > 1 ? ", " : "", store_connection_quote(keys[i], key));
    if (count > looked_for)
        snprintf(others, sizeof others, "%sperhaps some of %d others", found ? " and " : "",
                 count - looked_for);
    else if (found > MOST_NAMED)
        snprintf(others, sizeof others, " and %d other%s", found - MOST_NAMED,
                 found > MOST_NAMED + 1 ? "s" : "");
    return ct_fail(CT_ERR_TIMEOUT, "the store at %s: key%s %s%s %s not there after %lld ms",
                   c->where, found == 1 ? "" : "s", names, others,
                   found == 1 && !*others ? "is" : "are", (long long)waited);
}

ct_status store_connection_check_each(struct store_connection *c, const struct bytes *keys,
                                      int count, uint8_t *absent)
{
    for (int i = 0; i < count; i++) {
        store_connection_command(c, STORE_CHECK);
        store_connection_put_keys(c, &keys[i], 1);
    }
    return count > 0 ? store_connection_ask(c, absent, (size_t)count) : CT_OK;
}

/* Checks which keys are missing after a wait timed out.  Returns CT_OK if all keys came at the last
 * moment; else CT_ERR_TIMEOUT with the names of missing keys. */
static ct_status look_for(struct store_connection *c, const struct bytes *keys, int count,
                          int64_t waited)
{
    const int looked_for = count < MOST_LOOKED_FOR ? count : MOST_LOOKED_FOR;
    uint8_t absent[MOST_LOOKED_FOR] = { 1 };
    ct_status status = CT_OK;
    int found = 0;

    if (count > 1)
        status = store_connection_check_each(c, keys, looked_for, absent);
    for (int i = 0; i < looked_for; i++)
        found += absent[i] == 0;
    if (status != CT_OK || found == count)
        return status;
    return missing(c, keys, count, absent, looked_for, waited);
}

/* ---- Deaths ------------------------------------------------------------------ */

void store_connection_watch_deaths(struct store_connection *c, struct control *control,
                                   uint32_t known, int any)
{
    if (c->control && c->alarm >= 0)
        descriptor_close(c->alarm);
    c->control = control && control->head ? control : NULL;
    c->alarm = c->control ? control_alarm(control) : -1;
    descriptor_own(c->alarm);
    c->known = known;
    c->any = any;
}

static const struct control_death *new_death(struct store_connection *c)
{
    const uint32_t told = c->control ? control_deaths(c->control) : 0;

    for (; c->known < told; c->known++) {
        const struct control_death *death = control_death(c->control, c->known);

        if (c->any || death->how != CLD_EXITED || death->code != 0)
            return death;
    }
    return NULL;
}

/* Sets the error, and tells ctrun because of which rank the wait ended. */
static ct_status fail_for_death(struct store_connection *c, const struct control_death *death)
{
    const struct control_blame blame = { .on = { death->rank, BLAME_DIED } };
    char sentence[256];

    control_death_sentence(death, sentence, sizeof sentence);
    control_blame(c->control, &blame);
    /* Not ct_fail_because(), since death->rank is a rank of ctrun's job and not of a group. */
    return ct_fail(CT_ERR_PEER, "%s", sentence);
}

ct_status store_connection_check_deaths(struct store_connection *c)
{
    const struct control_death *death = new_death(c);

    return death ? fail_for_death(c, death) : CT_OK;
}

/* Waits.  Returns 1 if fd is readable, 0 if the deadline passed, and -1 if a death ended the wait.
 * Sets *death to that death, or to NULL. */
static int readable_or_death(struct store_connection *c, int fd, int64_t deadline,
                             const struct control_death **death)
{
    struct pollfd ready[2] = { { .fd = fd, .events = POLLIN },
                               { .fd = c && c->control ? c->alarm : -1, .events = POLLIN } };
    struct epoll_event event;

    for (;;) {
        const int polled = (*death = c ? new_death(c) : NULL)
                               ? poll(ready, 1, 0)
                               : poll(ready, 2, time_left_ms(deadline, 60000));

        if (polled > 0 && ready[1].revents) /* resets the alarm; new_death() reads the page */
            epoll_wait(c->alarm, &event, 1, 0);
        if ((polled > 0 && ready[0].revents) || (polled < 0 && errno != EINTR))
            return 1;
        if (*death)
            return -1;
        if (polled == 0 && clock_ms() >= deadline)
            return 0;
    }
}

/* Waits for an answer.  Returns 1 if bytes came, 0 if the deadline passed, and -1 if *death ended
 * the wait. */
static int answer_or_death(struct store_connection *c, int64_t deadline,
                           const struct control_death **death)
{
    if (!c->control)
        return store_connection_ready(c, deadline);
    return c->taken < c->filled || has_more(c) ? 1 : readable_or_death(c, c->fd, deadline, death);
}

ct_status store_connection_wait_beside(struct store_connection *c, int fd, int64_t deadline)
{
    const struct control_death *death;
    const int result = readable_or_death(c, fd, deadline, &death);

    if (result > 0)
        return CT_OK;
    if (result == 0)
        return ct_fail(CT_ERR_TIMEOUT, "the deadline passed");
    return fail_for_death(c, death);
}

static ct_status say_death(struct store_connection *c, const struct bytes *keys,
                           const struct control_death *death)
{
    char key[QUOTED_SIZE];

    c->known++;
    return ct_fail_in(fail_for_death(c, death), "waiting for key %s of the store at %s: ",
                      store_connection_quote(keys[0], key), c->where);
}

/* ---- WAIT -------------------------------------------------------------------- */

ct_status store_connection_wait(struct store_connection *c, const struct bytes *keys, int count,
                                int64_t deadline)
{
    const int64_t start = clock_ms();
    const struct control_death *death = NULL;
    char key[QUOTED_SIZE];
    uint8_t answer = 0;
    int released, came;
    ct_status status;

    store_connection_command(c, STORE_WAIT);
    store_connection_put_keys(c, keys, count);
    status = store_connection_send(c);
    if (status != CT_OK)
        return status;
    if (c->control && count > 0)
        control_waiting(c->control, "key %s of the store", store_connection_quote(keys[0], key));
    came = answer_or_death(c, deadline, &death);
    if (c->control)
        control_waiting(c->control, "%s", "");
    if (came > 0) {
        status = store_connection_get(c, &answer, 1);
        if (status == CT_OK && answer != 0)
            status = store_connection_break(c, CT_ERR_PEER, "it answered %d instead of 0", answer);
        return status;
    }
    status = cancel_wait(c, &released);
    if (status != CT_OK || released)
        return status;
    return death ? say_death(c, keys, death) : look_for(c, keys, count, clock_ms() - start);
}
