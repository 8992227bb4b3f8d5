/* SPDX-License-Identifier: Apache-2.0 */
/* branch.h - a branch reaches some hosts: ssh connects to the first of them, whose relay passes
 * frames on to the others.  Up to FAN_OUT hosts have one branch each.  More hosts form a tree, so
 * that no host runs more than FAN_OUT ssh processes. */
#ifndef LAUNCHER_REMOTE_BRANCH_H
#define LAUNCHER_REMOTE_BRANCH_H

#include <sys/types.h>

#include "launcher/remote/frame.h"
#include "launcher/remote/start.h"

#define FAN_OUT 32
#define NODE_WORD \
    "--hosts-node" /* makes ctrun or ctctl a relay (relay.c); no option, and no user writes it */

struct branch;

struct branch_hooks {
    void (*frame)(void *arg, struct branch *branch, const struct relay_frame *frame);
    /* ssh ended, or sent what is not a frame: `why` says which.  The link is closed after the hook.
     */
    void (*gone)(void *arg, struct branch *branch, const char *why);
};

struct branch {
    struct bufferevent *link; /* NULL: gone */
    pid_t pid;
    int first, count;    /* the nodes that it reaches */
    const char *host;    /* of the first node */
    const char *by;      /* the command that reaches the host, for messages: "ssh" */
    const char *program; /* the program that it starts there, for messages: "ctrun" */
    const struct branch_hooks *hooks;
    void *arg;
};

struct branches {
    struct branch *list;
    int count;
};

/* Starts an ssh for each branch of the nodes first, ..., first + count - 1 and sends FRAME_START.
 * -1: the error is logged.  The caller must call branches_close() in both cases. */
int branches_open(struct branches *branches, struct event_base *base, const struct start *start,
                  int first, int count, const struct branch_hooks *hooks, void *arg);
void branches_send(struct branches *branches, const struct relay_frame *frame);
void branches_read(struct branches *branches, int reads); /* 0: stop, a queue is full */
int branches_alive(const struct branches *branches);
void branches_close(struct branches *branches); /* the programs at their ends stop */

/* Gives the words that start the program on a host, also for --explain and --dry-run.  They are in
 * one block for free().  NULL: `why` says what is wrong with --ssh. */
char **branch_command(const struct start *start, const char *host, struct why *why);

#endif
