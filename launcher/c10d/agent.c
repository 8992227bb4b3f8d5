/* SPDX-License-Identifier: Apache-2.0 */
/* agent.c - one node's life in a job whose nodes come and go.
 *
 * Connect; then round after round: agree who is in it, exchange ranks, have the loop
 * start the workers, and keep an eye on the others until ours have ended.  A round is
 * over early when somebody failed, came or left: the workers are stopped and the
 * next one begins with whoever is there.  A failure here costs a restart of this
 * node's budget; what happened to others does not.
 *
 * "ct/failed" of the round holds the first failure, as "rank code may_restart what":
 * other ctruns stop at once and end with its code.  torchrun's agents don't know it;
 * they see that we wait for the next round, or that the job is closed. */
#include "launcher/c10d/agent.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "launcher/link.h"
#include "launcher/report.h"
#include "launcher/restarts.h"
#include "runtime/clock.h"
#include "runtime/log.h"
#include "runtime/socket.h"

#define SECOND_US INT64_C(1000000)
#define FIRST_WORD_MS 5000
#define NEXT_WORD_MS 30000

struct orders {
    int quit, ended, signalled, look;
    int port; /* of the workers' store; 0: not told yet */
    char generation[40];
    struct failure failure; /* code 0: none */
    char what[NODE_TEXT];
};

/* Nodes whose ctrun has died.  With more at a time, heartbeats tell. */
#define DEAD_MOST 16
struct dead {
    char addr[256];
    int64_t pid, local_id;
};

struct c10d_agent {
    struct c10d_config config;
    pthread_t thread;
    int wake;
    char address[256]; /* of this node, for the others */
    char name[256];    /* the node's addr */

    pthread_mutex_t lock;
    pthread_cond_t told;
    struct orders orders;
    struct dead dead[DEAD_MOST];
    int deads;
    struct c10d_news news;
    ct_store *store; /* while there is one: to be shut down when we have to end */

    /* The thread's own. */
    char place[600];
    int host_is_ctrun; /* another one */
    struct c10d_session session;
    struct c10d_assignment assignment;
    struct restarts restarts;
    int restarted;
    int again;     /* the failure of this round, here, is followed by another one */
    int64_t round; /* the last we had workers in; -1: none yet */
    int in_round;
};

/* ---- Between the thread and the loop ---------------------------------------------- */

static void news_is_there(struct c10d_agent *a)
{
    eventfd_write(a->wake, 1);
}

static void post_over(struct c10d_agent *a, int code, const char *why)
{
    pthread_mutex_lock(&a->lock);
    a->news.over = 1;
    a->news.code = code;
    snprintf(a->news.why, sizeof a->news.why, "%s", why);
    pthread_mutex_unlock(&a->lock);
    news_is_there(a);
}

static void post_stop(struct c10d_agent *a, const char *why)
{
    pthread_mutex_lock(&a->lock);
    a->news.stop = 1;
    snprintf(a->news.why, sizeof a->news.why, "%s", why);
    pthread_mutex_unlock(&a->lock);
    news_is_there(a);
}

static void wait_to_be_told(struct c10d_agent *a, int ms)
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

/* The session's rest(): 1, if there is no use in going on with what it does. */
static int rest(void *arg, int ms)
{
    struct c10d_agent *a = arg;
    struct dead dead;
    int stop;

    pthread_mutex_lock(&a->lock);
    if (!a->orders.quit && !a->orders.look && (a->in_round || !a->orders.signalled))
        wait_to_be_told(a, ms);
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

static void changed(void *arg)
{
    struct c10d_agent *a = arg;

    pthread_mutex_lock(&a->lock);
    a->news.changed = 1;
    pthread_mutex_unlock(&a->lock);
    news_is_there(a);
}

static struct orders orders_now(struct c10d_agent *a)
{
    struct orders orders;

    pthread_mutex_lock(&a->lock);
    orders = a->orders;
    pthread_mutex_unlock(&a->lock);
    return orders;
}

/* ---- The store ---------------------------------------------------------------------- */

static void set_store(struct c10d_agent *a, ct_store *store)
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
    const int silence = conf->keep_alive_interval * conf->keep_alive_max_attempt;
    const int answer_ms = 1000 * (silence < conf->read_timeout ? silence : conf->read_timeout);

    if (*c->file)
        return ct_store_file(c->file, answer_ms, store);
    return store_client_connect_with(c->secret, c->host, c->port, deadline_after(1000), answer_ms,
                                     store);
}

/* 0, or -1: over is posted. */
static int open_store(struct c10d_agent *a)
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
            post_over(a, 1, why);
            return -1;
        }
        if (waited >= speak) {
            log_line(LOG_WARN, "waiting %d s for the rendezvous: %s", (int)(waited / 1000),
                     ct_last_error());
            speak = waited + NEXT_WORD_MS;
        }
        if (rest(a, 100)) {
            post_over(a, 128 + orders_now(a).signalled, "");
            return -1;
        }
    }
    if (store_client_fd(store) >= 0)
        socket_notice_silence(store_client_fd(store)); /* a cut cable, as fast as the others do */
    find_address(a, store_client_fd(store));
    set_store(a, store);
    return 0;
}

/* Links between ctruns make news fast; without one, looking once a second does. */
static void open_link(struct c10d_agent *a, const char *host, int port, int *news)
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
    news_is_there(a);
}

void c10d_host_key(const char *run_id, char *key, size_t size)
{
    snprintf(key, size, "torch.rendezvous.%s/ct/host", run_id);
}

static void link_to_host(struct c10d_agent *a)
{
    char key[320];
    const char *keys[] = { key };
    int present = 0;

    c10d_host_key(a->config.run_id, key, sizeof key);
    if (!a->config.hosts && !*a->config.file && ct_store_check(a->store, keys, 1, &present) == CT_OK
        && present) {
        a->host_is_ctrun = 1;
        open_link(a, a->config.host, a->config.port, &a->news.host_link);
    }
}

/* ---- A round ------------------------------------------------------------------------- */

/* What the first failure of our last round was, if it was told: 0, and text holds it. */
static int failure_of(struct c10d_agent *a, char *text, size_t size, struct failure *failure)
{
    char *value = a->round < 0 ? NULL : c10d_peek(&a->session, a->round, "ct/failed");
    int status = -1;

    if (value) {
        node_text(text, size, value, strlen(value));
        status = node_failure(text, failure);
    }
    free(value);
    return status;
}

static void tell_failure(struct c10d_agent *a, const struct failure *f)
{
    char key[400], text[NODE_TEXT];
    int size;
    void *first;
    size_t first_size;

    c10d_key(&a->session, a->round, "ct/failed", key, sizeof key);
    size =
        snprintf(text, sizeof text, "%d %d %d %.900s", f->rank, f->code, f->may_restart, f->what);
    if (ct_store_compare_set(a->session.store, key, "", 0, text, (size_t)size, &first, &first_size)
        == CT_OK)
        free(first);
    changed(a);
}

/* At once, while our workers are still being stopped: the others can stop theirs. */
static void decide_and_tell(struct c10d_agent *a, struct failure failure)
{
    a->again = failure.may_restart && restarts_take(&a->restarts, clock_ms());
    failure.may_restart = a->again;
    tell_failure(a, &failure);
}

/* Its workers have ended well: their part is done, so it may leave. */
static int has_ended_well(struct c10d_agent *a, size_t rank)
{
    char name[40], *value;

    snprintf(name, sizeof name, "ct/ended/%zu", rank);
    value = c10d_peek(&a->session, a->round, name);
    free(value);
    return value != NULL;
}

/* A node of our round that is gone, and was needed; NULL: there is none. */
static const struct c10d_node *missing_node(struct c10d_agent *a)
{
    const struct c10d_session *s = &a->session;

    for (size_t i = 0; i < s->world.count; i++)
        if (!c10d_is(&s->state, &s->world.nodes[i], C10D_PARTICIPANT) && !has_ended_well(a, i))
            return &s->world.nodes[i];
    return NULL;
}

/* NULL: nothing has happened to the others that ends this round. */
static const char *what_happened(struct c10d_agent *a, char *text, size_t size)
{
    struct c10d_session *s = &a->session;
    const struct c10d_node *missing;
    struct failure failure;

    if (failure_of(a, text, size, &failure) == 0)
        return failure.what;
    if (s->state.closed)
        return "another node has ended the job";
    if ((missing = missing_node(a))) {
        snprintf(text, size, "node %s (pid %lld) has left the job", missing->addr,
                 (long long)missing->pid);
        return text;
    }
    if (c10d_count(&s->state, C10D_WAITING) > 0)
        return "a node has come";
    return NULL;
}

static int wait_for_store(struct c10d_agent *a)
{
    int port;

    pthread_mutex_lock(&a->lock);
    a->orders.port = 0;
    a->news.store_wanted = 1;
    news_is_there(a);
    while (!a->orders.port && !a->orders.quit)
        wait_to_be_told(a, 1000);
    port = a->orders.port;
    pthread_mutex_unlock(&a->lock);
    return port;
}

static enum c10d_end exchange(struct c10d_agent *a)
{
    const struct options *options = a->config.options;
    const char *identical = getenv("TORCH_ELASTIC_WORKER_IDENTICAL");
    struct c10d_offer offer = { .role = options->role,
                                .workers = a->config.size,
                                .identical = identical && !strcmp(identical, "1"),
                                .address = a->address,
                                .generation = a->orders.generation,
                                .timeout = options->rdzv_conf.read_timeout * SECOND_US };

    enum c10d_end end;

    if (c10d_my_rank(&a->session) == 0 && (offer.port = wait_for_store(a)) == 0)
        return C10D_STOPPED;
    end = c10d_assign(&a->session, &offer, &a->assignment);
    /* For programs here that come there without the secret, as PyTorch's do. */
    if (end == C10D_DONE && a->config.secret->size > 0 && c10d_my_rank(&a->session) != 0
        && a->assignment.by_ctrun)
        open_link(a, a->assignment.address, a->assignment.port, &a->news.store_link);
    return end;
}

static void post_round(struct c10d_agent *a)
{
    const struct c10d_assignment *got = &a->assignment;

    pthread_mutex_lock(&a->lock);
    a->orders.ended = 0;
    a->orders.failure.code = 0;
    a->news.stop = 0; /* not heard yet: it was for the round before */
    a->news.round = 1;
    a->news.plan = (struct plan){ .base = got->base,
                                  .world = got->world,
                                  .role_base = got->role_base,
                                  .role_world = got->role_world,
                                  .node = c10d_my_rank(&a->session),
                                  .nodes = (int)a->session.world.count,
                                  .restarts = a->restarted,
                                  .generation = got->generation,
                                  .address = got->address,
                                  .port = got->port };
    pthread_mutex_unlock(&a->lock);
    news_is_there(a);
}

/* Until our workers have ended.  Returns how: C10D_DONE as they wanted, C10D_CHANGED since
 * we stopped them, C10D_LOST without a store. */
static enum c10d_end watch_round(struct c10d_agent *a)
{
    enum c10d_end how = C10D_DONE;
    int told = 0;

    for (;;) {
        const struct orders orders = orders_now(a);
        char text[NODE_TEXT];
        const char *why;

        if (how != C10D_LOST && orders.failure.code && !told++)
            decide_and_tell(a, orders.failure);
        if (orders.ended || orders.quit)
            return how;
        if (how != C10D_LOST && c10d_pulse(&a->session) == C10D_LOST) {
            how = C10D_LOST;
            post_stop(a, a->session.why);
        }
        if (how == C10D_DONE && !orders.failure.code && !orders.signalled
            && (why = what_happened(a, text, sizeof text))) {
            how = C10D_CHANGED;
            post_stop(a, why);
        }
        rest(a, how == C10D_DONE ? 1000 : 100);
    }
}

/* ---- After it ------------------------------------------------------------------------- */

/* We were told to stop.  The others may go on, but not without the rendezvous. */
static void bow_out(struct c10d_agent *a)
{
    const int number = orders_now(a).signalled;
    char name[32], what[128];

    report_signal(number, name, sizeof name);
    snprintf(what, sizeof what, "the ctrun that hosts the rendezvous was told to stop by %s", name);
    if (a->config.hosts && a->round >= 0)
        tell_failure(a, &(struct failure){ -1, 128 + number, 0, what });
    if (a->config.hosts)
        c10d_close_job(&a->session);
    else
        c10d_leave_job(&a->session);
    post_over(a, 128 + number, "");
}

/* -1: as long as the others live.  torchrun's 300 s would end the job if we host it, and with
 * it the workers of a node that has more to do than we had, such as to write a checkpoint. */
static int64_t barrier_deadline(void)
{
    const char *text = getenv("TORCH_ELASTIC_EXIT_BARRIER_TIMEOUT");
    int seconds;

    return text && value_int(text, &seconds) == 0 && seconds >= 0
               ? clock_ms() + seconds * INT64_C(1000)
               : -1;
}

static int64_t count_ended(struct c10d_agent *a, int delta)
{
    int64_t count = 0;
    char key[400];

    c10d_key(&a->session, a->session.state.round, "torchelastic/agent/terminal_state/num_members",
             key, sizeof key);
    return ct_store_add(a->session.store, key, delta, &count) == CT_OK ? count : -1;
}

static void tell_ended(struct c10d_agent *a)
{
    char name[40], key[400];

    snprintf(name, sizeof name, "ct/ended/%d", c10d_my_rank(&a->session));
    c10d_key(&a->session, a->round, name, key, sizeof key);
    ct_store_set(a->session.store, key, "1", 1);
}

enum barrier { WAITING, ALL_ENDED, ENOUGH, ANEW, SAID /* that it is over */ };

/* What do the others do, while we wait for their workers? */
static enum barrier look_around(struct c10d_agent *a)
{
    struct c10d_session *s = &a->session;
    struct failure failure;
    char text[NODE_TEXT];

    if (c10d_pulse(s) != C10D_DONE) {
        /* torchrun's host goes when it has seen the end, ctrun's when all have. */
        if (!a->host_is_ctrun)
            return ALL_ENDED;
        post_over(a, 1, s->why);
        return SAID;
    }
    if (orders_now(a).signalled) {
        bow_out(a);
        return SAID;
    }
    if (failure_of(a, text, sizeof text, &failure) == 0 && s->state.closed) {
        post_over(a, failure.code, failure.what);
        return SAID;
    }
    if (s->state.closed)
        return ALL_ENDED;
    if (c10d_count(&s->state, C10D_WAITING) == 0 && !missing_node(a))
        return WAITING;
    /* If all have, who should have said so, the last one, was lost meanwhile. */
    return count_ended(a, 0) < (int64_t)s->world.count ? ANEW : ALL_ENDED;
}

/* Until the workers of all nodes have ended well.  1: the job begins anew. */
static int exit_barrier(struct c10d_agent *a)
{
    static const char last[] = "torchelastic/agent/terminal_state/last_member";
    struct c10d_session *s = &a->session;
    const int64_t deadline = barrier_deadline();
    enum barrier now = WAITING;
    char key[400];

    tell_ended(a);
    c10d_key(s, s->state.round, last, key, sizeof key);
    if (count_ended(a, 1) >= (int64_t)s->world.count)
        ct_store_set(s->store, key, "<val_ignored>", strlen("<val_ignored>"));
    for (int ms = 1; now == WAITING; ms = ms < 200 ? 2 * ms : 250) {
        char *all = c10d_peek(s, s->state.round, last);

        if (all || rest(a, ms))
            now = ALL_ENDED;
        else
            now = look_around(a);
        free(all);
        if (now == WAITING && deadline >= 0 && clock_ms() >= deadline)
            now = a->config.hosts ? ALL_ENDED : ENOUGH;
    }
    if (now == ENOUGH) {
        c10d_leave_job(s);
        post_over(a, 0, "");
    }
    if (now == ALL_ENDED) {
        c10d_close_job(s);
        post_over(a, 0, "");
    }
    return now == ANEW;
}

/* 1: the next round. */
static int after_round(struct c10d_agent *a, enum c10d_end how)
{
    const struct orders orders = orders_now(a);
    struct failure failure;
    char text[NODE_TEXT];

    if (orders.signalled) {
        bow_out(a);
        return 0;
    }
    if (how == C10D_LOST || orders.quit) {
        post_over(a, orders.failure.code ? orders.failure.code : 1, a->session.why);
        return 0;
    }
    if (orders.failure.code && !a->again) {
        if (c10d_close_job(&a->session) != C10D_DONE)
            log_line(LOG_WARN, "the others could not be told that the job is over: %s",
                     a->session.why);
        post_over(a, orders.failure.code, "");
        return 0;
    }
    if (orders.failure.code) {
        a->restarted++;
        return 1;
    }
    if (how == C10D_DONE)
        return exit_barrier(a);
    if (failure_of(a, text, sizeof text, &failure) == 0 && !failure.may_restart) {
        post_over(a, failure.code, failure.what);
        return 0;
    }
    return 1; /* and if the job is closed, that is said there */
}

/* There is no next round: why? */
static void end_outside(struct c10d_agent *a, enum c10d_end end)
{
    struct failure failure;
    char text[NODE_TEXT];

    if (end == C10D_STOPPED) {
        bow_out(a);
        return;
    }
    if (end == C10D_CLOSED && failure_of(a, text, sizeof text, &failure) == 0) {
        post_over(a, failure.code, failure.what);
        return;
    }
    if (end == C10D_SPARED)
        log_line(LOG_WARN, "%s", a->session.why);
    if (end == C10D_LATE)
        c10d_leave_job(&a->session);
    post_over(a, end == C10D_SPARED ? 0 : 1, end == C10D_SPARED ? "" : a->session.why);
}

static void live(struct c10d_agent *a)
{
    for (;;) {
        enum c10d_end end = c10d_next_round(&a->session);

        if (end == C10D_DONE)
            end = exchange(a);
        if (end == C10D_CHANGED)
            continue;
        if (end != C10D_DONE) {
            end_outside(a, end);
            return;
        }
        a->in_round = 1;
        a->round = a->session.state.round;
        post_round(a);
        end = watch_round(a);
        end = (enum c10d_end)after_round(a, end);
        a->in_round = 0;
        if (!end)
            return;
    }
}

static void *run(void *arg)
{
    struct c10d_agent *a = arg;
    ct_store *store;

    if (open_store(a) < 0)
        return NULL;
    a->session.store = store = a->store;
    link_to_host(a);
    live(a);
    set_store(a, NULL);
    ct_store_close(store);
    return NULL;
}

/* ---- The loop's side -------------------------------------------------------------------- */

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
    s->rest = rest;
    s->changed = changed;
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

const struct c10d_node *c10d_agent_node(const struct c10d_agent *a)
{
    return &a->session.me;
}

void c10d_agent_destroy(struct c10d_agent *a)
{
    if (!a)
        return;
    pthread_mutex_lock(&a->lock);
    a->orders.quit = 1;
    if (a->store && store_client_fd(a->store) >= 0)
        shutdown(store_client_fd(a->store), SHUT_RDWR);
    order(a);
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
