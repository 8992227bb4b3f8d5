/* SPDX-License-Identifier: Apache-2.0 */
/* nodes_c10d.c - torchrun's dynamic rendezvous, seen from the event loop.
 *
 * Whoever can bind the endpoint hosts the rendezvous' store; nobody compares names.  The
 * rest of it is a thread's (c10d/agent.c), which has news for us: it needs an empty
 * store for the workers, a round begins, the workers have to stop, the job is over.
 * Who hosts stays until the others have heard that. */
#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/c10d/agent.h"
#include "launcher/guests.h"
#include "launcher/link.h"
#include "launcher/pulse.h"
#include "launcher/vote.h"
#include "launcher/report.h"
#include "runtime/clock.h"
#include "runtime/log.h"
#include "runtime/socket.h"

#define GOODBYE_MS 5000
#define LOOK_EVERY_MS 20 /* at most: each look of a guest is a request for the whole state */
#define POLITE_SECONDS 3 /* to leave the others in good order when told to stop */

struct dynamic {
    struct nodes nodes;
    struct event_base *base;
    struct rendezvous *meet;
    const struct options *options;
    struct store_server *store; /* of the rendezvous, if we host it */
    int port, size;
    struct c10d_agent *agent;
    struct link_to host, workers; /* to who serves the rendezvous, to who serves our workers */
    struct guests guests;         /* linked to us, the host */
    struct pulse pulse;
    struct vote vote; /* if we host, or are alone */
    int linked;       /* to the ctrun that hosts */
    int alone;        /* this round is of this node only */
    int closed; /* the words of our ranks are, and it was not told yet at which step they stop */
    int for_good, gave; /* the job does not begin again; the exit code that its workers chose */
    struct node_workers ranks; /* of this node in the round, */
    int world;                 /* of so many */
    struct event wake, goodbye, look;
    int64_t looked; /* when the guests were told to look */
    int64_t until;  /* we host until then */
    int running;    /* workers */
    int lost;       /* of them, with --on-failure=continue */
    int code;       /* once over */
    int is_over, signal;
    char why[NODE_TEXT];
};

/* ---- The end ---------------------------------------------------------------- */

static void leave(struct dynamic *d)
{
    event_del(&d->goodbye);
    event_del(&d->wake);
    d->nodes.hooks->over(d->nodes.job, d->code, d->why);
}

static void on_goodbye(evutil_socket_t fd, short what, void *arg)
{
    const struct timeval soon = { 0, 2000 };
    struct dynamic *d = arg;

    (void)fd;
    (void)what;
    if (!d->is_over) { /* told to stop, and the rendezvous does not answer */
        d->code = 128 + d->signal;
        leave(d);
    } else if (d->store && store_server_clients(d->store) > 0 && clock_ms() < d->until) {
        event_add(&d->goodbye, &soon);
    } else {
        leave(d);
    }
}

/* Told to stop, our workers did at the step that all agreed on: their exit code counts here. */
static void take_code_of_workers(struct dynamic *d)
{
    if (!d->is_over || !d->for_good || d->gave < 0 || d->code <= 128)
        return;
    d->code = d->gave;
    d->why[0] = 0;
}

static void end_job(struct dynamic *d, int code, const char *why)
{
    d->is_over = 1;
    d->code = code;
    snprintf(d->why, sizeof d->why, "%s", why);
    if (!d->running)
        take_code_of_workers(d);
    d->until = clock_ms() + GOODBYE_MS;
    if (!d->running)
        on_goodbye(-1, 0, d);
}

/* ---- Links ------------------------------------------------------------------- */

static void on_look(evutil_socket_t fd, short what, void *arg)
{
    struct dynamic *d = arg;

    (void)fd;
    (void)what;
    d->looked = clock_ms();
    guests_tell(&d->guests, NODE_LOOK);
}

/* All should look: the host tells its guests, a guest tells the host. */
static void spread(struct dynamic *d)
{
    const int64_t wait = d->looked + LOOK_EVERY_MS - clock_ms();
    const struct timeval later = { 0, 1000 * (wait > 0 ? wait : 0) };

    link_tell(&d->host, NODE_LOOK, "%s", "");
    if (d->guests.first && !event_pending(&d->look, EV_TIMEOUT, NULL))
        event_add(&d->look, &later);
}

/* A guest speaks of its own workers. */
static void take_guests_death(struct dynamic *d, const struct guest *guest,
                              const struct node_death *dead)
{
    const int first = dead->death.rank - guest->workers.base;

    if (strcmp(dead->generation, guest->workers.generation) != 0 || first < 0
        || dead->count > guest->workers.count - first)
        return;
    guests_died(&d->guests, guest, dead);
    if (!strcmp(dead->generation, d->ranks.generation))
        node_death_deliver(&d->nodes, dead);
}

/* ---- Stopping at the same step ----------------------------------------------- */

static int is_ours(const struct dynamic *d, const char *generation)
{
    return d->running && !strcmp(generation, d->ranks.generation);
}

static void ask_guests(struct dynamic *d, const struct node_wish *wish)
{
    const uint64_t here =
        is_ours(d, wish->generation) ? d->nodes.hooks->close_steps(d->nodes.job) : 0;
    char text[NODE_TEXT];

    if (!vote_begin(&d->vote, wish, here))
        return;
    snprintf(text, sizeof text, "%s %d", wish->generation, wish->for_good);
    for (struct guest *guest = d->guests.first; guest; guest = guest->next) {
        guest->closing =
            guest->workers.count > 0 && !strcmp(guest->workers.generation, wish->generation);
        if (!guest->closing)
            continue;
        store_agent_send(guest->agent, NODE_CLOSE, text, strlen(text));
        vote_expect(&d->vote);
    }
    vote_go(&d->vote);
}

static void take_closed(struct dynamic *d, struct guest *guest, const struct node_steps *closed)
{
    if (!guest->closing)
        return;
    guest->closing = 0;
    vote_take(&d->vote, closed);
}

static void tell_stop(const struct dynamic *d, const struct guest *guest)
{
    const struct node_steps result = vote_result(&d->vote);
    char text[NODE_TEXT];

    node_steps_print(&result, text);
    if (d->vote.state == VOTE_DECIDED && !strcmp(guest->workers.generation, result.generation))
        store_agent_send(guest->agent, NODE_STOP_AT, text, strlen(text));
}

static void take_stop(struct dynamic *d, const struct node_steps *stop)
{
    if (!is_ours(d, stop->generation))
        return;
    d->for_good |= stop->for_good;
    d->closed = 0;
    d->nodes.hooks->stop_at(d->nodes.job, stop->step, stop->for_good);
}

static void on_decided(void *arg)
{
    struct dynamic *d = arg;
    const struct node_steps result = vote_result(&d->vote);

    for (const struct guest *guest = d->guests.first; guest; guest = guest->next)
        tell_stop(d, guest);
    take_stop(d, &result);
}

static void answer_how_far(struct dynamic *d, const struct node_wish *wish)
{
    struct node_steps closed = { .for_good = wish->for_good };
    char text[NODE_TEXT];

    memcpy(closed.generation, wish->generation, sizeof closed.generation);
    if (is_ours(d, wish->generation)) {
        closed.step = d->nodes.hooks->close_steps(d->nodes.job);
        d->closed = 1;
    }
    node_steps_print(&closed, text);
    link_tell(&d->host, NODE_CLOSED, "%s", text);
}

/* Nobody is left to agree with. */
static void stop_alone(struct dynamic *d)
{
    if (d->running)
        d->nodes.hooks->stop_at(d->nodes.job, d->nodes.hooks->close_steps(d->nodes.job) + 1, 0);
}

static void dynamic_ask_stop(struct nodes *nodes, int for_good)
{
    struct dynamic *d = (struct dynamic *)nodes;
    const struct node_wish wish = node_wish(d->ranks.generation, for_good);

    d->for_good |= for_good;
    if (d->host.stream)
        link_tell(&d->host, NODE_WISH, "%s %d", wish.generation, for_good);
    else if (d->store || d->alone)
        ask_guests(d, &wish);
    else if (d->linked)
        stop_alone(d);
}

/* ---- Guests ------------------------------------------------------------------ */

static void lose_guests_workers(struct dynamic *d, struct guest *guest)
{
    const struct node_workers *w = &guest->workers;
    const struct node_death dead = node_host_lost(w->generation, w->base, w->count, guest->addr);

    struct node_steps nothing = { .step = 0 };

    if (w->count > 0 && guests_alive(&d->guests, w) > 0)
        take_guests_death(d, guest, &dead);
    memcpy(nothing.generation, w->generation, sizeof nothing.generation);
    take_closed(d, guest, &nothing);
    guest->workers.count = 0;
}

static void on_guest_said(void *arg, struct store_agent *agent, int type, const void *data,
                          size_t bytes)
{
    struct dynamic *d = arg;
    struct guest *guest = guests_find(&d->guests, agent);
    struct node_workers workers;
    struct node_death dead;
    struct node_wish wish;
    struct node_steps closed;
    char text[NODE_TEXT];

    node_text(text, sizeof text, data, bytes);
    if (guest)
        guest->heard = clock_ms();
    if (type == NODE_LOOK) {
        c10d_agent_look(d->agent);
        spread(d);
    } else if (type == NODE_HERE && !guest) {
        guests_add(&d->guests, agent, text);
    } else if (type == NODE_WORKERS && guest && node_workers_read(text, &workers) == 0) {
        guest->workers = workers;
        guests_catch_up(&d->guests, guest);
        tell_stop(d, guest);
    } else if (type == NODE_DIED && guest && node_death_read(text, &dead) == 0) {
        take_guests_death(d, guest, &dead);
    } else if (type == NODE_WISH && guest && node_wish_read(text, &wish) == 0
               && !strcmp(wish.generation, guest->workers.generation)) {
        ask_guests(d, &wish);
    } else if (type == NODE_CLOSED && guest && node_steps_read(text, &closed) == 0) {
        take_closed(d, guest, &closed);
    } else if ((type == NODE_TRACE || type == NODE_CLOCK) && guest && bytes > 0) {
        d->nodes.hooks->told(d->nodes.job, agent, type, data, bytes);
    }
}

static void on_guest_left(void *arg, struct store_agent *agent)
{
    struct dynamic *d = arg;
    struct guest *guest = guests_find(&d->guests, agent);
    struct c10d_node node;

    if (!guest)
        return;
    d->nodes.hooks->told(d->nodes.job, agent, NODE_TRACE, NULL, 0);
    node = (struct c10d_node){ guest->addr, guest->pid, guest->id };
    if (!d->is_over)
        lose_guests_workers(d, guest);
    if (guest->pid && !d->is_over)
        c10d_agent_dead(d->agent, &node);
    guests_remove(&d->guests, guest);
}

/* A guest that is frozen keeps its link; that it has left the job, the rendezvous finds out. */
static void on_beat(void *arg)
{
    struct dynamic *d = arg;

    link_tell(&d->host, NODE_BEAT, "%s", "");
    for (struct guest *guest = d->guests.first; guest; guest = guest->next)
        if (pulse_is_silent(&d->pulse, guest->heard))
            lose_guests_workers(d, guest);
}

static const struct store_agent_hooks guest_hooks = { .said = on_guest_said,
                                                      .left = on_guest_left };

static void on_host_said(void *arg, int type, const char *text)
{
    struct dynamic *d = arg;
    struct node_death dead;
    struct node_wish wish;
    struct node_steps stop;

    if (type == NODE_LOOK)
        c10d_agent_look(d->agent);
    else if (type == NODE_CLOSE && node_wish_read(text, &wish) == 0)
        answer_how_far(d, &wish);
    else if (type == NODE_STOP_AT && node_steps_read(text, &stop) == 0)
        take_stop(d, &stop);
    else if (type == NODE_DIED && node_death_read(text, &dead) == 0
             && !strcmp(dead.generation, d->ranks.generation))
        node_death_deliver(&d->nodes, &dead);
    else if (type == NODE_CLOCK)
        d->nodes.hooks->told(d->nodes.job, NULL, type, text, strlen(text));
}

/* The thread has a connection of its own, and is about to notice. */
static void on_link_broke(void *arg, const char *why)
{
    struct dynamic *d = arg;

    (void)why;
    c10d_agent_look(d->agent);
    if (d->closed) /* ranks wait for what nobody tells any more */
        stop_alone(d);
}

static const struct link_hooks link_hooks = { .said = on_host_said, .broke = on_link_broke };

static void take_links(struct dynamic *d, const struct c10d_news *news)
{
    const struct c10d_node *me = c10d_agent_node(d->agent);

    if (news->host_link >= 0 && link_start(&d->host, d->base, news->host_link) == 0) {
        d->linked = 1;
        link_tell(&d->host, NODE_HERE, "%lld %lld %s", (long long)me->pid, (long long)me->local_id,
                  me->addr);
    }
    if (news->store_link >= 0)
        link_start(&d->workers, d->base, news->store_link);
}

/* ---- Deaths ------------------------------------------------------------------ */

static void dynamic_died(struct nodes *nodes, const struct control_death *death)
{
    struct dynamic *d = (struct dynamic *)nodes;
    struct node_death dead = { .count = 1, .death = *death };
    char text[NODE_TEXT];

    snprintf(dead.generation, sizeof dead.generation, "%s", d->ranks.generation);
    node_death_print(&dead, text);
    link_tell(&d->host, NODE_DIED, "%s", text);
    link_flush(&d->host);
    if (d->store)
        guests_died(&d->guests, NULL, &dead);
}

/* Who has lost the rendezvous hears of nobody any more. */
static void lose_all_others(struct dynamic *d)
{
    const struct node_workers *own = &d->ranks;
    const int after = own->base + own->count;
    struct node_death dead = node_host_lost(own->generation, 0, own->base, "");

    node_death_deliver(&d->nodes, &dead);
    dead = node_host_lost(own->generation, after, d->world - after, "");
    node_death_deliver(&d->nodes, &dead);
}

static void begin_round(struct dynamic *d, struct plan *plan)
{
    d->running = 1;
    d->lost = 0;
    d->ranks = (struct node_workers){ .base = plan->base, .count = d->size };
    d->world = plan->world;
    d->alone = plan->nodes == 1;
    d->closed = 0;
    plan->may_agree = d->alone || d->store || d->host.stream;
    snprintf(d->ranks.generation, sizeof d->ranks.generation, "%s", plan->generation);
    snprintf(d->meet->generation, sizeof d->meet->generation, "%s", plan->generation);
    link_tell(&d->host, NODE_WORKERS, "%s %d %d", d->ranks.generation, d->ranks.base, d->size);
    d->nodes.hooks->round(d->nodes.job, plan);
    guests_new_round(&d->guests, d->ranks.generation, &d->nodes);
    if (d->vote.state == VOTE_DECIDED) {
        const struct node_steps result = vote_result(&d->vote);

        take_stop(d, &result);
    }
}

/* ---- News ------------------------------------------------------------------- */

static void on_news(evutil_socket_t fd, short what, void *arg)
{
    struct dynamic *d = arg;
    struct c10d_news news;

    (void)fd;
    (void)what;
    c10d_agent_news(d->agent, &news);
    take_links(d, &news);
    if (news.changed)
        spread(d);
    if (news.store_wanted) {
        rendezvous_new_round(d->meet);
        c10d_agent_store(d->agent, d->meet->port, d->meet->generation);
    }
    if (news.round)
        begin_round(d, &news.plan);
    if (news.stop && news.lost && d->running && d->linked)
        lose_all_others(d);
    if (news.stop && d->running)
        d->nodes.hooks->stop(d->nodes.job, news.why);
    if (news.over)
        end_job(d, news.code, news.why);
}

/* ---- What this node tells --------------------------------------------------- */

static void dynamic_start(struct nodes *nodes)
{
    pulse_start(&((struct dynamic *)nodes)->pulse); /* the thread has begun */
}

static void dynamic_failed(struct nodes *nodes, const struct failure *failure)
{
    c10d_agent_failed(((struct dynamic *)nodes)->agent, failure);
}

/* MIN counts the workers of this node: nobody knows all of them. */
static void dynamic_lost(struct nodes *nodes, const struct failure *failure)
{
    struct dynamic *d = (struct dynamic *)nodes;

    rendezvous_post_death(d->meet, failure->rank, failure->what);
    if (d->size - ++d->lost >= d->options->on_failure.least)
        return;
    c10d_agent_failed(d->agent, failure);
    d->nodes.hooks->stop(d->nodes.job, "");
}

static void dynamic_refused(struct nodes *nodes, int code)
{
    const struct failure failure = { -1, code, 0, "it could not start its workers" };

    c10d_agent_failed(((struct dynamic *)nodes)->agent, &failure);
}

/* The workers are gone: the rendezvous has that long to answer. */
static void leave_politely(struct dynamic *d)
{
    const struct timeval polite = { POLITE_SECONDS, 0 };

    event_add(&d->goodbye, &polite);
}

static void dynamic_signalled(struct nodes *nodes, int number)
{
    struct dynamic *d = (struct dynamic *)nodes;

    d->signal = d->signal ? d->signal : number;
    c10d_agent_signalled(d->agent, number);
    if (!d->running && !d->is_over)
        leave_politely(d);
}

static void dynamic_ended(struct nodes *nodes, int gave)
{
    struct dynamic *d = (struct dynamic *)nodes;

    d->running = 0;
    d->gave = gave;
    take_code_of_workers(d);
    if (d->is_over)
        on_goodbye(-1, 0, d);
    else
        c10d_agent_ended(d->agent);
    if (!d->is_over && d->signal)
        leave_politely(d);
}

static struct link_to *dynamic_keeper(struct nodes *nodes)
{
    struct dynamic *d = (struct dynamic *)nodes;

    return d->store ? NULL : &d->host;
}

static void free_rest(struct dynamic *d)
{
    event_del(&d->goodbye);
    store_server_destroy(d->store); /* its agents leave */
    guests_free(&d->guests);
    free(d);
}

static void dynamic_destroy(struct nodes *nodes)
{
    struct dynamic *d = (struct dynamic *)nodes;

    d->is_over = 1;
    c10d_agent_destroy(d->agent);
    link_close(&d->host);
    link_close(&d->workers);
    event_del(&d->wake);
    event_del(&d->look);
    pulse_stop(&d->pulse);
    vote_reset(&d->vote);
    free_rest(d);
}

static const struct nodes_ops dynamic_ops = { .start = dynamic_start,
                                              .died = dynamic_died,
                                              .failed = dynamic_failed,
                                              .lost = dynamic_lost,
                                              .refused = dynamic_refused,
                                              .signalled = dynamic_signalled,
                                              .ask_stop = dynamic_ask_stop,
                                              .ended = dynamic_ended,
                                              .keeper = dynamic_keeper,
                                              .destroy = dynamic_destroy };

/* ---- Who hosts? -------------------------------------------------------------- */

/* -1: somebody else does, here or elsewhere; else a listener.  A host's own name may
 * mean its loopback: the others come from outside, so then it is all interfaces. */
static int bind_endpoint(const struct meeting *meeting)
{
    const int only_here = !strncmp(meeting->host, "127.", 4) || !strcmp(meeting->host, "::1")
                          || !strcmp(meeting->host, "localhost");
    int fd;

    if (socket_listen(meeting->host, meeting->port, &fd) != CT_OK)
        return -1;
    if (!socket_is_loopback(fd) || only_here)
        return fd;
    close(fd);
    return socket_listen(NULL, meeting->port, &fd) == CT_OK ? fd : -1;
}

/* 0, or -1 and the sentence is said. */
static int host_or_not(struct dynamic *d, struct event_base *base, const struct meeting *meeting)
{
    const int asked = d->options->rdzv_conf.is_host;
    char key[320];
    const int fd = *meeting->file || asked == 0 ? -1 : bind_endpoint(meeting);

    d->port = meeting->port;
    if (fd < 0 && asked == 1) {
        log_line(LOG_ERROR, "--rdzv-conf=is_host=1: %s", ct_last_error());
        return -1;
    }
    if (fd < 0)
        return 0;
    d->port = socket_port(fd);
    if (store_server_create(base, fd, &d->meet->policy, &d->store) == CT_OK) {
        key[0] = '/'; /* as clients' keys travel */
        c10d_host_key(d->meet->run_id, key + 1, sizeof key - 1);
        store_server_put(d->store, key, CT_VERSION, strlen(CT_VERSION));
        store_server_on_agents(d->store, &guest_hooks, d);
        return 0;
    }
    log_line(LOG_ERROR, "%s", ct_last_error());
    return -1;
}

struct nodes *nodes_c10d(struct event_base *base, struct rendezvous *meet,
                         const struct options *options, const struct meeting *meeting, int size,
                         const struct nodes_hooks *hooks, void *job)
{
    struct dynamic *d = calloc(1, sizeof *d);
    struct c10d_config config = { .options = options,
                                  .secret = &meet->policy.secret,
                                  .run_id = meet->run_id,
                                  .host = meeting->host,
                                  .file = meeting->file,
                                  .size = size };

    if (!d) {
        log_line(LOG_ERROR, "out of memory");
        return NULL;
    }
    d->nodes = (struct nodes){ .ops = &dynamic_ops, .hooks = hooks, .job = job };
    d->meet = meet;
    d->options = options;
    d->size = size;
    d->base = base;
    link_setup(&d->host, &link_hooks, d);
    link_setup(&d->workers, &link_hooks, d);
    evtimer_assign(&d->goodbye, base, on_goodbye, d);
    evtimer_assign(&d->look, base, on_look, d);
    d->gave = -1;
    vote_setup(&d->vote, base, on_decided, d);
    pulse_setup(&d->pulse, base, &options->rdzv_conf, 0, on_beat, d);
    if (host_or_not(d, base, meeting) < 0) {
        free_rest(d);
        return NULL;
    }
    config.port = d->port;
    config.hosts = d->store != NULL;
    d->agent = c10d_agent_start(&config);
    if (!d->agent) {
        free_rest(d);
        return NULL;
    }
    event_assign(&d->wake, base, c10d_agent_wake(d->agent), EV_READ | EV_PERSIST, on_news, d);
    event_add(&d->wake, NULL);
    return &d->nodes;
}
