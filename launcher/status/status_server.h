/* SPDX-License-Identifier: Apache-2.0 */
/* status_server.h - --status: a page that shows what each rank of the job does, live.
 *
 *     /          the page (page.html), one file that needs no other
 *     /events    what the page shows, each second, as server-sent events
 *     /api/job   the same once, as JSON
 *     /metrics   for Prometheus
 *
 * The coordinator serves it.  No node is asked before somebody reads: then the coordinator has all
 * nodes look what their ranks do, and answers when they have, or after a second with what it has
 * (board.h).  Only the share of time in calls is counted all along (node_rows.h).  It is read-only.
 * Who may read: processes of this user or root on this host; anyone else by the token that ctrun
 * prints, if the page is served at another address than the loopback. */
#ifndef LAUNCHER_STATUS_STATUS_SERVER_H
#define LAUNCHER_STATUS_STATUS_SERVER_H

#include <sys/stat.h>

#include "config/options.h"
#include "launcher/status/board.h"
#include "launcher/status/node_rows.h"
#include "launcher/util/http_server.h"

#define STATUS_TOKEN 65

struct status_hooks {
    /* Asks the other nodes; gives how many will answer by status_take(). */
    int (*look)(void *arg, unsigned look);
    void (*facts)(void *arg, struct job_facts *facts);
};

struct status_server {
    struct http_server http;
    struct node_rows rows; /* of this node; an agent has them without the rest */
    const struct options *options;
    struct event turn; /* the next look is due, or its answers are late */
    int is_looking;
    int awaited;       /* answers to this look */
    int64_t looked_ms; /* when the last one ended */
    int was_asked;     /* in this round: the last rows are wanted, too */
    int complained;    /* of a node's rows */
    int is_local;      /* no other host can reach it */
    struct stat socket_file;
    struct board board;
    char token[STATUS_TOKEN];
    int netlink;
    const struct status_hooks *hooks;
    void *arg;
};

/* Without --status it does nothing, nor do the calls below but status_rows().  serves: this ctrun
 * is the coordinator.  0, or ctrun's exit code and the error is logged. */
int status_open(struct status_server *status, struct event_base *base,
                const struct options *options, const struct control_host *control, int serves,
                const struct status_hooks *hooks, void *arg);
/* The page learns how the job ended; facts->state says it. */
void status_close(struct status_server *status);

/* A round begins here, or has ended. */
void status_begin_round(struct status_server *status, struct worker *workers, int size);
void status_end_round(struct status_server *status);

/* A piece of another node's answer. */
void status_take(struct status_server *status, int node, unsigned look, const char *rows,
                 size_t bytes);
/* This node's answer; the caller frees rows->data. */
void status_rows(struct status_server *status, int restarts, struct text *rows);

#endif
