/* SPDX-License-Identifier: Apache-2.0 */
/* control_page_host.h - ctrun's side of the control page (runtime/monitor/control_page.h).  Each
 * round has a new page, so that no worker reads data of an earlier round. */
#ifndef LAUNCHER_HEALTH_CONTROL_PAGE_HOST_H
#define LAUNCHER_HEALTH_CONTROL_PAGE_HOST_H

#include "launcher/nodes/nodes.h"
#include "runtime/monitor/control_page.h"

struct worker;

struct control_host {
    struct control_head *head; /* the page; NULL if the workers run without a control page */
    size_t bytes;              /* size of the page */
    int memory, event;         /* memfd and eventfd, which each worker inherits */
    /* ctrun's own copies of values in the page's head, which workers can overwrite */
    int world;                    /* workers of all nodes */
    uint32_t told;                /* number of entries in `deaths` */
    struct control_death *deaths; /* the death notices, in the page */
    unsigned char *dead;          /* dead[rank] is 1 if the rank is in `deaths` */
};

/* Closes the page of the last round and makes the page of a round with `size` workers on this node.
 * Returns 0, or logs an error and returns -1.  The job can run without a page: the ranks then
 * detect deaths later, from their own connections. */
int control_host_open(struct control_host *control, const struct plan *plan, int size,
                      const char *run_id, const char *program);
void control_host_close(struct control_host *control); /* may be called twice */

/* Writes the pid of a worker that has started to the page. */
void control_host_started(struct control_host *control, int local_rank, pid_t pid);

/* Fills *death for a worker of this node that ended, with its progress in each group from the
 * page. */
void control_host_describe(const struct control_host *control, const struct worker *worker,
                           struct control_death *death);
/* Writes to the page that `count` ranks, the first of which is death->rank, ended as *death says.
 * Wakes all workers of this node once. */
void control_host_died(struct control_host *control, const struct control_death *death, int count);

#endif
