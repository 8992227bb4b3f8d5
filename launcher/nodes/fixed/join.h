/* SPDX-License-Identifier: Apache-2.0 */
/* join.h - node 0 of a static job, until all nodes are there. */
#ifndef LAUNCHER_NODES_FIXED_JOIN_H
#define LAUNCHER_NODES_FIXED_JOIN_H

#include "launcher/nodes/fixed/rounds.h"

/* The first round may begin within. */
void gather_start(struct host *host);
/* NODE_JOIN, of an agent that is no member. */
void gather_join(struct host *host, struct store_agent *agent, const char *text);
void gather_tick(struct host *host); /* once a second, by host->tick */

#endif
