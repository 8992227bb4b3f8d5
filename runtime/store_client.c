/* SPDX-License-Identifier: Apache-2.0 */
/* store_client.c - a store somewhere else, over PyTorch's wire.
 *
 * One connection, one request at a time under a mutex.  A key travels as "/" +
 * key; get is WAIT, then GET.  A wait that runs into its deadline is cancelled
 * and the connection is in step again; any other failure in the middle of an
 * answer leaves it out of step, so it is shut and every later call says why. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/clock.h"
#include "runtime/socket.h"
#include "runtime/store.h"
#include "runtime/store_lists.h"
#include "runtime/store_request.h"

#define MOST_REPLY ((uint64_t)1 << 31)

struct client_store {
    struct ct_store store;
    pthread_mutex_t lock;
    int fd;
    int broken;
    char where[300];         /* "host:port" */
    struct store_host *host; /* ct_store_tcp with is_master */
    unsigned char *out;      /* the request being put together */
    size_t size, room;
    int out_of_memory;
};

/* ---- Requests ------------------------------------------------------------- */

static void put(struct client_store *c, const void *data, size_t bytes)
{
    if (c->size + bytes > c->room) {
        const size_t room = (c->size + bytes) * 2 + 256;
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

static void begin(struct client_store *c, enum store_command command)
{
    const uint8_t byte = (uint8_t)command;

    c->size = 0;
    c->out_of_memory = 0;
    put(c, &byte, 1);
}

static void put_u64(struct client_store *c, uint64_t value)
{
    put(c, &value, sizeof value);
}

static void put_blob(struct client_store *c, struct bytes blob)
{
    put_u64(c, blob.size);
    put(c, blob.data, blob.size);
}

static void put_key(struct client_store *c, struct bytes key)
{
    put_u64(c, key.size + 1);
    put(c, "/", 1);
    put(c, key.data, key.size);
}

static ct_status gone(struct client_store *c, const char *doing, ct_status status)
{
    c->broken = 1;
    shutdown(c->fd, SHUT_RDWR);
    return ct_fail(status, "the store at %s is gone (%s): %s", c->where, doing, ct_last_error());
}

static ct_status send_request(struct client_store *c, const char *doing)
{
    ct_status status;

    if (c->broken)
        return ct_fail(CT_ERR_PEER, "the store at %s is gone (%s)", c->where, doing);
    if (c->out_of_memory)
        return ct_fail(CT_ERR_NOMEM, "no memory for a request to the store (%s)", doing);
    status = socket_write_all(c->fd, c->out, c->size, deadline_after(c->store.timeout_ms));
    return status == CT_OK ? CT_OK : gone(c, doing, status);
}

/* ---- Answers -------------------------------------------------------------- */

static ct_status get(struct client_store *c, void *data, size_t bytes, const char *doing)
{
    const ct_status status =
        socket_read_all(c->fd, data, bytes, deadline_after(c->store.timeout_ms));

    return status == CT_OK ? CT_OK : gone(c, doing, status);
}

static ct_status get_blob(struct client_store *c, void **value, size_t *bytes, const char *doing)
{
    uint64_t size;
    ct_status status = get(c, &size, sizeof size, doing);
    char *data;

    if (status != CT_OK)
        return status;
    data = size <= MOST_REPLY ? malloc((size_t)size + 1) : NULL;
    if (!data) {
        ct_fail(CT_ERR_NOMEM, "an answer of %llu bytes", (unsigned long long)size);
        return gone(c, doing, CT_ERR_NOMEM);
    }
    status = get(c, data, (size_t)size, doing);
    if (status != CT_OK) {
        free(data);
        return status;
    }
    data[size] = 0;
    *value = data;
    *bytes = (size_t)size;
    return CT_OK;
}

/* 1: an answer is there; 0: the deadline passed. */
static int answer_by(struct client_store *c, int64_t deadline)
{
    struct pollfd ready = { .fd = c->fd, .events = POLLIN };

    for (;;) {
        const int polled = poll(&ready, 1, time_left_ms(deadline, 60000));

        if (polled > 0 || (polled < 0 && errno != EINTR))
            return 1;
        if (polled == 0 && clock_ms() >= deadline)
            return 0;
    }
}

/* The server answers 1; before it 0, if the wait had just been released. */
static ct_status cancel_wait(struct client_store *c, int *released)
{
    uint8_t answer = 0;
    ct_status status;

    begin(c, STORE_CANCEL_WAIT);
    status = send_request(c, "cancel a wait");
    *released = 0;
    if (status == CT_OK)
        status = get(c, &answer, 1, "cancel a wait");
    if (status == CT_OK && answer == 0) {
        *released = 1;
        status = get(c, &answer, 1, "cancel a wait");
    }
    return status;
}

static ct_status wait_locked(struct client_store *c, const struct bytes *keys, int count,
                             int64_t deadline)
{
    const int64_t start = clock_ms();
    int released = 1;
    uint8_t answer;
    ct_status status;

    begin(c, STORE_WAIT);
    put_u64(c, (uint64_t)count);
    for (int i = 0; i < count; i++)
        put_key(c, keys[i]);
    status = send_request(c, "wait");
    if (status != CT_OK)
        return status;
    if (answer_by(c, deadline))
        return get(c, &answer, 1, "wait");
    status = cancel_wait(c, &released);
    if (status != CT_OK || released)
        return status;
    return ct_fail(CT_ERR_TIMEOUT, "the store at %s: key \"%.*s\"%s not there after %lld ms",
                   c->where, (int)keys[0].size, (const char *)keys[0].data,
                   count > 1 ? " or others are" : " is", (long long)(clock_ms() - start));
}

/* ---- The operations -------------------------------------------------------- */

static ct_status client_set(ct_store *store, struct bytes key, struct bytes value)
{
    struct client_store *c = (struct client_store *)store;
    ct_status status;

    pthread_mutex_lock(&c->lock);
    begin(c, STORE_SET);
    put_key(c, key);
    put_blob(c, value);
    status = send_request(c, "set");
    pthread_mutex_unlock(&c->lock);
    return status;
}

static ct_status client_get(ct_store *store, struct bytes key, int64_t deadline, void **value,
                            size_t *bytes)
{
    struct client_store *c = (struct client_store *)store;
    ct_status status;

    pthread_mutex_lock(&c->lock);
    status = wait_locked(c, &key, 1, deadline);
    if (status == CT_OK) {
        begin(c, STORE_GET);
        put_key(c, key);
        status = send_request(c, "get");
    }
    if (status == CT_OK)
        status = get_blob(c, value, bytes, "get");
    pthread_mutex_unlock(&c->lock);
    return status;
}

static ct_status add_wire_key(struct client_store *c, struct bytes wire_key, int64_t delta,
                              int64_t *result)
{
    ct_status status;

    pthread_mutex_lock(&c->lock);
    begin(c, STORE_ADD);
    put_blob(c, wire_key);
    put(c, &delta, sizeof delta);
    status = send_request(c, "add");
    if (status == CT_OK)
        status = get(c, result, sizeof *result, "add; is the value a number?");
    pthread_mutex_unlock(&c->lock);
    return status;
}

static ct_status client_add(ct_store *store, struct bytes key, int64_t delta, int64_t *result)
{
    char *wire_key = malloc(key.size + 1);
    ct_status status;

    if (!wire_key)
        return ct_fail(CT_ERR_NOMEM, "no memory for a key");
    wire_key[0] = '/';
    memcpy(wire_key + 1, key.data, key.size);
    status = add_wire_key((struct client_store *)store, (struct bytes){ wire_key, key.size + 1 },
                          delta, result);
    free(wire_key);
    return status;
}

static ct_status client_wait(ct_store *store, const struct bytes *keys, int count, int64_t deadline)
{
    struct client_store *c = (struct client_store *)store;
    ct_status status;

    pthread_mutex_lock(&c->lock);
    status = wait_locked(c, keys, count, deadline);
    pthread_mutex_unlock(&c->lock);
    return status;
}

static ct_status client_check(ct_store *store, const struct bytes *keys, int count, int *present)
{
    struct client_store *c = (struct client_store *)store;
    uint8_t answer = 1;
    ct_status status;

    pthread_mutex_lock(&c->lock);
    begin(c, STORE_CHECK);
    put_u64(c, (uint64_t)count);
    for (int i = 0; i < count; i++)
        put_key(c, keys[i]);
    status = send_request(c, "check");
    if (status == CT_OK)
        status = get(c, &answer, 1, "check");
    if (status == CT_OK)
        *present = answer == 0;
    pthread_mutex_unlock(&c->lock);
    return status;
}

static ct_status client_compare_set(ct_store *store, struct bytes key, struct bytes expected,
                                    struct bytes desired, void **value, size_t *bytes)
{
    struct client_store *c = (struct client_store *)store;
    ct_status status;

    pthread_mutex_lock(&c->lock);
    begin(c, STORE_COMPARE_SET);
    put_key(c, key);
    put_blob(c, expected);
    put_blob(c, desired);
    status = send_request(c, "compare_set");
    if (status == CT_OK)
        status = get_blob(c, value, bytes, "compare_set");
    pthread_mutex_unlock(&c->lock);
    return status;
}

/* Commands with one key or none that answer an i64. */
static ct_status ask_i64(struct client_store *c, enum store_command command,
                         const struct bytes *key, int64_t *answer, const char *doing)
{
    ct_status status;

    pthread_mutex_lock(&c->lock);
    begin(c, command);
    if (key)
        put_key(c, *key);
    status = send_request(c, doing);
    if (status == CT_OK)
        status = get(c, answer, sizeof *answer, doing);
    pthread_mutex_unlock(&c->lock);
    return status;
}

static ct_status client_delete(ct_store *store, struct bytes key, int *deleted)
{
    int64_t answer = 0;
    const ct_status status =
        ask_i64((struct client_store *)store, STORE_DELETE, &key, &answer, "delete");

    *deleted = answer > 0;
    return status;
}

static ct_status client_num_keys(ct_store *store, int64_t *count)
{
    return ask_i64((struct client_store *)store, STORE_NUM_KEYS, NULL, count, "num_keys");
}

static ct_status client_queue_len(ct_store *store, struct bytes key, int64_t *length)
{
    return ask_i64((struct client_store *)store, STORE_QUEUE_LEN, &key, length, "queue_len");
}

static ct_status put_pair(ct_store *store, enum store_command command, struct bytes key,
                          struct bytes value, const char *doing)
{
    struct client_store *c = (struct client_store *)store;
    ct_status status;

    pthread_mutex_lock(&c->lock);
    begin(c, command);
    put_key(c, key);
    put_blob(c, value);
    status = send_request(c, doing);
    pthread_mutex_unlock(&c->lock);
    return status;
}

static ct_status client_append(ct_store *store, struct bytes key, struct bytes value)
{
    return put_pair(store, STORE_APPEND, key, value, "append");
}

static ct_status client_queue_push(ct_store *store, struct bytes key, struct bytes value)
{
    return put_pair(store, STORE_QUEUE_PUSH, key, value, "queue_push");
}

static ct_status client_multi_get(ct_store *store, const struct bytes *keys, int count,
                                  int64_t deadline, void **values, size_t *sizes)
{
    struct client_store *c = (struct client_store *)store;
    ct_status status;
    int got = 0;

    pthread_mutex_lock(&c->lock);
    status = wait_locked(c, keys, count, deadline);
    if (status == CT_OK) {
        begin(c, STORE_MULTI_GET);
        put_u64(c, (uint64_t)count);
        for (int i = 0; i < count; i++)
            put_key(c, keys[i]);
        status = send_request(c, "multi_get");
    }
    for (; got < count && status == CT_OK; got += status == CT_OK)
        status = get_blob(c, &values[got], &sizes[got], "multi_get");
    pthread_mutex_unlock(&c->lock);
    while (status != CT_OK && got > 0) {
        free(values[--got]);
        values[got] = NULL;
    }
    return status;
}

static ct_status client_multi_set(ct_store *store, const struct bytes *keys, int count,
                                  const struct bytes *values)
{
    struct client_store *c = (struct client_store *)store;
    ct_status status;

    pthread_mutex_lock(&c->lock);
    begin(c, STORE_MULTI_SET);
    put_u64(c, (uint64_t)count);
    for (int i = 0; i < count; i++) {
        put_key(c, keys[i]);
        put_blob(c, values[i]);
    }
    status = send_request(c, "multi_set");
    pthread_mutex_unlock(&c->lock);
    return status;
}

/* *length: of the queue before; 0: nothing was there. */
static ct_status pop_locked(struct client_store *c, struct bytes key, int64_t *length, void **value,
                            size_t *bytes)
{
    ct_status status;

    begin(c, STORE_QUEUE_POP);
    put_key(c, key);
    status = send_request(c, "queue_pop");
    if (status == CT_OK)
        status = get(c, length, sizeof *length, "queue_pop");
    if (status == CT_OK && *length > 0)
        status = get_blob(c, value, bytes, "queue_pop");
    return status;
}

/* Another consumer may be faster between the wait and the pop: then wait again. */
static ct_status client_queue_pop(ct_store *store, struct bytes key, int64_t deadline, void **value,
                                  size_t *bytes)
{
    struct client_store *c = (struct client_store *)store;
    int64_t length = 0;
    ct_status status;

    pthread_mutex_lock(&c->lock);
    do {
        status = pop_locked(c, key, &length, value, bytes);
        if (status == CT_OK && length == 0)
            status = wait_locked(c, &key, 1, deadline);
    } while (status == CT_OK && length == 0);
    pthread_mutex_unlock(&c->lock);
    return status;
}

static ct_status client_list_keys(ct_store *store, char ***keys, int *count)
{
    struct client_store *c = (struct client_store *)store;
    struct key_list list = { 0 };
    int64_t n = 0;
    ct_status status;

    pthread_mutex_lock(&c->lock);
    begin(c, STORE_LIST_KEYS);
    status = send_request(c, "list_keys");
    if (status == CT_OK)
        status = get(c, &n, sizeof n, "list_keys");
    for (int64_t i = 0; i < n && status == CT_OK; i++) {
        void *key = NULL;
        size_t size = 0;

        status = get_blob(c, &key, &size, "list_keys");
        if (status == CT_OK && size > 0 && *(char *)key == '/')
            key_list_add(&list, (struct bytes){ (char *)key + 1, size - 1 });
        if (status == CT_OK)
            free(key);
    }
    pthread_mutex_unlock(&c->lock);
    return key_list_finish(&list, status, keys, count);
}

static void client_close(ct_store *store)
{
    struct client_store *c = (struct client_store *)store;

    if (c->fd >= 0)
        close(c->fd);
    store_host_stop(c->host);
    pthread_mutex_destroy(&c->lock);
    free(c->out);
    free(c);
}

static const struct store_ops client_ops = { .kind = "tcp",
                                             .set = client_set,
                                             .get = client_get,
                                             .add = client_add,
                                             .wait = client_wait,
                                             .check = client_check,
                                             .compare_set = client_compare_set,
                                             .delete_key = client_delete,
                                             .num_keys = client_num_keys,
                                             .append = client_append,
                                             .multi_get = client_multi_get,
                                             .multi_set = client_multi_set,
                                             .queue_push = client_queue_push,
                                             .queue_pop = client_queue_pop,
                                             .queue_len = client_queue_len,
                                             .list_keys = client_list_keys,
                                             .close = client_close };

/* ---- Connecting ----------------------------------------------------------- */

/* The magic in one send, as PyTorch's server wants it; then a PING, whose echo
 * says that it is a store and that it listens. */
static ct_status handshake(struct client_store *c, int64_t deadline)
{
    const uint32_t magic = STORE_MAGIC, nonce = (uint32_t)getpid();
    uint32_t echo = 0;
    ct_status status;

    begin(c, STORE_VALIDATE);
    put(c, &magic, sizeof magic);
    status = send_request(c, "connect");
    if (status != CT_OK)
        return status;
    begin(c, STORE_PING);
    put(c, &nonce, sizeof nonce);
    status = send_request(c, "connect");
    if (status == CT_OK)
        status = socket_read_all(c->fd, &echo, sizeof echo, deadline);
    if (status != CT_OK)
        return ct_fail(status, "no store answers at %s: %s", c->where, ct_last_error());
    return echo == nonce ? CT_OK : ct_fail(CT_ERR_PEER, "what answers at %s is no store", c->where);
}

ct_status store_client_connect(const char *host, int port, int64_t deadline, int timeout_ms,
                               ct_store **store)
{
    struct client_store *c = calloc(1, sizeof *c);
    ct_status status;

    if (!c)
        return ct_fail(CT_ERR_NOMEM, "no memory for a store");
    c->store = (struct ct_store){ .ops = &client_ops, .timeout_ms = timeout_ms };
    c->fd = -1;
    pthread_mutex_init(&c->lock, NULL);
    if (host[0] == '@') {
        snprintf(c->where, sizeof c->where, "%s", host);
        status = socket_connect_unix(host + 1, deadline, &c->fd);
    } else {
        snprintf(c->where, sizeof c->where, "%s:%d", host, port);
        status = socket_connect(host, port, deadline, &c->fd);
    }
    if (status == CT_OK)
        status = handshake(c, deadline);
    if (status != CT_OK) {
        client_close(&c->store);
        return status;
    }
    *store = &c->store;
    return CT_OK;
}

int store_client_socket(const ct_store *store)
{
    return store->ops == &client_ops ? ((const struct client_store *)store)->fd : -1;
}

ct_status ct_store_tcp(const char *host, int port, int is_master, int timeout_ms, ct_store **store)
{
    struct store_host *server = NULL;
    int fd;
    ct_status status = CT_OK;

    if (!host || !store || port < 0 || port > 65535 || (port == 0 && !is_master))
        return ct_fail(CT_ERR_INVALID,
                       "ct_store_tcp: host %s, port %d; a host and a port from 1 "
                       "to 65535 are needed",
                       host ? host : "NULL", port);
    if (is_master) {
        status = socket_listen(host, port, &fd);
        if (status == CT_OK) {
            port = socket_port(fd);
            status = store_host_start(fd, &server);
        }
    }
    if (status == CT_OK)
        status = store_client_connect(host, port, deadline_after(timeout_ms), timeout_ms, store);
    if (status != CT_OK) {
        store_host_stop(server);
        return ct_fail_in(status, "ct_store_tcp: ");
    }
    ((struct client_store *)*store)->host = server;
    return CT_OK;
}
