/* SPDX-License-Identifier: Apache-2.0 */
/* rendezvous.c - chooses and opens the store of an init:
 *
 *   options->store is set          the caller's store
 *   init_method is file:///path    a store in that file
 *   there is one rank              a store in this process's memory
 *   under ctrun or torchrun        the launcher's store; every rank is a client
 *   MASTER_ADDR is set             rank 0 serves the store at MASTER_ADDR and MASTER_PORT
 *   mpirun, srun on one host       rank 0 serves the store on a unix socket, only to its own uid
 *   mpirun on several hosts        rank 0 serves the store where launcher_exchange.c chose, only to
 *                                  processes that know the job's secret
 *
 * Keys begin with "ct/<generation>/<number of the init>".  ctrun sets a new generation in each
 * round.  torchrun sets no generation, and its store outlives a restart.  So rank 0 makes a random
 * generation, and sends it to the ranks that ask for the generation now. */
#include "runtime/bootstrap/rendezvous.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "runtime/bootstrap/claims.h"
#include "runtime/exchange/launcher_exchange.h"
#include "runtime/net/socket.h"
#include "runtime/store/server/server_thread.h"
#include "runtime/store/tcp_store.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"

#define NONCE_CHARS 17 /* 16 hexadecimal digits and a NUL byte */
#define PREFIX_CHARS 128

static ct_status make_nonce(char *text)
{
    uint64_t bits;

    if (getrandom(&bits, sizeof bits, 0) != (ssize_t)sizeof bits)
        return ct_fail(CT_ERR_SYSTEM, "getrandom: %s", strerror(errno));
    snprintf(text, NONCE_CHARS, "%016llx", (unsigned long long)bits);
    return CT_OK;
}

static void rendezvous_sleep_ms(int ms)
{
    const struct timespec time = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };

    nanosleep(&time, NULL);
}

/* ---- A generation under torchrun ------------------------------------------ */

/* Sends the generation to the processes of a rank that asked for it.  Each process has appended its
 * token to the key ct/hello/<rank>.  *answered is the size of the tokens that have an answer. */
static ct_status answer_hellos(ct_store *store, int rank, const char *generation, size_t *answered)
{
    char key[64];
    const char *keys[1] = { key };
    void *tokens;
    size_t bytes;
    int present;
    ct_status status;

    snprintf(key, sizeof key, "ct/hello/%d", rank);
    status = ct_store_check(store, keys, 1, &present);
    if (status != CT_OK || !present)
        return status;
    status = ct_store_get(store, key, 0, &tokens, &bytes);
    if (status != CT_OK)
        return status;
    for (; *answered + NONCE_CHARS - 1 <= bytes && status == CT_OK; *answered += NONCE_CHARS - 1) {
        char answer[64];

        snprintf(answer, sizeof answer, "ct/answer/%.16s", (char *)tokens + *answered);
        status = ct_store_set(store, answer, generation, strlen(generation));
    }
    free(tokens);
    return status;
}

/* Answers on rank 0 until all other ranks have joined this generation, or two claims conflict
 * (claims.h).  `prefix` is the prefix of this generation's keys. */
static ct_status serve_generation(ct_store *store, int size, const char *generation,
                                  const char *prefix, int64_t deadline)
{
    size_t *answered = calloc((size_t)size, sizeof *answered);
    struct long_wait wait = long_wait_begin();
    char key[96], failed[160];
    const char *keys[1] = { failed };
    int64_t joined = 0;
    int has_failed = 0;
    ct_status status = answered ? CT_OK : ct_fail(CT_ERR_NOMEM, "no memory for %d ranks", size);

    snprintf(key, sizeof key, "ct/joined/%s", generation);
    snprintf(failed, sizeof failed, "%s/" CLAIMS_FAILED_KEY, prefix);
    for (int pause = 1; status == CT_OK; pause = pause < 50 ? pause * 2 : pause) {
        for (int rank = 1; rank < size && status == CT_OK; rank++)
            status = answer_hellos(store, rank, generation, &answered[rank]);
        if (status == CT_OK)
            status = ct_store_add(store, key, 0, &joined);
        if (status == CT_OK)
            status = ct_store_check(store, keys, 1, &has_failed);
        if (status != CT_OK || joined >= size - 1 || has_failed)
            break;
        if (clock_ms() >= deadline)
            status = ct_fail(CT_ERR_TIMEOUT, "only %lld of %d ranks came to the store in time",
                             (long long)joined + 1, size);
        if (status == CT_OK && long_wait_is_due(&wait))
            log_line(LOG_WAITS,
                     "waiting %d s: %lld of %d ranks have come to the store; were the "
                     "others started, with the same store?",
                     LONG_WAIT_MS / 1000, (long long)joined + 1, size);
        rendezvous_sleep_ms(pause);
    }
    free(answered);
    return status;
}

/* Waits until rank 0 has set the key.  Logs a long wait once. */
static ct_status wait_for_answer(ct_store *store, const char *key, int64_t deadline)
{
    struct long_wait wait = long_wait_begin();
    ct_status status = ct_store_wait(store, &key, 1, time_left_ms(deadline, LONG_WAIT_MS));

    if (status != CT_ERR_TIMEOUT || !long_wait_is_due(&wait))
        return status;
    log_line(LOG_WAITS,
             "waiting %d s for rank 0 to come to the store; was it started, with the "
             "same store?",
             LONG_WAIT_MS / 1000);
    return ct_store_wait(store, &key, 1, time_left_ms(deadline, INT32_MAX));
}

static ct_status ask_generation(ct_store *store, int rank, char *generation, size_t size,
                                int64_t deadline)
{
    char token[NONCE_CHARS], key[96];
    int64_t joined;
    void *value;
    size_t bytes;
    ct_status status = make_nonce(token);

    snprintf(key, sizeof key, "ct/hello/%d", rank);
    if (status == CT_OK)
        status = ct_store_append(store, key, token, NONCE_CHARS - 1);
    snprintf(key, sizeof key, "ct/answer/%s", token);
    if (status == CT_OK)
        status = wait_for_answer(store, key, deadline);
    if (status == CT_OK)
        status = ct_store_get(store, key, 0, &value, &bytes);
    if (status != CT_OK)
        return status;
    snprintf(generation, size, "%.*s", (int)bytes, (char *)value);
    free(value);
    snprintf(key, sizeof key, "ct/joined/%s", generation);
    return ct_store_add(store, key, 1, &joined);
}

static void print_prefix(char prefix[PREFIX_CHARS], const char *generation, int number)
{
    snprintf(prefix, PREFIX_CHARS, "ct/%s/%d", generation, number);
}

/* Makes a generation on rank 0.  Rank 0 sets its world size before it waits for the other ranks,
 * since too few ranks may come if the ranks have different sizes. */
static ct_status make_generation(ct_store *store, const struct identity *who, char *generation,
                                 int number, int64_t deadline)
{
    char prefix[PREFIX_CHARS];
    ct_store *keys;
    ct_status status = make_nonce(generation);

    print_prefix(prefix, generation, number);
    if (status == CT_OK)
        status = ct_store_prefix(store, prefix, &keys);
    if (status != CT_OK)
        return status;
    status = claim_size(keys, who->rank, who->size, NULL);
    ct_store_close(keys);
    return status == CT_OK ? serve_generation(store, who->size, generation, prefix, deadline)
                           : status;
}

static ct_status agree_on_generation(ct_store *store, const struct identity *who, char *generation,
                                     size_t size, int number, int64_t deadline)
{
    return who->rank > 0 ? ask_generation(store, who->rank, generation, size, deadline)
                         : make_generation(store, who, generation, number, deadline);
}

/* ---- Connecting ----------------------------------------------------------- */

static int is_literal(const char *address)
{
    unsigned char binary[16];

    return inet_pton(AF_INET, address, binary) == 1 || inet_pton(AF_INET6, address, binary) == 1;
}

/* Serves the store at MASTER_ADDR.  A name may resolve to another address here than on other hosts,
 * since Debian maps a host's own name to 127.0.1.1.  So for a name, the store listens on all
 * addresses of this host. */
static ct_status host_tcp(struct rendezvous *r, const struct identity *who)
{
    const int exact = is_literal(who->address) || !strcmp(who->address, "localhost");
    int fd;
    ct_status status = socket_listen(exact ? who->address : NULL, who->port, &fd);

    if (status != CT_OK && errno == EADDRNOTAVAIL) {
        log_line(LOG_WARN,
                 "%s is not an address of rank 0's host; the store listens on all addresses of "
                 "that host",
                 who->address);
        status = socket_listen(NULL, who->port, &fd);
    }
    return status == CT_OK ? store_thread_start(fd, &r->host) : status;
}

static ct_status host_unix(struct rendezvous *r, const struct identity *who)
{
    int fd;
    const ct_status status = socket_listen_unix(who->socket, &fd);

    return status == CT_OK ? store_thread_start(fd, &r->host) : status;
}

/* Serves the store at the meeting's port.  At the first init, m->listener is already bound to
 * it. */
static ct_status host_meeting(struct rendezvous *r, struct launcher_meeting *m)
{
    int fd = m->listener;
    const ct_status status = fd >= 0 ? CT_OK : socket_listen(NULL, m->port, &fd);

    m->listener = -1;
    return status == CT_OK ? store_thread_start_with(fd, &m->secret, &r->host) : status;
}

static ct_status connect_meeting(struct rendezvous *r, const struct identity *who, int64_t deadline,
                                 int timeout_ms)
{
    struct launcher_meeting *m = who->meeting;
    ct_status status = who->rank == 0 ? host_meeting(r, m) : CT_OK;

    if (status == CT_OK)
        status = store_client_connect_with(m->address, m->port, &m->secret, deadline, timeout_ms,
                                           &r->base);
    /* All ranks have the same secret, so CT_ERR_INVALID does not mean that the secret is wrong.  It
     * means that the store served the previous init, and has just closed the connection. */
    return who->rank > 0 && status == CT_ERR_INVALID ? CT_ERR_PEER : status;
}

static ct_status connect_base(struct rendezvous *r, const struct identity *who,
                              const ct_init_options *options, int64_t deadline)
{
    const int timeout_ms = time_left_ms(deadline, INT32_MAX);
    const char *method = options && options->init_method ? options->init_method : "";
    char socket[sizeof who->socket + 1];
    ct_status status = CT_OK;

    if (!strncmp(method, "file://", 7))
        return store_file_open(method + 7, who->size, timeout_ms, &r->base);
    if (who->size == 1 && !who->agent_store)
        return ct_store_hash(&r->base);
    r->goodbyes = !who->agent_store;
    if (who->meeting)
        return connect_meeting(r, who, deadline, timeout_ms);
    if (who->address[0]) {
        if (who->rank == 0 && !who->agent_store)
            status = host_tcp(r, who);
        return status == CT_OK
                   ? store_client_connect(who->address, who->port, deadline, timeout_ms, &r->base)
                   : status;
    }
    if (who->rank == 0)
        status = host_unix(r, who);
    snprintf(socket, sizeof socket, "@%s", who->socket);
    return status == CT_OK ? store_client_connect(socket, 0, deadline, timeout_ms, &r->base)
                           : status;
}

/* Returns 1 for torchrun's store and a file, which may have keys of an earlier job. */
static int outlives_the_ranks(const struct identity *who, const ct_init_options *options)
{
    return who->agent_store
           || (options && options->init_method && !strncmp(options->init_method, "file://", 7));
}

static ct_status open_once(struct rendezvous *r, const struct identity *who,
                           const ct_init_options *options, int number, int64_t deadline)
{
    char generation[64], prefix[PREFIX_CHARS], arrived[96];
    int64_t count;
    ct_store *base = options ? options->store : NULL;
    ct_status status = CT_OK;

    if (!base) {
        status = connect_base(r, who, options, deadline);
        base = r->base;
    }
    if (status != CT_OK)
        return status;
    snprintf(generation, sizeof generation, "%s", who->generation[0] ? who->generation : "0");
    if (who->generation[0]) { /* ctrun reads this key to find missing ranks */
        snprintf(arrived, sizeof arrived, "ct/%s/arrived/%d", generation, who->rank);
        status = ct_store_add(base, arrived, 1, &count);
    } else if (r->base && outlives_the_ranks(who, options)) {
        status = agree_on_generation(base, who, generation, sizeof generation, number, deadline);
    }
    if (status != CT_OK)
        return status;
    print_prefix(prefix, generation, number);
    status = ct_store_prefix(base, prefix, &r->store);
    if (status == CT_OK && who->meeting && !socket_stays_here(store_client_fd(base)))
        status = ct_store_set(r->store, REACHED_KEY, who->meeting->address,
                              strlen(who->meeting->address));
    return status;
}

ct_status rendezvous_open(struct rendezvous *r, const struct identity *identity,
                          const ct_init_options *options, int number, int64_t deadline)
{
    ct_status status;

    *r = (struct rendezvous){ .size = identity->size };
    status = open_once(r, identity, options, number, deadline);
    if (status != CT_OK)
        rendezvous_close(r, 0);
    return status;
}

/* Returns 1 if no other rank needs the store.  Reads the key "goodbye" and does not only count
 * connections, since a quick rank may already be connected for its next init, and wait for the next
 * server. */
static int all_said_goodbye(struct rendezvous *r)
{
    int64_t goodbyes = 0;

    if (store_thread_clients(r->host) <= (r->base != NULL))
        return 1; /* no other client is connected */
    if (!r->store)
        return 0;
    return ct_store_add(r->store, "goodbye", 0, &goodbyes)
               != CT_OK /* then the other ranks can't use the store, either */
           || goodbyes >= r->size - 1;
}

void rendezvous_close(struct rendezvous *r, int64_t deadline)
{
    struct long_wait wait = long_wait_begin();
    int64_t goodbyes;

    if (r->host)
        while (!all_said_goodbye(r) && clock_ms() < deadline) {
            if (long_wait_is_due(&wait))
                log_line(LOG_WAITS,
                         "waiting %d s to close the store, which %d other ranks still "
                         "use: they have not called ct_destroy_process_group()",
                         LONG_WAIT_MS / 1000, store_thread_clients(r->host) - (r->base != NULL));
            rendezvous_sleep_ms(1);
        }
    /* The status is ignored, since a server that is gone needs no goodbye. */
    else if (r->store && r->goodbyes)
        ct_store_add(r->store, "goodbye", 1, &goodbyes);
    ct_store_close(r->store);
    ct_store_close(r->base);
    store_thread_stop(r->host);
    *r = (struct rendezvous){ 0 };
}
