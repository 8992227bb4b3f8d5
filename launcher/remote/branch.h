/* SPDX-License-Identifier: Apache-2.0 */
/* branch.h - the way to some hosts: an ssh to the first of them, whose relay passes frames on to
 * the others.  Up to FAN_OUT hosts have one each; more make a tree, so that no host runs more
 * than FAN_OUT times ssh. */
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
    /* ssh ended, or what came is no frame: `why` says so.  Its link is closed when this returns. */
    void (*gone)(void *arg, struct branch *branch, const char *why);
};

struct branch {
    struct bufferevent *link; /* NULL: gone */
    pid_t pid;
    int first, count;    /* its nodes */
    const char *host;    /* of the first */
    const char *by;      /* the command that reaches it, for messages: "ssh" */
    const char *program; /* what it starts there, for messages: "ctrun" */
    const struct branch_hooks *hooks;
    void *arg;
};

struct branches {
    struct branch *list;
    int count;
};

/* Starts an ssh for each branch of the nodes first, ..., first + count - 1 and sends FRAME_START.
 * -1: the error is logged; branches_close() is owed in any case. */
int branches_open(struct branches *branches, struct event_base *base, const struct start *start,
                  int first, int count, const struct branch_hooks *hooks, void *arg);
void branches_send(struct branches *branches, const struct relay_frame *frame);
void branches_read(struct branches *branches, int reads); /* 0: no more for now, a queue is full */
int branches_alive(const struct branches *branches);
void branches_close(struct branches *branches); /* what runs behind them stops */

/* The words that start the program on a host, for --explain and --dry-run, too; in one block for
 * free().  NULL: `why` says what is wrong with --ssh. */
char **branch_command(const struct start *start, const char *host, struct why *why);

#endif
