/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_store.c - a client of a store's server, over PyTorch's protocol.
 *
 * A client has one connection, which carries one operation at a time.  tcp_store_begin() locks the
 * client's mutex, and tcp_store_end() unlocks it.  A key is sent as "/" + key.  A get sends WAIT
 * and then GET.  If is_master is set, ct_store_tcp() also starts the server.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "runtime/net/socket.h"
#include "runtime/net/peer_uid.h"
#include "runtime/store/server/server_thread.h"
#include "runtime/store/tcp_store.h"
#include "runtime/store/store_connection.h"
#include "runtime/util/clock.h"
#include "runtime/util/forks.h"
#include "runtime/util/log.h"

#define WORKERS_POLL_MS 10
#define SHORTEST_PAUSE_NS 200000

struct client_store {
    struct ct_store store;
    pthread_mutex_t lock;
    struct store_connection connection;
    struct store_thread *host; /* the server that ct_store_tcp() started if is_master; else NULL */
    struct secret secret;      /* the secret with which the client connected */
};

static struct store_connection *tcp_store_begin(ct_store *store, const char *call,
                                                const struct bytes *keys, int count)
{
    struct client_store *c = (struct client_store *)store;

    pthread_mutex_lock(&c->lock);
    store_connection_call(&c->connection, call, keys, count);
    return &c->connection;
}

static ct_status tcp_store_end(ct_store *store, ct_status status)
{
    pthread_mutex_unlock(&((struct client_store *)store)->lock);
    return status;
}

/* ---- Waiting --------------------------------------------------------------- */

static ct_status client_wait(ct_store *store, const struct bytes *keys, int count, int64_t deadline)
{
    return tcp_store_end(store, store_connection_wait(tcp_store_begin(store, "wait", keys, count),
                                                      keys, count, deadline));
}

/* ---- Requests without an answer --------------------------------------------- */

static ct_status tcp_store_post(ct_store *store, const char *call, enum store_command command,
                                struct bytes key, struct bytes value)
{
    struct store_connection *connection = tcp_store_begin(store, call, &key, 1);

    store_connection_command(connection, command);
    store_connection_put_key(connection, key);
    store_connection_put_blob(connection, value);
    return tcp_store_end(store, store_connection_post(connection));
}

static ct_status client_set(ct_store *store, struct bytes key, struct bytes value)
{
    return tcp_store_post(store, "set", STORE_SET, key, value);
}

static ct_status client_append(ct_store *store, struct bytes key, struct bytes value)
{
    return tcp_store_post(store, "append", STORE_APPEND, key, value);
}

static ct_status client_queue_push(ct_store *store, struct bytes key, struct bytes value)
{
    return tcp_store_post(store, "queue_push", STORE_QUEUE_PUSH, key, value);
}

static ct_status client_multi_set(ct_store *store, const struct bytes *keys, int count,
                                  const struct bytes *values)
{
    const uint64_t pairs = (uint64_t)count;
    struct store_connection *connection = tcp_store_begin(store, "multi_set", keys, count);

    store_connection_command(connection, STORE_MULTI_SET);
    store_connection_put(connection, &pairs, sizeof pairs);
    for (int i = 0; i < count; i++) {
        store_connection_put_key(connection, keys[i]);
        store_connection_put_blob(connection, values[i]);
    }
    return tcp_store_end(store, store_connection_post(connection));
}

/* ---- Requests answered by a number ------------------------------------------- */

static ct_status ask_count(struct store_connection *connection, int64_t *count)
{
    ct_status status = store_connection_ask(connection, count, sizeof *count);

    if (status == CT_OK && *count < 0)
        status =
            store_connection_break(connection, CT_ERR_PEER, "it counted %lld", (long long)*count);
    return status;
}

static ct_status tcp_store_count_of(ct_store *store, const char *call, enum store_command command,
                                    const struct bytes *key, int64_t *count)
{
    struct store_connection *connection = tcp_store_begin(store, call, key, key != NULL);

    store_connection_command(connection, command);
    if (key)
        store_connection_put_key(connection, *key);
    return tcp_store_end(store, ask_count(connection, count));
}

static ct_status client_num_keys(ct_store *store, int64_t *count)
{
    return tcp_store_count_of(store, "num_keys", STORE_NUM_KEYS, NULL, count);
}

static ct_status client_queue_len(ct_store *store, struct bytes key, int64_t *length)
{
    return tcp_store_count_of(store, "queue_len", STORE_QUEUE_LEN, &key, length);
}

static ct_status client_delete(ct_store *store, struct bytes key, int *deleted)
{
    int64_t count = 0;
    const ct_status status = tcp_store_count_of(store, "delete", STORE_DELETE, &key, &count);

    *deleted = count > 0;
    return status;
}

static ct_status tcp_store_client_add(ct_store *store, struct bytes key, int64_t delta,
                                      int64_t *sum)
{
    struct store_connection *connection = tcp_store_begin(store, "add", &key, 1);

    store_connection_command(connection, STORE_ADD);
    store_connection_put_key(connection, key);
    store_connection_put(connection, &delta, sizeof delta);
    return tcp_store_end(store, store_connection_ask(connection, sum, sizeof *sum));
}

static ct_status client_check(ct_store *store, const struct bytes *keys, int count, int *present)
{
    struct store_connection *connection = tcp_store_begin(store, "check", keys, count);
    uint8_t absent = 1;
    ct_status status;

    store_connection_command(connection, STORE_CHECK);
    store_connection_put_keys(connection, keys, count);
    status = store_connection_ask(connection, &absent, 1);
    if (status == CT_OK)
        *present = !absent;
    return tcp_store_end(store, status);
}

static ct_status client_check_each(ct_store *store, const struct bytes *keys, int count,
                                   char *present)
{
    struct store_connection *connection = tcp_store_begin(store, "check", keys, count);
    const ct_status status =
        store_connection_check_each(connection, keys, count, (uint8_t *)present);

    for (int i = 0; i < count && status == CT_OK; i++)
        present[i] = present[i] == 0;
    return tcp_store_end(store, status);
}

/* Adds delta to the number of workers.  PyTorch counts workers under the key "init/", without a "/"
 * in front. */
static ct_status tcp_store_add_worker(ct_store *store, int64_t delta, int64_t *workers)
{
    struct store_connection *connection = tcp_store_begin(store, "wait_workers", NULL, 0);

    store_connection_command(connection, STORE_ADD);
    store_connection_put_blob(connection, (struct bytes){ "init/", 5 });
    store_connection_put(connection, &delta, sizeof delta);
    return tcp_store_end(store, store_connection_ask(connection, workers, sizeof *workers));
}

static ct_status client_wait_workers(ct_store *store, int world_size, int64_t deadline)
{
    const struct client_store *c = (struct client_store *)store;
    const int64_t start = clock_ms();
    int64_t workers = 0;
    ct_status status = tcp_store_add_worker(store, 1, &workers);

    while (status == CT_OK && c->host && workers < world_size) {
        if (clock_ms() >= deadline)
            return ct_fail(CT_ERR_TIMEOUT, "the store at %s: %lld of %d workers came in %lld ms",
                           c->connection.where, (long long)workers, world_size,
                           (long long)(clock_ms() - start));
        poll(NULL, 0, time_left_ms(deadline, WORKERS_POLL_MS));
        status = tcp_store_add_worker(store, 0, &workers);
    }
    return status;
}

/* ---- Requests answered by values --------------------------------------------- */

static ct_status client_get(ct_store *store, struct bytes key, int64_t deadline, void **value,
                            size_t *bytes)
{
    struct store_connection *connection = tcp_store_begin(store, "get", &key, 1);
    ct_status status = store_connection_wait(connection, &key, 1, deadline);

    if (status == CT_OK) {
        store_connection_command(connection, STORE_GET);
        store_connection_put_key(connection, key);
        status = store_connection_send(connection);
    }
    return tcp_store_end(
        store, status == CT_OK ? store_connection_get_blob(connection, value, bytes) : status);
}

static ct_status client_compare_set(ct_store *store, struct bytes key, struct bytes expected,
                                    struct bytes desired, void **value, size_t *bytes)
{
    struct store_connection *connection = tcp_store_begin(store, "compare_set", &key, 1);
    ct_status status;

    store_connection_command(connection, STORE_COMPARE_SET);
    store_connection_put_key(connection, key);
    store_connection_put_blob(connection, expected);
    store_connection_put_blob(connection, desired);
    status = store_connection_send(connection);
    return tcp_store_end(
        store, status == CT_OK ? store_connection_get_blob(connection, value, bytes) : status);
}

static ct_status client_multi_get(ct_store *store, const struct bytes *keys, int count,
                                  int64_t deadline, void **values, size_t *sizes)
{
    struct store_connection *connection = tcp_store_begin(store, "multi_get", keys, count);
    ct_status status = store_connection_wait(connection, keys, count, deadline);
    int got = 0;

    if (status == CT_OK) {
        store_connection_command(connection, STORE_MULTI_GET);
        store_connection_put_keys(connection, keys, count);
        status = store_connection_send(connection);
    }
    for (; got < count && status == CT_OK; got += status == CT_OK)
        status = store_connection_get_blob(connection, &values[got], &sizes[got]);
    while (status != CT_OK && got > 0) {
        free(values[--got]);
        values[got] = NULL;
    }
    return tcp_store_end(store, status);
}

/* Pops a value.  Sets *length to the queue's length before the pop.  If *length is 0, the queue was
 * empty and *value is not set. */
static ct_status pop(struct store_connection *connection, struct bytes key, int64_t *length,
                     void **value, size_t *bytes)
{
    ct_status status;

    store_connection_command(connection, STORE_QUEUE_POP);
    store_connection_put_key(connection, key);
    status = ask_count(connection, length);
    return status == CT_OK && *length > 0 ? store_connection_get_blob(connection, value, bytes)
                                          : status;
}

/* Waits for a value and pops it.  Another client may pop the value between this client's wait and
 * pop.  This client then waits again until the deadline, however often that happens. */
static ct_status client_queue_pop(ct_store *store, struct bytes key, int64_t deadline, void **value,
                                  size_t *bytes)
{
    struct store_connection *connection = tcp_store_begin(store, "queue_pop", &key, 1);
    char quoted[QUOTED_SIZE];
    int64_t length = 0;
    ct_status status = pop(connection, key, &length, value, bytes);

    while (status == CT_OK && length == 0) {
        status = store_connection_wait(connection, &key, 1, deadline);
        if (status == CT_OK)
            status = pop(connection, key, &length, value, bytes);
        if (status == CT_OK && length == 0 && clock_ms() >= deadline)
            status = ct_fail(CT_ERR_TIMEOUT,
                             "the store at %s: other clients took what was in the queue %s",
                             connection->where, store_connection_quote(key, quoted));
    }
    return tcp_store_end(store, status);
}

/* Reads a key and adds it to the list.  Skips keys that do not start with "/", since this API did
 * not set them.  Cuts a key at its first NUL byte. */
static ct_status listed_key(struct store_connection *connection, struct key_list *list)
{
    void *key;
    size_t size;
    const ct_status status = store_connection_get_blob(connection, &key, &size);

    if (status != CT_OK)
        return status;
    if (*(char *)key == '/')
        key_list_add(list, (struct bytes){ (char *)key + 1, strlen((char *)key + 1) });
    free(key);
    return CT_OK;
}

static ct_status client_list_keys(ct_store *store, char ***keys, int *count)
{
    struct store_connection *connection = tcp_store_begin(store, "list_keys", NULL, 0);
    struct key_list list = { 0 };
    int64_t n = 0;
    ct_status status;

    store_connection_command(connection, STORE_LIST_KEYS);
    status = ask_count(connection, &n);
    if (status == CT_OK && n > INT_MAX)
        status =
            store_connection_break(connection, CT_ERR_PEER, "it claims %lld keys", (long long)n);
    while (status == CT_OK && n-- > 0)
        status = listed_key(connection, &list);
    return tcp_store_end(store, key_list_finish(&list, status, keys, count));
}

/* ---- The store --------------------------------------------------------------- */

static void client_close(ct_store *store)
{
    struct client_store *c = (struct client_store *)store;

    store_connection_watch_deaths(&c->connection, NULL, 0, 0);
    store_connection_close(&c->connection);
    store_thread_stop(c->host);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

static const struct store_ops client_ops = { .kind = "tcp",
                                             .set = client_set,
                                             .get = client_get,
                                             .add = tcp_store_client_add,
                                             .wait = client_wait,
                                             .check = client_check,
                                             .check_each = client_check_each,
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
                                             .wait_workers = client_wait_workers,
                                             .close = client_close };

/* Makes a client, which takes over fd and its channel. */
static ct_status client_over(int fd, struct secure_channel *channel, const char *where,
                             int timeout_ms, ct_store **store)
{
    struct client_store *c = calloc(1, sizeof *c);

    if (!c) {
        secure_channel_destroy(channel);
        close(fd);
        return ct_fail(CT_ERR_NOMEM, "no memory for a store");
    }
    c->store =
        (struct ct_store){ .ops = &client_ops, .timeout_ms = timeout_ms, .maker = forks_maker() };
    pthread_mutex_init(&c->lock, NULL);
    store_connection_open(&c->connection, fd, channel, where, timeout_ms);
    *store = &c->store;
    return CT_OK;
}

ct_status store_client_over(int fd, const char *where, int timeout_ms, ct_store **store)
{
    return client_over(fd, NULL, where, timeout_ms, store);
}

/* ---- Deaths ------------------------------------------------------------------ */

/* Locks the client below all prefix stores.  Returns NULL if that store is not a client. */
static struct client_store *lock_client(ct_store *store)
{
    struct client_store *c;

    store = store_bottom(store);
    if (store->ops != &client_ops)
        return NULL;
    c = (struct client_store *)store;
    pthread_mutex_lock(&c->lock);
    return c;
}

void store_watch_deaths(ct_store *store, struct control *control, uint32_t known, int any)
{
    struct client_store *c = lock_client(store);

    if (!c)
        return;
    store_connection_watch_deaths(&c->connection, control, known, any);
    pthread_mutex_unlock(&c->lock);
}

void store_skip_deaths(ct_store *store, uint32_t known)
{
    struct client_store *c = lock_client(store);

    if (!c)
        return;
    if (c->connection.known < known)
        c->connection.known = known;
    pthread_mutex_unlock(&c->lock);
}

ct_status store_check_deaths(ct_store *store)
{
    struct client_store *c = lock_client(store);

    return c ? tcp_store_end(&c->store, store_connection_check_deaths(&c->connection)) : CT_OK;
}

ct_status store_wait_beside(ct_store *store, int fd, int64_t deadline)
{
    struct client_store *c = lock_client(store);

    return c ? tcp_store_end(&c->store, store_connection_wait_beside(&c->connection, fd, deadline))
             : store_connection_wait_beside(NULL, fd, deadline);
}

int store_client_fd(ct_store *store)
{
    store = store_bottom(store);
    return store->ops == &client_ops ? ((const struct client_store *)store)->connection.fd : -1;
}

/* ---- Connecting -------------------------------------------------------------- */

static void say_silence(const char *where)
{
    log_line(LOG_WAITS,
             "waiting %d s for the store at %s to answer; is the process that serves it (rank 0's) "
             "stopped, or does another program listen there?",
             LONG_WAIT_MS / 1000, where);
}

/* Waits for the server's answer.  Returns 0 if the deadline passed. */
static int answers(const struct store_connection *connection, int64_t deadline)
{
    struct long_wait wait = long_wait_begin();

    if (store_connection_ready(connection, clock_ms() + time_left_ms(deadline, LONG_WAIT_MS)))
        return 1;
    if (long_wait_is_due(&wait))
        say_silence(connection->where);
    return store_connection_ready(connection, deadline);
}

/* Sends the magic number in one send, which PyTorch's server needs, and then a PING.  The echo of
 * the PING proves that the other end is a store. */
static ct_status handshake(struct store_connection *connection, int64_t deadline)
{
    const uint32_t magic = STORE_MAGIC, nonce = (uint32_t)getpid();
    const int64_t start = clock_ms();
    uint32_t echo = 0;
    ct_status status;

    store_connection_command(connection, STORE_VALIDATE);
    store_connection_put(connection, &magic, sizeof magic);
    status = store_connection_send(connection);
    if (status != CT_OK)
        return status;
    store_connection_command(connection, STORE_PING);
    store_connection_put(connection, &nonce, sizeof nonce);
    status = store_connection_send(connection);
    if (status != CT_OK)
        return status;
    if (!answers(connection, deadline))
        return ct_fail(CT_ERR_TIMEOUT, "no store at %s has answered for %lld ms", connection->where,
                       (long long)(clock_ms() - start));
    status = store_connection_get(connection, &echo, sizeof echo);
    if (status != CT_OK)
        return ct_fail(status, "no store answers at %s: %s", connection->where, ct_last_error());
    status = encryption_check_notice(&echo, sizeof echo, connection->where);
    if (status != CT_OK)
        return status;
    return echo == nonce
               ? CT_OK
               : ct_fail(CT_ERR_PEER, "what answers at %s is not a store", connection->where);
}

static void pause_for(int64_t ns)
{
    const struct timespec pause = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };

    nanosleep(&pause, NULL);
}

/* Sets *ours to 1 if the server's end of the connection belongs to this process's user.  The kernel
 * knows the user only after the server has accepted the connection, so this function polls.  The
 * uid of the listening socket proves nothing, since another process may listen there by now.  The
 * pauses grow with the time that has passed, since a ctrun that starts hundreds of workers accepts
 * late and needs the processor time that polling workers would take. */
static ct_status is_our_users(int fd, const char *where, int64_t deadline, int *ours)
{
    const int64_t start_ns = clock_ns(CLOCK_MONOTONIC);
    struct long_wait wait = long_wait_begin();
    const int netlink = peer_uid_open();
    struct sockaddr_storage server = { 0 }, self = { 0 };
    socklen_t server_size = sizeof server, self_size = sizeof self;
    enum peer_place place = PEER_UNKNOWN;
    uid_t uid = 0;

    if (getpeername(fd, (struct sockaddr *)&server, &server_size) == 0
        && getsockname(fd, (struct sockaddr *)&self, &self_size) == 0)
        while ((place = peer_uid(netlink, &server, &self, &uid)) == PEER_PENDING
               && time_left_ms(deadline, 1) > 0) {
            if (long_wait_is_due(&wait))
                say_silence(where);
            pause_for(SHORTEST_PAUSE_NS + (clock_ns(CLOCK_MONOTONIC) - start_ns) / 4);
        }
    if (netlink >= 0)
        close(netlink);
    *ours = place == PEER_HERE && uid == geteuid();
    if (place != PEER_PENDING)
        return CT_OK;
    return ct_fail(CT_ERR_TIMEOUT, "no store at %s has answered for %lld ms", where,
                   (long long)(clock_ms() - wait.since));
}

/* If this client has a secret, checks that the server knows the secret, too.  A server on this host
 * that runs as this process's user needs no proof.  Its user is checked, since a port of the
 * loopback may belong to any user of the host. */
static ct_status prove_server(const struct secret *secret, struct secure_channel *channel, int fd,
                              const char *where, int64_t deadline)
{
    int ours = 0;
    ct_status status = CT_OK;

    if (secret->size == 0)
        return CT_OK;
    if (socket_stays_here(fd))
        status = is_our_users(fd, where, deadline, &ours);
    return status != CT_OK || ours
               ? status
               : secret_prove(secret, channel, fd, HELLO_CLIENT, where, deadline);
}

/* Connects over TCP.  Sets *fd, and *channel if the connection is encrypted.  If this fails after
 * the connect, closes both. */
static ct_status connect_tcp(const char *host, int port, const char *where,
                             const struct secret *secret, int64_t deadline, int *fd,
                             struct secure_channel **channel)
{
    int encrypts = 0;
    ct_status status = encryption_wanted(secret, &encrypts);

    if (status == CT_OK)
        status = socket_connect(host, port, deadline, fd);
    if (status != CT_OK)
        return status;
    if (encrypts)
        status = encryption_connect(secret, *fd, where, deadline, channel);
    if (status == CT_OK)
        status = prove_server(secret, *channel, *fd, where, deadline);
    if (status != CT_OK) {
        secure_channel_destroy(*channel);
        close(*fd);
    }
    return status;
}

/* Checks that the server runs as this process's user, since any user may bind a name in the
 * abstract namespace. */
static ct_status check_unix_peer(int fd, const char *where)
{
    uid_t uid = 0;
    const ct_status status = socket_peer(fd, NULL, &uid);

    if (status != CT_OK || uid == geteuid())
        return status;
    return ct_fail(CT_ERR_PEER, "the unix socket %s belongs to another user (uid %d)", where,
                   (int)uid);
}

ct_status store_client_connect(const char *host, int port, int64_t deadline, int timeout_ms,
                               ct_store **store)
{
    struct secret secret = { .size = 0 };
    const ct_status status = host[0] == '@' ? CT_OK : secret_read(&secret, NULL);

    return status == CT_OK
               ? store_client_connect_with(host, port, &secret, deadline, timeout_ms, store)
               : status;
}

ct_status store_client_secret(ct_store *store, struct secret *secret)
{
    store = store_bottom(store);
    if (store->ops != &client_ops)
        return secret_read(secret, NULL);
    *secret = ((const struct client_store *)store)->secret;
    return CT_OK;
}

ct_status store_client_connect_with(const char *host, int port, const struct secret *secret,
                                    int64_t deadline, int timeout_ms, ct_store **store)
{
    struct secure_channel *channel = NULL;
    char where[300];
    ct_store *s = NULL;
    int fd;
    ct_status status;

    if (host[0] == '@') {
        snprintf(where, sizeof where, "%s", host);
        status = socket_connect_unix(host + 1, deadline, &fd);
        if (status == CT_OK && (status = check_unix_peer(fd, where)) != CT_OK)
            close(fd);
    } else {
        snprintf(where, sizeof where, "%s:%d", host, port);
        status = connect_tcp(host, port, where, secret, deadline, &fd, &channel);
    }
    if (status == CT_OK)
        status = client_over(fd, channel, where, timeout_ms, &s);
    if (status != CT_OK)
        return status;
    ((struct client_store *)s)->secret = *secret;
    status = handshake(&((struct client_store *)s)->connection, deadline);
    if (status != CT_OK) {
        ct_store_close(s);
        return status;
    }
    *store = s;
    return CT_OK;
}

ct_status ct_store_tcp(const char *host, int port, int is_master, int timeout_ms, ct_store **store)
{
    struct store_thread *server = NULL;
    int fd;
    ct_status status = CT_OK;

    if (!host || !store || port < 0 || port > 65535 || (port == 0 && !is_master))
        return ct_fail(CT_ERR_INVALID,
                       "ct_store_tcp: host %s, port %d; a host and a port from 1 "
                       "to 65535 are needed",
                       host ? host : "NULL", port);
    if (is_master) {
        status = socket_listen(host, port, &fd);
        if (status != CT_OK && errno == ENOENT) /* this host's name has no address yet */
            status = socket_listen(NULL, port, &fd);
        if (status == CT_OK) {
            port = socket_port(fd);
            status = store_thread_start(fd, &server);
        }
    }
    if (status == CT_OK)
        status = store_client_connect(host, port, deadline_after(timeout_ms), timeout_ms, store);
    if (status != CT_OK) {
        store_thread_stop(server);
        return ct_fail_in(status, "ct_store_tcp: ");
    }
    ((struct client_store *)*store)->host = server;
    return CT_OK;
}
