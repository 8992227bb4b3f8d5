/* SPDX-License-Identifier: Apache-2.0 */
/* agent.c - one node's life in a job whose nodes come and go.
 *
 * Connect; then round after round: agree who is in it, exchange ranks, have the loop
 * start the workers, and keep an eye on the others until ours have ended.  A round is
 * over early when somebody failed, came or left: the workers are stopped and the
 * next one begins with whoever is there.  A failure here costs a restart of this
 * node's budget; what happened to others does not. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include "launcher/nodes/c10d/agent_internal.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"

static void live(struct c10d_agent *a)
{
    for (;;) {
        enum c10d_end end = c10d_next_round(&a->session);

        if (end == C10D_DONE)
            end = c10d_exchange(a);
        if (end == C10D_CHANGED)
            continue;
        if (end != C10D_DONE) {
            c10d_end_outside(a, end);
            return;
        }
        a->in_round = 1;
        a->round = a->session.state.round;
        c10d_say(a, "here");
        c10d_post_round(a);
        end = c10d_watch_round(a);
        end = (enum c10d_end)c10d_after_round(a, end);
        a->in_round = 0;
        if (!end)
            return;
    }
}

static void *run(void *arg)
{
    struct c10d_agent *a = arg;
    ct_store *store;

    if (c10d_open_store(a) < 0)
        return NULL;
    a->session.store = store = a->store;
    c10d_link_to_host(a);
    live(a);
    c10d_set_store(a, NULL);
    ct_store_close(store);
    return NULL;
}

/* ---- From outside ---------------------------------------------------------------------- */

static void setup_session(struct c10d_agent *a)
{
    const struct options *options = a->config.options;
    const struct rdzv_conf *conf = &options->rdzv_conf;
    struct c10d_session *s = &a->session;
    uint32_t random = 0;

    if (*a->config.file)
        snprintf(a->place, sizeof a->place, "%s", a->config.file);
    else
        snprintf(a->place, sizeof a->place, "%s port %d", a->config.host, a->config.port);
    if (options->local_addr)
        snprintf(a->name, sizeof a->name, "%s", options->local_addr);
    else if (gethostname(a->name, sizeof a->name - 1) < 0)
        strcpy(a->name, "localhost");
    /* In containers several agents may have one name and pid 1. */
    if (getrandom(&random, sizeof random, GRND_NONBLOCK) < 0)
        random = (uint32_t)clock_us();
    c10d_session_init(s, NULL, a->place, a->config.run_id);
    s->me = (struct c10d_node){ a->name, getpid(), random >> 8 };
    s->rest = c10d_rest;
    s->changed = c10d_changed;
    s->arg = a;
    s->join_timeout = conf->join_timeout * SECOND_US;
    s->close_timeout = conf->close_timeout * SECOND_US;
    s->heartbeat_timeout = conf->heartbeat_timeout * SECOND_US;
    s->settings =
        (struct c10d_settings){ .min = (size_t)options->nnodes.min,
                                .max = (size_t)options->nnodes.max,
                                .last_call_timeout = conf->last_call_timeout * SECOND_US,
                                .keep_alive_interval = conf->keep_alive_interval * SECOND_US,
                                .keep_alive_max_attempt = conf->keep_alive_max_attempt };
    a->restarts.limit = options->max_restarts;
    a->round = -1;
}

struct c10d_agent *c10d_agent_start(const struct c10d_config *config)
{
    struct c10d_agent *a = calloc(1, sizeof *a);
    pthread_condattr_t monotonic;

    if (!a) {
        log_line(LOG_ERROR, "out of memory");
        return NULL;
    }
    a->config = *config;
    a->news.host_link = a->news.store_link = -1;
    setup_session(a);
    a->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&a->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&a->told, &monotonic);
    pthread_condattr_destroy(&monotonic);
    errno = a->wake < 0 ? errno : pthread_create(&a->thread, NULL, run, a);
    if (a->wake >= 0 && errno == 0)
        return a;
    log_line(LOG_ERROR, "cannot start the rendezvous: %s", strerror(errno));
    if (a->wake >= 0)
        close(a->wake);
    free(a);
    return NULL;
}

const struct c10d_node *c10d_agent_node(const struct c10d_agent *a)
{
    return &a->session.me;
}

void c10d_agent_destroy(struct c10d_agent *a)
{
    if (!a)
        return;
    c10d_quit(a);
    pthread_join(a->thread, NULL);
    if (a->news.host_link >= 0)
        close(a->news.host_link);
    if (a->news.store_link >= 0)
        close(a->news.store_link);
    close(a->wake);
    c10d_session_free(&a->session);
    restarts_free(&a->restarts);
    pthread_cond_destroy(&a->told);
    pthread_mutex_destroy(&a->lock);
    free(a);
}
