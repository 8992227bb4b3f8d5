/* SPDX-License-Identifier: Apache-2.0 */
/* branch.h - a branch is a connection by ssh to a group of hosts.  ssh connects to the first host
 * of the group, and the relay there passes frames on to the other hosts.  Up to FAN_OUT hosts have
 * one branch each.  More hosts form a tree, so that no host runs more than FAN_OUT ssh
 * processes. */
#ifndef LAUNCHER_REMOTE_BRANCH_H
#define LAUNCHER_REMOTE_BRANCH_H

#include <sys/types.h>

#include "launcher/remote/frame.h"
#include "launcher/remote/start.h"

#define FAN_OUT 32
#define NODE_WORD \
    "--hosts-node" /* makes ctrun or ctctl a relay (relay.c); users never write this word */

struct branch;

struct branch_hooks {
    void (*frame)(void *arg, struct branch *branch, const struct relay_frame *frame);
    /* Is called if ssh ended or sent bytes that are not a frame.  `why` is the reason as text.
     * `link` is already closed and NULL. */
    void (*gone)(void *arg, struct branch *branch, const char *why);
};

struct branch {
    struct bufferevent *link; /* NULL after the connection is closed */
    pid_t pid;
    int first, count;    /* the branch reaches the nodes first, ..., first + count - 1 */
    const char *host;    /* name of the first node's host */
    const char *by;      /* command that reaches the host, such as "ssh", for messages */
    const char *program; /* program that runs as the relay there, such as "ctrun", for messages */
    const struct branch_hooks *hooks;
    void *arg;
};

struct branches {
    struct branch *list;
    int count;
};

/* Divides the nodes first, ..., first + count - 1 into branches, starts an ssh for each branch, and
 * sends FRAME_START to each.  Returns 0, or -1 after an error is logged.  The caller must call
 * branches_close() in both cases. */
int branches_open(struct branches *branches, struct event_base *base, const struct start *start,
                  int first, int count, const struct branch_hooks *hooks, void *arg);
void branches_send(struct branches *branches, const struct relay_frame *frame);
/* Starts reading from all branches, or stops it if `reads` is 0, since a queue is full. */
void branches_read(struct branches *branches, int reads);
int branches_alive(const struct branches *branches);
void branches_close(struct branches *branches); /* the programs at the other ends stop */

/* Returns the words of the command that starts the program on a host; --explain and --dry-run print
 * them.  The words are in one block, which the caller frees.  Returns NULL after an error in --ssh,
 * with the error message in `why`. */
char **branch_command(const struct start *start, const char *host, struct why *why);

#endif
