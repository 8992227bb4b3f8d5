/* SPDX-License-Identifier: Apache-2.0 */
/* pmi_server.c - answers each worker's PMI requests on a socket, in ctrun's event loop.
 *
 * A worker may send anything.  So the server stores at most one request from a worker, reads
 * nothing while a reply is unsent, and limits the size of the worker's puts.  If a worker sends
 * bytes that are not a request, that is a fault of the worker, and the server closes the worker's
 * socket.
 *
 * A rank that has ended never enters the barrier, so the other ranks would wait forever.  The
 * function that notices this does not call the hook, since ctrun may be counting deaths at that
 * moment.  Instead a timer that is due at once calls the hook.  A rank that called MPI_Abort() ends
 * by itself as soon as it has written its message, and has ABORT_MS for that. */
#include "launcher/pmi/pmi_server.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/util/log.h"
#include "runtime/util/ranges.h"

#define ABORT_MS 200
/* most reads from a worker that has ended, since its children may still write */
#define LAST_READS 64

struct pmi_conn {
    struct pmi_server *server;
    int fd;    /* ctrun's end of the socket pair; -1 if closed */
    int given; /* the worker's end of the socket pair; -1 after ctrun has closed it */
    struct event readable, writable, report;
    struct pmi_client client;
    char in[PMI_LINE];
    size_t have;
    struct text out;
    size_t sent; /* bytes of `out` that were sent */
    int waits;   /* 1 while the rank is in the barrier */
    int ended;   /* 1 if the worker has ended with exit code 0 */
    int began;   /* 1 if the rank has called MPI_Init() */
    int is_full; /* 1 if the server has warned that the rank's puts are too large */
    struct pmi_fault fault;
};

static int local_rank_of(const struct pmi_conn *conn)
{
    return (int)(conn - conn->server->conns);
}

static int rank_of(const struct pmi_conn *conn)
{
    return conn->server->round.base + local_rank_of(conn);
}

static void close_conn(struct pmi_conn *conn)
{
    if (conn->fd < 0)
        return;
    event_del(&conn->readable);
    event_del(&conn->writable);
    close(conn->fd);
    conn->fd = -1;
}

/* ---- Faults ------------------------------------------------------------------ */

static void set_fault(struct pmi_conn *conn, int code, int after_ms, const char *what,
                      const char *detail)
{
    const struct timeval patience = { after_ms / 1000, after_ms % 1000 * 1000 };

    if (conn->fault.code) /* only the first fault counts */
        return;
    conn->fault.code = code;
    snprintf(conn->fault.what, sizeof conn->fault.what, "%s", what);
    snprintf(conn->fault.detail, sizeof conn->fault.detail, "%s", detail);
    event_add(&conn->report, &patience);
}

static void report_fault(evutil_socket_t fd, short what, void *arg)
{
    struct pmi_conn *conn = arg;

    (void)fd;
    (void)what;
    conn->server->hooks->fault(conn->server->arg, local_rank_of(conn));
}

static void took_abort(struct pmi_conn *conn, const struct pmi_abort *abort)
{
    const int code = abort->code & 255 ? abort->code & 255 : 1;
    char what[64];

    snprintf(what, sizeof what, "called MPI_Abort with code %d", abort->code);
    /* MPICH 5 always sends "abort", not the program's own message. */
    set_fault(conn, code, ABORT_MS, what, strcmp(abort->message, "abort") ? abort->message : "");
}

static void took_garbage(struct pmi_conn *conn, size_t size, const char *why)
{
    char detail[160];
    size_t i;

    for (i = 0; i < size && i < 60; i++)
        detail[i] = conn->in[i] < ' ' || conn->in[i] > '~' ? '?' : conn->in[i];
    snprintf(detail + i, sizeof detail - i, "%s%s", i < size ? "... " : " ", why);
    set_fault(conn, 1, 0, "sent a line on PMI_FD that is not a PMI request", detail);
    close_conn(conn);
}

/* ---- The barrier ------------------------------------------------------------- */

static struct pmi_conn *first_ended(struct pmi_server *server)
{
    for (int i = 0; i < server->round.size; i++)
        if (server->conns[i].ended)
            return &server->conns[i];
    return NULL;
}

static void report_gone(evutil_socket_t fd, short what, void *arg)
{
    struct pmi_server *server = arg;

    (void)fd;
    (void)what;
    server->gone_reported = 1;
    server->hooks->gone(server->arg, server->gone,
                        "exited with code 0, and ranks of this node wait for it in MPI");
}

/* Checks for a rank that has ended while other ranks wait in the barrier, which that rank will
 * never enter.  Sets the fault of such a rank of this node, or starts a timer that reports such a
 * rank of another node. */
static void look_for_ended(struct pmi_server *server)
{
    static const struct timeval at_once = { 0, 0 };
    struct pmi_conn *ended = first_ended(server);

    if (server->waiting == 0)
        return;
    if (ended)
        set_fault(ended, 1, 0, "exited with code 0 while others wait for it in MPI", "");
    else if (server->gone >= 0 && !server->gone_reported)
        event_add(&server->gone_timer, &at_once);
}

/* Warns if a rank ended before MPI_Init() while other ranks may wait for it.  Those ranks need not
 * be in the barrier, since MPICH 5 also waits in shared memory. */
static void look_for_absent(struct pmi_server *server)
{
    int ended = -1, initialized = 0;

    for (int i = 0; i < server->round.size; i++) {
        if (server->conns[i].ended && server->conns[i].client.state == PMI_SILENT)
            ended = i;
        initialized |= !server->conns[i].ended && server->conns[i].client.state == PMI_INITIALIZED;
    }
    if (ended < 0 || !initialized || server->absent_reported)
        return;
    server->absent_reported = 1;
    log_line(LOG_WARN,
             "rank %d exited with code 0 without MPI_Init, which other ranks have called: they may "
             "wait for it for ever",
             rank_of(&server->conns[ended]));
}

static int waits_in_barrier(const void *server, int i)
{
    return ((const struct pmi_server *)server)->conns[i].waits;
}

static int is_missing(const void *server, int i)
{
    return !waits_in_barrier(server, i);
}

static void pmi_server_say_stall(evutil_socket_t fd, short what, void *arg)
{
    struct pmi_server *server = arg;
    const int missing = server->round.size - server->waiting;
    const int base = server->round.base, size = server->round.size;
    char here[400], there[400];

    (void)fd;
    (void)what;
    ranges_print(base, size, waits_in_barrier, server, here, sizeof here);
    ranges_print(base, size, is_missing, server, there, sizeof there);
    log_line(LOG_WARN,
             "MPI's barrier of PMI (in MPI_Init or MPI_Finalize) has waited %d s: %s %s %s in it, "
             "%s%s %s",
             server->stall, server->waiting > 1 ? "ranks" : "rank", here,
             server->waiting > 1 ? "are" : "is",
             missing == 0  ? "ranks of other nodes"
             : missing > 1 ? "ranks "
                           : "rank ",
             there, missing == 1 ? "is not" : "are not");
}

static void enter_barrier(struct pmi_conn *conn)
{
    struct pmi_server *server = conn->server;
    const struct timeval limit = { server->stall, 0 }, at_once = { 0, 0 };

    if (conn->fault.code) /* MPICH 5 enters the barrier while MPI_Abort() ends the rank */
        event_add(&conn->report, &at_once);
    if (conn->fault.code || conn->waits)
        return;
    conn->waits = 1;
    if (server->waiting++ == 0 && server->stall > 0)
        event_add(&server->stall_timer, &limit);
    if (server->waiting < server->round.size) {
        look_for_ended(server);
        return;
    }
    if (server->gone >= 0) {
        look_for_ended(server);
        return;
    }
    server->hooks->fence(server->arg, server->job.space.fresh.data, server->job.space.fresh.used);
}

/* ---- Bytes ------------------------------------------------------------------- */

static void pmi_server_write_out(struct pmi_conn *conn)
{
    while (conn->fd >= 0 && conn->sent < conn->out.used) {
        const ssize_t n = send(conn->fd, conn->out.data + conn->sent, conn->out.used - conn->sent,
                               MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN) { /* the server reads nothing until the reply is sent */
            event_del(&conn->readable);
            event_add(&conn->writable, NULL);
            return;
        }
        if (n < 0) {
            close_conn(conn);
            break;
        }
        conn->sent += (size_t)n;
    }
    conn->out.used = conn->sent = 0;
}

/* Carries out the complete requests, as long as the replies can be sent at once. */
static void take_requests(struct pmi_conn *conn)
{
    struct pmi_abort abort = { 0, "" };
    char *end;

    while (conn->fd >= 0 && conn->out.used == 0
           && (end = memchr(conn->in, '\n', conn->have)) != NULL) {
        const size_t size = (size_t)(end - conn->in);
        const enum pmi_outcome outcome =
            pmi_request(&conn->server->job, &conn->client, conn->in, size, &conn->out, &abort);

        if (outcome == PMI_WRONG) {
            took_garbage(conn, size, "");
            return;
        }
        conn->have -= size + 1;
        memmove(conn->in, end + 1, conn->have);
        if (conn->client.is_full && !conn->is_full)
            log_line(LOG_WARN, "rank %d has put more than %d KiB by PMI: the rest is refused",
                     rank_of(conn), PMI_RANK_MOST >> 10);
        conn->is_full = conn->client.is_full;
        pmi_server_write_out(conn);
        if (conn->client.state == PMI_INITIALIZED && !conn->began) {
            conn->began = 1;
            look_for_absent(conn->server);
        }
        if (outcome == PMI_WAITS)
            enter_barrier(conn);
        else if (outcome == PMI_ABORTS)
            took_abort(conn, &abort);
    }
    if (conn->fd >= 0 && conn->have == sizeof conn->in && !memchr(conn->in, '\n', conn->have))
        took_garbage(conn, conn->have, "(no line ends within 4096 bytes)");
}

/* Reads from a worker and carries out its requests.  Returns 0 if there is nothing to read now, or
 * the socket is closed. */
static int read_some(struct pmi_conn *conn)
{
    ssize_t n = -1;

    if (conn->fd < 0 || conn->have == sizeof conn->in)
        return 0;
    n = recv(conn->fd, conn->in + conn->have, sizeof conn->in - conn->have, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0) { /* the worker closed the socket or ended, and its exit code tells more */
        close_conn(conn);
        return 0;
    }
    conn->have += (size_t)n;
    take_requests(conn);
    return 1;
}

static void pmi_server_on_readable(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    read_some(arg);
}

static void pmi_server_on_writable(evutil_socket_t fd, short what, void *arg)
{
    struct pmi_conn *conn = arg;

    (void)fd;
    (void)what;
    event_del(&conn->writable);
    pmi_server_write_out(conn);
    if (conn->fd < 0 || conn->out.used > 0)
        return;
    event_add(&conn->readable, NULL);
    take_requests(conn);
}

/* ---- A round ----------------------------------------------------------------- */

void pmi_server_setup(struct pmi_server *server, struct event_base *base,
                      const struct pmi_hooks *hooks, void *arg, int stall)
{
    *server = (struct pmi_server){ .base = base, .hooks = hooks, .arg = arg, .stall = stall };
}

static void open_conn(struct pmi_server *server, struct pmi_conn *conn)
{
    *conn = (struct pmi_conn){ .server = server, .fd = -1, .given = -1 };
    evtimer_assign(&conn->report, server->base, report_fault, conn);
}

int pmi_server_begin(struct pmi_server *server, const struct pmi_round *round)
{
    struct pmi_job *job = &server->job;

    pmi_server_end(server);
    server->round = *round;
    server->conns = calloc((size_t)round->size, sizeof *server->conns);
    server->waiting = server->gone_reported = server->absent_reported = 0;
    server->gone = -1;
    *job = (struct pmi_job){ .world = round->world, .is_alone = round->nodes == 1 };
    snprintf(job->name, sizeof job->name, "ct_%s", round->generation);
    snprintf(job->mapping, sizeof job->mapping, "%s", round->mapping);
    evtimer_assign(&server->gone_timer, server->base, report_gone, server);
    evtimer_assign(&server->stall_timer, server->base, pmi_server_say_stall, server);
    server->is_open = 1;
    for (int i = 0; server->conns && i < round->size; i++)
        open_conn(server, &server->conns[i]);
    if (pmi_space_open(&job->space, !job->is_alone) == 0 && pmi_space_open(&job->names, 0) == 0
        && server->conns)
        return 0;
    pmi_server_end(server);
    return -1;
}

int pmi_server_give(struct pmi_server *server, int local_rank)
{
    struct pmi_conn *conn = &server->conns[local_rank];
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return -1;
    conn->fd = ends[0];
    conn->given = ends[1];
    event_assign(&conn->readable, server->base, conn->fd, EV_READ | EV_PERSIST,
                 pmi_server_on_readable, conn);
    event_assign(&conn->writable, server->base, conn->fd, EV_WRITE | EV_PERSIST,
                 pmi_server_on_writable, conn);
    event_add(&conn->readable, NULL);
    return conn->given;
}

void pmi_server_given(struct pmi_server *server, int local_rank)
{
    struct pmi_conn *conn = server->is_open ? &server->conns[local_rank] : NULL;

    if (!conn || conn->given < 0)
        return;
    close(conn->given);
    conn->given = -1;
}

const struct pmi_fault *pmi_server_ended(struct pmi_server *server, int local_rank, int well)
{
    struct pmi_conn *conn;

    if (!server->is_open)
        return NULL;
    conn = &server->conns[local_rank];
    for (int i = 0; i < LAST_READS && read_some(conn); i++)
        continue;
    close_conn(conn);
    conn->ended = well;
    if (well && conn->client.state == PMI_INITIALIZED)
        set_fault(conn, 1, 0, "exited with code 0 without MPI_Finalize", "");
    else if (well)
        look_for_ended(server);
    look_for_absent(server);
    event_del(&conn->report); /* the caller reports the end */
    return conn->fault.code ? &conn->fault : NULL;
}

void pmi_server_end(struct pmi_server *server)
{
    if (!server->is_open)
        return;
    for (int i = 0; server->conns && i < server->round.size; i++) {
        pmi_server_given(server, i);
        close_conn(&server->conns[i]);
        event_del(&server->conns[i].report);
        free(server->conns[i].out.data);
    }
    event_del(&server->gone_timer);
    event_del(&server->stall_timer);
    pmi_space_close(&server->job.space);
    pmi_space_close(&server->job.names);
    free(server->conns);
    server->conns = NULL;
    server->is_open = 0;
}

const struct pmi_fault *pmi_server_fault(const struct pmi_server *server, int local_rank)
{
    return &server->conns[local_rank].fault;
}

/* ---- The other nodes --------------------------------------------------------- */

int pmi_server_merge(struct pmi_server *server, const char *puts, size_t bytes)
{
    return server->is_open ? pmi_space_merge(&server->job.space, puts, bytes) : 0;
}

void pmi_server_fenced(struct pmi_server *server)
{
    if (!server->is_open || server->waiting < server->round.size)
        return;
    event_del(&server->stall_timer);
    server->waiting = 0;
    server->job.space.fresh.used = 0;
    for (int i = 0; i < server->round.size; i++) {
        struct pmi_conn *conn = &server->conns[i];

        conn->waits = 0;
        text_add(&conn->out, PMI_BARRIER_OVER, sizeof PMI_BARRIER_OVER - 1);
        pmi_server_write_out(conn);
    }
}

void pmi_server_ended_elsewhere(struct pmi_server *server, int rank)
{
    if (!server->is_open || server->gone >= 0)
        return;
    server->gone = rank;
    look_for_ended(server);
}
