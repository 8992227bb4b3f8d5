/* SPDX-License-Identifier: Apache-2.0 */
/* server_thread.c - runs the store's server on its own thread, for a rank that hosts the store. */
#include <errno.h>
#include <event2/event.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "runtime/store/server/server.h"
#include "runtime/store/server/server_thread.h"
#include "runtime/util/forks.h"
#include "runtime/util/log.h"
#include "runtime/util/thread.h"

struct store_thread {
    pthread_t thread;
    struct event_base *base;
    struct event *stop; /* wakes the thread by stop_fd, since libevent runs without locks */
    int stop_fd;        /* the eventfd */
    _Atomic int stops;  /* true when the thread must end */
    struct store_server *server;
};

static void store_thread_on_stop(evutil_socket_t fd, short what, void *arg)
{
    struct store_thread *host = arg;

    (void)fd;
    (void)what;
    if (atomic_load(&host->stops))
        event_base_loopbreak(host->base);
}

static void *store_thread_run(void *arg)
{
    struct store_thread *host = arg;

    store_server_run(host->server, host->base);
    return NULL;
}

static void host_free(struct store_thread *host)
{
    store_server_destroy(host->server);
    if (host->stop)
        event_free(host->stop);
    if (host->base)
        event_base_free(host->base);
    if (host->stop_fd >= 0)
        descriptor_close(host->stop_fd);
    free(host);
}

static ct_status store_thread_begin(struct store_thread *host)
{
    const int error = thread_start(&host->thread, store_thread_run, host);

    return error ? ct_fail(CT_ERR_SYSTEM, "no thread for the store: %s", strerror(error)) : CT_OK;
}

ct_status store_thread_start(int listen_fd, struct store_thread **out)
{
    struct secret secret;
    const ct_status status = secret_read(&secret, NULL);

    if (status != CT_OK)
        close(listen_fd);
    return status == CT_OK ? store_thread_start_with(listen_fd, &secret, out) : status;
}

ct_status store_thread_start_with(int listen_fd, const struct secret *secret,
                                  struct store_thread **out)
{
    /* The thread checks `stops` once a second, since the eventfd can't wake it if the program has
     * closed all descriptors. */
    static const struct timeval pause = { 1, 0 };
    struct store_policy policy = STORE_POLICY_INIT;
    struct store_thread *host = calloc(1, sizeof *host);
    ct_status status = encryption_wanted(secret, &policy.encrypts);

    policy.secret = *secret;
    if (!host || status != CT_OK) {
        close(listen_fd);
        free(host);
        return status != CT_OK ? status : ct_fail(CT_ERR_NOMEM, "no memory for the store");
    }
    policy.open = policy.secret.size == 0;
    host->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    descriptor_own(host->stop_fd);
    host->base = event_base_new();
    host->stop = host->base ? event_new(host->base, host->stop_fd, EV_READ | EV_PERSIST,
                                        store_thread_on_stop, host)
                            : NULL;
    if (host->stop_fd < 0 || !host->stop || event_add(host->stop, &pause) < 0) {
        close(listen_fd);
        host_free(host);
        return ct_fail(CT_ERR_SYSTEM, "no event loop for the store: %s", strerror(errno));
    }
    status = store_server_create(host->base, listen_fd, &policy, &host->server);
    if (status == CT_OK)
        status = store_thread_begin(host);
    if (status != CT_OK) {
        host_free(host);
        return status;
    }
    *out = host;
    return CT_OK;
}

int store_thread_clients(struct store_thread *host)
{
    return store_server_clients(host->server);
}

void store_thread_stop(struct store_thread *host)
{
    const uint64_t one = 1;

    if (!host)
        return;
    atomic_store(&host->stops, 1);
    if (write(host->stop_fd, &one, sizeof one) < 0)
        log_line(LOG_DEBUG, "cannot wake the store's thread: %s", strerror(errno));
    pthread_join(host->thread, NULL);
    host_free(host);
}
