/* SPDX-License-Identifier: Apache-2.0 */
/* status_server.h - the server of --status, a web page that shows live what each rank of the job
 * does.
 *
 *     /          the page (page.html), a single file without links to other files
 *     /events    the content of the page once a second, as server-sent events
 *     /api/job   the content once, as JSON
 *     /metrics   the metrics for Prometheus
 *
 * The coordinator of the job runs the server.  It asks the nodes for rows only when a client reads.
 * It then sends a request, called a look, to all nodes, and answers the client when all nodes have
 * answered.  After a second it answers with the rows that it has (board.h).  Only the time in calls
 * is measured all the time (node_rows.h).
 *
 * Clients can't change anything.  Processes of this user and of root on this host may read.  If the
 * server listens at an address other than the loopback, other clients may read with the token that
 * ctrun prints. */
#ifndef LAUNCHER_STATUS_STATUS_SERVER_H
#define LAUNCHER_STATUS_STATUS_SERVER_H

#include <sys/stat.h>

#include "config/options.h"
#include "launcher/status/board.h"
#include "launcher/status/node_rows.h"
#include "launcher/util/http_server.h"

#define STATUS_TOKEN 65

struct status_hooks {
    /* Sends a look to the other nodes.  Returns the number of nodes that will answer through
     * status_take(). */
    int (*look)(void *arg, unsigned look);
    void (*facts)(void *arg, struct job_facts *facts);
};

struct status_server {
    struct http_server http;
    struct node_rows rows; /* rows of this node; also used if `serves` was 0 */
    const struct options *options;
    struct event turn; /* timer for the next look, or for late answers to the current look */
    int is_looking;
    int awaited;       /* number of nodes that must answer the current look */
    int64_t looked_ms; /* time at which the last look ended */
    int was_asked;     /* 1 if the rows were read in this round, so the last rows are wanted */
    int complained;    /* 1 after an error about a node's rows was logged */
    int is_local;      /* 1 if other hosts can't reach the page */
    struct stat socket_file;
    struct board board;
    char token[STATUS_TOKEN];
    int netlink;
    const struct status_hooks *hooks;
    void *arg;
};

/* Prepares the rows of this node.  With --status, also opens the page if `serves` is 1, which means
 * that this ctrun is the coordinator.  Returns 0, or ctrun's exit code after an error is logged. */
int status_open(struct status_server *status, struct event_base *base,
                const struct options *options, const struct control_host *control, int serves,
                const struct status_hooks *hooks, void *arg);
/* Sends to the clients how the job ended (facts->state), and closes the page. */
void status_close(struct status_server *status);

/* Must be called when a round begins on this node, and when it ends. */
void status_begin_round(struct status_server *status, struct worker *workers, int size);
void status_end_round(struct status_server *status);

/* Adds a piece of another node's answer.  A piece of 0 bytes ends the answer. */
void status_take(struct status_server *status, int node, unsigned look, const char *rows,
                 size_t bytes);
/* Writes this node's answer into `rows`.  The caller frees rows->data. */
void status_rows(struct status_server *status, int restarts, struct text *rows);

#endif
