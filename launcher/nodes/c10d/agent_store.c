/* SPDX-License-Identifier: Apache-2.0 */
/* agent_store.c - to the store where the nodes meet, and to the ctrun that serves it. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "launcher/nodes/c10d/agent_internal.h"
#include "launcher/nodes/node_link.h"
#include "runtime/net/socket.h"
#include "runtime/store/tcp_store.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"

#define FIRST_WORD_MS 5000
#define NEXT_WORD_MS 30000

void c10d_set_store(struct c10d_agent *a, ct_store *store)
{
    pthread_mutex_lock(&a->lock);
    a->store = store;
    pthread_mutex_unlock(&a->lock);
}

static int is_loopback(const char *address)
{
    return !strncmp(address, "127.", 4) || !strcmp(address, "::1") || !strcmp(address, "localhost");
}

/* How others reach us: by the way we reach the rendezvous; its host, by the name that
 * they use themselves. */
static void find_address(struct c10d_agent *a, int fd)
{
    const char *chosen = a->config.options->local_addr;

    if (chosen)
        snprintf(a->address, sizeof a->address, "%s", chosen);
    else if (fd < 0)
        strcpy(a->address, "127.0.0.1");
    else if (a->config.hosts || socket_local_address(fd, a->address, sizeof a->address) != CT_OK
             || is_loopback(a->address))
        snprintf(a->address, sizeof a->address, "%s", a->config.host);
    if (!strcmp(a->address, "localhost"))
        strcpy(a->address, "127.0.0.1");
}

static ct_status connect_once(struct c10d_agent *a, ct_store **store)
{
    const struct c10d_config *c = &a->config;
    const struct rdzv_conf *conf = &c->options->rdzv_conf;
    const int silence = conf->keep_alive_interval * conf->keep_alive_max_attempt; /* fits: config */
    const int64_t seconds = silence < conf->read_timeout ? silence : conf->read_timeout;
    const int answer_ms = seconds < INT_MAX / 1000 ? (int)seconds * 1000 : INT_MAX;

    if (*c->file)
        return ct_store_file(c->file, answer_ms, store);
    return store_client_connect_with(c->secret, c->host, c->port, deadline_after(1000), answer_ms,
                                     store);
}

/* 0, or -1: over is posted. */
int c10d_open_store(struct c10d_agent *a)
{
    const int64_t start = clock_ms();
    int64_t speak = FIRST_WORD_MS;
    char why[NODE_TEXT];
    ct_store *store = NULL;

    for (;;) {
        const ct_status status = connect_once(a, &store);
        const int64_t waited = clock_ms() - start;

        if (status == CT_OK)
            break;
        if (status == CT_ERR_INVALID || status == CT_ERR_UNSUPPORTED || *a->config.file
            || waited >= a->config.options->rdzv_conf.join_timeout * INT64_C(1000)) {
            snprintf(why, sizeof why, "%sno rendezvous: %.900s",
                     waited > 1000 ? "RendezvousTimeoutError: " : "", ct_last_error());
            c10d_post_over(a, 1, why);
            return -1;
        }
        if (waited >= speak) {
            log_line(LOG_WARN, "waiting %d s for the rendezvous: %s", (int)(waited / 1000),
                     ct_last_error());
            speak = waited + NEXT_WORD_MS;
        }
        if (c10d_rest(a, 100)) {
            c10d_post_over(a, 128 + c10d_orders_now(a).signalled, "");
            return -1;
        }
    }
    if (store_client_fd(store) >= 0)
        socket_notice_silence(store_client_fd(store)); /* a cut cable, as fast as the others do */
    find_address(a, store_client_fd(store));
    c10d_set_store(a, store);
    return 0;
}

/* Links between ctruns make news fast; without one, looking once a second does. */
void c10d_open_link(struct c10d_agent *a, const char *host, int port, int *news)
{
    int fd;

    if (link_connect(a->config.secret, host, port, deadline_after(1000), &fd) != CT_OK) {
        log_line(LOG_INFO, "no link to the ctrun at %s port %d: %s", host, port, ct_last_error());
        return;
    }
    pthread_mutex_lock(&a->lock);
    if (*news >= 0)
        close(*news);
    *news = fd;
    pthread_mutex_unlock(&a->lock);
    c10d_news_is_there(a);
}

void c10d_host_key(const char *run_id, char *key, size_t size)
{
    snprintf(key, size, "torch.rendezvous.%s/ct/host", run_id);
}

void c10d_link_to_host(struct c10d_agent *a)
{
    char key[320];
    const char *keys[] = { key };
    int present = 0;

    c10d_host_key(a->config.run_id, key, sizeof key);
    if (!a->config.hosts && !*a->config.file && ct_store_check(a->store, keys, 1, &present) == CT_OK
        && present) {
        a->host_is_ctrun = 1;
        c10d_open_link(a, a->config.host, a->config.port, &a->news.host_link);
    }
}
