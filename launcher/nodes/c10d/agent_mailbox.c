/* SPDX-License-Identifier: Apache-2.0 */
/* agent_mailbox.c - orders of the loop, news of the thread: both under one lock. */
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>

#include "launcher/nodes/c10d/agent_internal.h"
#include "runtime/store/tcp_store.h"

/* ---- The thread's side ---------------------------------------------------------------- */

void c10d_news_is_there(struct c10d_agent *a)
{
    eventfd_write(a->wake, 1);
}

void c10d_post_over(struct c10d_agent *a, int code, const char *why)
{
    pthread_mutex_lock(&a->lock);
    a->news.over = 1;
    a->news.code = code;
    snprintf(a->news.why, sizeof a->news.why, "%s", why);
    pthread_mutex_unlock(&a->lock);
    c10d_news_is_there(a);
}

void c10d_post_stop(struct c10d_agent *a, const char *why, int lost)
{
    pthread_mutex_lock(&a->lock);
    a->news.stop = 1;
    a->news.lost = lost;
    snprintf(a->news.why, sizeof a->news.why, "%s", why);
    pthread_mutex_unlock(&a->lock);
    c10d_news_is_there(a);
}

void c10d_post_verdict(struct c10d_agent *a, const char *why)
{
    pthread_mutex_lock(&a->lock);
    a->news.verdict = 1;
    snprintf(a->news.failed, sizeof a->news.failed, "%s", why);
    pthread_mutex_unlock(&a->lock);
    c10d_news_is_there(a);
}

void c10d_wait_to_be_told(struct c10d_agent *a, int ms)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += ms / 1000;
    until.tv_nsec += ms % 1000 * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_nsec -= 1000000000L;
        until.tv_sec++;
    }
    pthread_cond_timedwait(&a->told, &a->lock, &until);
}

static int take_dead(struct c10d_agent *a, struct dead *dead)
{
    int some;

    pthread_mutex_lock(&a->lock);
    some = a->deads > 0;
    if (some)
        *dead = a->dead[--a->deads];
    pthread_mutex_unlock(&a->lock);
    return some;
}

/* The session's c10d_rest(): 1, if there is no use in going on with what it does. */
int c10d_rest(void *arg, int ms)
{
    struct c10d_agent *a = arg;
    struct dead dead;
    int stop;

    pthread_mutex_lock(&a->lock);
    if (!a->orders.quit && !a->orders.look && (a->in_round || !a->orders.signalled))
        c10d_wait_to_be_told(a, ms);
    if (a->orders.look)
        a->session.looked = 0;
    a->orders.look = 0;
    stop = a->orders.quit || (!a->in_round && a->orders.signalled);
    pthread_mutex_unlock(&a->lock);
    while (take_dead(a, &dead)) {
        const struct c10d_node node = { dead.addr, dead.pid, dead.local_id };

        c10d_take_out(&a->session, &node);
    }
    return stop;
}

void c10d_changed(void *arg)
{
    struct c10d_agent *a = arg;

    pthread_mutex_lock(&a->lock);
    a->news.changed = 1;
    pthread_mutex_unlock(&a->lock);
    c10d_news_is_there(a);
}

struct orders c10d_orders_now(struct c10d_agent *a)
{
    struct orders orders;

    pthread_mutex_lock(&a->lock);
    orders = a->orders;
    pthread_mutex_unlock(&a->lock);
    return orders;
}

/* ---- The loop's side ------------------------------------------------------------------ */

int c10d_agent_wake(const struct c10d_agent *a)
{
    return a->wake;
}

void c10d_agent_news(struct c10d_agent *a, struct c10d_news *news)
{
    eventfd_t count;

    pthread_mutex_lock(&a->lock);
    eventfd_read(a->wake, &count);
    *news = a->news;
    a->news.verdict = 0;
    a->news.store_wanted = a->news.round = a->news.stop = a->news.over = a->news.changed = 0;
    a->news.host_link = a->news.store_link = -1;
    pthread_mutex_unlock(&a->lock);
}

static void order(struct c10d_agent *a)
{
    a->orders.look = 1;
    pthread_cond_signal(&a->told);
    pthread_mutex_unlock(&a->lock);
}

void c10d_agent_store(struct c10d_agent *a, int port, const char *generation)
{
    pthread_mutex_lock(&a->lock);
    a->orders.port = port;
    snprintf(a->orders.generation, sizeof a->orders.generation, "%s", generation);
    order(a);
}

void c10d_agent_failed(struct c10d_agent *a, const struct failure *failure)
{
    pthread_mutex_lock(&a->lock);
    if (!a->orders.failure.code) {
        snprintf(a->orders.what, sizeof a->orders.what, "%s", failure->what);
        a->orders.failure = *failure;
        a->orders.failure.what = a->orders.what;
    }
    order(a);
}

void c10d_agent_signalled(struct c10d_agent *a, int number)
{
    pthread_mutex_lock(&a->lock);
    if (!a->orders.signalled)
        a->orders.signalled = number;
    order(a);
}

void c10d_agent_ended(struct c10d_agent *a)
{
    pthread_mutex_lock(&a->lock);
    a->orders.ended = 1;
    order(a);
}

void c10d_agent_look(struct c10d_agent *a)
{
    pthread_mutex_lock(&a->lock);
    order(a);
}

void c10d_agent_dead(struct c10d_agent *a, const struct c10d_node *node)
{
    pthread_mutex_lock(&a->lock);
    if (a->deads < DEAD_MOST) {
        struct dead *dead = &a->dead[a->deads++];

        snprintf(dead->addr, sizeof dead->addr, "%s", node->addr);
        dead->pid = node->pid;
        dead->local_id = node->local_id;
    }
    order(a);
}

/* Wherever it waits. */
void c10d_quit(struct c10d_agent *a)
{
    pthread_mutex_lock(&a->lock);
    a->orders.quit = 1;
    if (a->store && store_client_fd(a->store) >= 0)
        shutdown(store_client_fd(a->store), SHUT_RDWR);
    order(a);
}
