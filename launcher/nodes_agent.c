/* SPDX-License-Identifier: Apache-2.0 */
/* nodes_agent.c - a ctrun that is not node 0: connects to the one that is, starts
 * and stops as it is told, and tells it how the workers here fare.
 *
 * It also answers for this host's programs: when one of them comes to the store
 * without a secret, as PyTorch's do, node 0 asks whose it is.  Losing node 0
 * stops the workers: nobody would hear of their failures any more.  A host that
 * vanishes is noticed by TCP's keepalive within seconds. */
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "launcher/nodes.h"
#include "launcher/report.h"
#include "runtime/clock.h"
#include "runtime/log.h"
#include "runtime/store/peer_uid.h"
#include "runtime/socket.h"

#define ATTEMPT_MS 2000 /* the loop stands still for that long at most */
#define FIRST_WORD_MS 5000
#define NEXT_WORD_MS 30000

struct agent {
    struct nodes nodes;
    struct event_base *base;
    struct rendezvous *meet;
    const struct options *options;
    int size;
    struct bufferevent *stream; /* NULL: not connected */
    struct event again;
    int64_t since, speak;
    int pause_ms;
    int running; /* a round */
    int netlink;
    char generation[32];
    char lost[NODE_TEXT]; /* why there is nobody to wait for when the workers are gone */
};

/* ---- Out -------------------------------------------------------------------- */

static void send_message(struct agent *a, int type, const void *data, size_t bytes)
{
    const uint32_t size = (uint32_t)bytes + 1;
    const unsigned char kind = (unsigned char)type;

    if (!a->stream)
        return;
    bufferevent_write(a->stream, &size, sizeof size);
    bufferevent_write(a->stream, &kind, 1);
    bufferevent_write(a->stream, data, bytes);
}

static void tell(struct agent *a, int type, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void tell(struct agent *a, int type, const char *format, ...)
{
    char text[NODE_TEXT];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    send_message(a, type, text, strlen(text));
}

static void disconnect(struct agent *a)
{
    if (a->stream)
        bufferevent_free(a->stream);
    a->stream = NULL;
}

/* ---- In --------------------------------------------------------------------- */

static void over(struct agent *a, int code, const char *why)
{
    disconnect(a);
    event_del(&a->again);
    a->nodes.hooks->over(a->nodes.job, code, why);
}

/* Node 0 is gone: when the workers are, so are we. */
static void lose_host(struct agent *a, const char *why)
{
    disconnect(a);
    log_line(LOG_ERROR, "%s", why);
    snprintf(a->lost, sizeof a->lost, "%s", why);
    if (a->running)
        a->nodes.hooks->stop(a->nodes.job, why);
    else
        over(a, 1, why);
}

static void get_end(const unsigned char in[18], struct sockaddr_storage *out)
{
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };

    memcpy(&v6.sin6_addr, in, 16);
    memcpy(&v6.sin6_port, in + 16, 2);
    *out = (struct sockaddr_storage){ 0 };
    memcpy(out, &v6, sizeof v6);
}

static void answer_who(struct agent *a, const unsigned char *data, size_t bytes)
{
    struct sockaddr_storage program, store;
    unsigned char answer[5];
    uid_t uid = 0;

    if (bytes != AGENT_WHO_BYTES)
        return;
    get_end(data + 4, &program);
    get_end(data + 22, &store);
    memcpy(answer, data, 4);
    answer[4] = peer_uid(a->netlink, &program, &store, &uid) == PEER_HERE && uid == geteuid();
    send_message(a, AGENT_OURS, answer, sizeof answer);
}

static void begin_round(struct agent *a, const char *text)
{
    struct plan plan = { .node = a->options->node_rank,
                         .nodes = a->options->nnodes.max,
                         .generation = a->generation,
                         .address = a->meet->address,
                         .port = a->meet->port };

    if (sscanf(text, "%d %d %d %d %d %31s", &plan.base, &plan.world, &plan.role_base,
               &plan.role_world, &plan.restarts, a->generation)
        != 6)
        return;
    a->running = 1;
    a->nodes.hooks->round(a->nodes.job, &plan);
}

static void take_message(struct agent *a, int type, const unsigned char *data, size_t bytes)
{
    char text[NODE_TEXT];
    int code = 0, at = 0;

    node_text(text, sizeof text, data, bytes);
    if (type == AGENT_WHO) {
        answer_who(a, data, bytes);
    } else if (type == NODE_REFUSED) {
        log_line(LOG_ERROR, "node 0 refused this node: %s", text);
        over(a, 1, text);
    } else if (type == NODE_ROUND) {
        begin_round(a, text);
    } else if (type == NODE_STOP && a->running) {
        a->nodes.hooks->stop(a->nodes.job, text);
    } else if (type == NODE_OVER && sscanf(text, "%d %n", &code, &at) == 1) {
        over(a, code, text + at);
    }
}

static void on_read(struct bufferevent *stream, void *arg)
{
    struct agent *a = arg;
    unsigned char message[4 + NODE_TEXT];
    uint32_t size;

    while (a->stream == stream) {
        struct evbuffer *in = bufferevent_get_input(stream);

        if (evbuffer_copyout(in, &size, 4) < 4)
            return;
        if (size == 0 || size > NODE_TEXT) {
            lose_host(a, "node 0 speaks another language: is it the same version of ctrun?");
            return;
        }
        if (evbuffer_get_length(in) < 4 + size)
            return;
        evbuffer_remove(in, message, 4 + size);
        take_message(a, message[4], message + 5, size - 1);
    }
}

static void on_end(struct bufferevent *stream, short what, void *arg)
{
    struct agent *a = arg;
    char why[NODE_TEXT];

    (void)stream;
    snprintf(why, sizeof why, "node 0 at %s port %d was lost: %s", a->meet->address, a->meet->port,
             what & BEV_EVENT_EOF ? "its ctrun ended" : strerror(errno));
    lose_host(a, why);
}

/* ---- Connecting ------------------------------------------------------------- */

static ct_status connect_once(struct agent *a, int *fd)
{
    const int64_t deadline = deadline_after(ATTEMPT_MS);
    char where[300];
    ct_status status = socket_connect_once(a->meet->address, a->meet->port, deadline, fd);

    if (status != CT_OK)
        return status;
    snprintf(where, sizeof where, "%s port %d", a->meet->address, a->meet->port);
    status = secret_prove(&a->meet->policy.secret, *fd, HELLO_AGENT, where, deadline);
    if (status != CT_OK)
        close(*fd);
    return status;
}

static void join(struct agent *a, int fd)
{
    socket_notice_silence(fd);
    evutil_make_socket_nonblocking(fd);
    a->stream = bufferevent_socket_new(a->base, fd, BEV_OPT_CLOSE_ON_FREE);
    if (!a->stream) {
        close(fd);
        log_line(LOG_ERROR, "out of memory");
        over(a, 1, "out of memory");
        return;
    }
    bufferevent_setcb(a->stream, on_read, NULL, on_end, a);
    bufferevent_enable(a->stream, EV_READ | EV_WRITE);
    tell(a, NODE_JOIN, "%d %d %d %s %zu %s %s", a->options->node_rank, a->options->nnodes.max,
         a->size, CT_VERSION, strlen(a->options->role), a->options->role, a->meet->run_id);
}

/* A wrong secret stays wrong; all else may be a node 0 that is not up yet. */
static void try_to_connect(evutil_socket_t ignored, short what, void *arg)
{
    struct agent *a = arg;
    const int64_t waited = clock_ms() - a->since;
    struct timeval pause;
    int fd;
    const ct_status status = connect_once(a, &fd);

    (void)ignored;
    (void)what;
    if (status == CT_OK) {
        join(a, fd);
        return;
    }
    if (status == CT_ERR_INVALID || status == CT_ERR_UNSUPPORTED) {
        log_line(LOG_ERROR, "%s", ct_last_error());
        over(a, 1, "");
        return;
    }
    if (waited >= a->speak) {
        log_line(LOG_WARN, "waiting %d s for node 0: %s", (int)(waited / 1000), ct_last_error());
        a->speak += NEXT_WORD_MS;
    }
    if (waited >= a->options->rdzv_conf.timeout * INT64_C(1000)) {
        log_line(LOG_ERROR, "node 0 did not come within %d s (--rdzv-conf=timeout=...): %s",
                 a->options->rdzv_conf.timeout, ct_last_error());
        over(a, 1, "node 0 did not come");
        return;
    }
    pause = (struct timeval){ a->pause_ms / 1000, a->pause_ms % 1000 * 1000 };
    a->pause_ms = a->pause_ms < 500 ? 2 * a->pause_ms : 1000;
    event_add(&a->again, &pause);
}

static void agent_start(struct nodes *nodes)
{
    struct agent *a = (struct agent *)nodes;

    a->since = clock_ms();
    a->speak = FIRST_WORD_MS;
    a->pause_ms = 10;
    event_active(&a->again, EV_TIMEOUT, 0);
}

/* ---- What this node tells --------------------------------------------------- */

static void agent_failed(struct nodes *nodes, const struct failure *f)
{
    tell((struct agent *)nodes, NODE_FAILED, "%d %d %d %s", f->rank, f->code, f->may_restart,
         f->what);
}

static void agent_lost(struct nodes *nodes, const struct failure *f)
{
    tell((struct agent *)nodes, NODE_LOST, "%d %d %d %s", f->rank, f->code, f->may_restart,
         f->what);
}

static void agent_refused(struct nodes *nodes, int code)
{
    tell((struct agent *)nodes, NODE_CANNOT, "%d", code);
}

static void agent_signalled(struct nodes *nodes, int number)
{
    struct agent *a = (struct agent *)nodes;

    tell(a, NODE_SIGNALLED, "%d", number);
    if (!a->running) /* nobody to wait for */
        over(a, 128 + number, "");
}

static void agent_ended(struct nodes *nodes)
{
    struct agent *a = (struct agent *)nodes;

    a->running = 0;
    if (a->stream)
        tell(a, NODE_ENDED, "%s", "");
    else
        over(a, 1, a->lost);
}

static void agent_destroy(struct nodes *nodes)
{
    struct agent *a = (struct agent *)nodes;

    disconnect(a);
    event_del(&a->again);
    if (a->netlink >= 0)
        close(a->netlink);
    free(a);
}

static const struct nodes_ops agent_ops = { .start = agent_start,
                                            .failed = agent_failed,
                                            .lost = agent_lost,
                                            .refused = agent_refused,
                                            .signalled = agent_signalled,
                                            .ended = agent_ended,
                                            .destroy = agent_destroy };

struct nodes *nodes_agent(struct event_base *base, struct rendezvous *meet,
                          const struct options *options, int size, const struct nodes_hooks *hooks,
                          void *job)
{
    struct agent *a = calloc(1, sizeof *a);

    if (!a) {
        log_line(LOG_ERROR, "out of memory");
        return NULL;
    }
    a->nodes = (struct nodes){ .ops = &agent_ops, .hooks = hooks, .job = job };
    a->base = base;
    a->meet = meet;
    a->options = options;
    a->size = size;
    a->netlink = peer_uid_open();
    evtimer_assign(&a->again, base, try_to_connect, a);
    return &a->nodes;
}
