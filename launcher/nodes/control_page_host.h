/* SPDX-License-Identifier: Apache-2.0 */
/* control_page_host.h - ctrun's side of the control page (runtime/monitor/control_page.h): one
 * memory for each round, so that no worker reads what was written in an earlier one. */
#ifndef LAUNCHER_HEALTH_CONTROL_PAGE_HOST_H
#define LAUNCHER_HEALTH_CONTROL_PAGE_HOST_H

#include "launcher/nodes/nodes.h"
#include "runtime/monitor/control_page.h"

struct worker;

struct control_host {
    struct control_head *head; /* NULL: the workers run without a control page */
    size_t bytes;
    int memory, event; /* descriptors that each worker inherits */
    /* ctrun's own copies of what it must not read from the memory: workers write there, too. */
    int world;
    uint32_t told;
    struct control_death *deaths;
    unsigned char *dead; /* [world]: that rank is in `deaths` */
};

/* Makes the page for a round of `size` workers on this node, and closes the page of the last
 * round.  -1: the error is logged, and the job can go on: its ranks then notice deaths by
 * themselves. */
int control_host_open(struct control_host *control, const struct plan *plan, int size,
                      const char *run_id, const char *program);
void control_host_close(struct control_host *control); /* may be called twice */

void control_host_started(struct control_host *control, int local_rank, pid_t pid);

/* Describes a worker of this node that ended; its page says how far it had come. */
void control_host_describe(const struct control_host *control, const struct worker *worker,
                           struct control_death *death);
/* Tells all workers here, whatever they wait in, that `count` ranks from death->rank on ended in
 * this way.  Costs one wake, however many they are. */
void control_host_died(struct control_host *control, const struct control_death *death, int count);

#endif
