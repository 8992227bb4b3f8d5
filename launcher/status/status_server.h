/* SPDX-License-Identifier: Apache-2.0 */
/* status_server.h - --status: a page that shows what each rank of the job does, live.
 *
 *     /          the page (page.html), one file that needs no other
 *     /events    the content of the page, each second, as server-sent events
 *     /api/job   the content once, as JSON
 *     /metrics   for Prometheus
 *
 * The coordinator serves it.  Nodes are asked only when a client reads: then the coordinator asks
 * all nodes for a look, and answers when all have answered.  After a second it answers with what it
 * has (board.h).  Only the share of time in calls is measured all the time (node_rows.h).  Clients
 * can change nothing.  Processes of this user or of root on this host may read.  If the page is
 * served at an address other than the loopback, others may read with the token that ctrun prints.
 */
#ifndef LAUNCHER_STATUS_STATUS_SERVER_H
#define LAUNCHER_STATUS_STATUS_SERVER_H

#include <sys/stat.h>

#include "config/options.h"
#include "launcher/status/board.h"
#include "launcher/status/node_rows.h"
#include "launcher/util/http_server.h"

#define STATUS_TOKEN 65

struct status_hooks {
    /* Asks the other nodes for a look; gives how many will answer by status_take(). */
    int (*look)(void *arg, unsigned look);
    void (*facts)(void *arg, struct job_facts *facts);
};

struct status_server {
    struct http_server http;
    struct node_rows rows; /* of this node; an agent has only these */
    const struct options *options;
    struct event turn; /* the next look is due, or this look's answers are late */
    int is_looking;
    int awaited;       /* answers that this look still waits for */
    int64_t looked_ms; /* when the last look ended */
    int was_asked;     /* in this round, a client asked, so the last rows are wanted */
    int complained;    /* the log has an error about a node's rows */
    int is_local;      /* other hosts can't reach the page */
    struct stat socket_file;
    struct board board;
    char token[STATUS_TOKEN];
    int netlink;
    const struct status_hooks *hooks;
    void *arg;
};

/* Opens the page.  Without --status, it does nothing, and so do the calls below except
 * status_rows().  serves: 1: this ctrun is the coordinator.  0; or ctrun's exit code, after an
 * error in the log. */
int status_open(struct status_server *status, struct event_base *base,
                const struct options *options, const struct control_host *control, int serves,
                const struct status_hooks *hooks, void *arg);
/* Closes the page, after it has shown how the job ended (facts->state). */
void status_close(struct status_server *status);

/* Take the begin and the end of a round on this node. */
void status_begin_round(struct status_server *status, struct worker *workers, int size);
void status_end_round(struct status_server *status);

/* Takes a piece of another node's answer. */
void status_take(struct status_server *status, int node, unsigned look, const char *rows,
                 size_t bytes);
/* Gives this node's answer; the caller frees rows->data. */
void status_rows(struct status_server *status, int restarts, struct text *rows);

#endif
