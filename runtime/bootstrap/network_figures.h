/* SPDX-License-Identifier: Apache-2.0 */
/* network_figures.h - reads the round-trip time and the speed of the network between hosts.  The
 * kernel knows these figures, so no test messages are sent. */
#ifndef RUNTIME_BOOTSTRAP_NETWORK_FIGURES_H
#define RUNTIME_BOOTSTRAP_NETWORK_FIGURES_H

#include "runtime/transport/mesh.h"

/* Returns this host's figures.  The speed is the speed of the interface with `address`.  The round
 * trip is the least round trip of the leader's connection to the store.  The round trip is 0
 * (unknown) if that connection does not go from `address` to another host. */
struct network_figures network_figures_read(ct_store *store, const char *address);

/* Returns the figures of the job, which are the same on all ranks.  The speed is the speed of the
 * slowest link, since a collective waits for this link.  The round trip is the median of all hosts,
 * so that a slow answer to one host has no effect.  The round trip is rounded to 1.5 times a power
 * of two, so that most runs of a job choose the same algorithms. */
struct network_figures network_figures_of_hosts(const struct peer_host *hosts, int count);

#endif
