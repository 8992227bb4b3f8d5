/* SPDX-License-Identifier: Apache-2.0 */
/* network_figures.h - how far away the other hosts are and how fast the wire to them is, as the
 * kernel knows it.  Nothing is sent to find out. */
#ifndef RUNTIME_BOOTSTRAP_NETWORK_FIGURES_H
#define RUNTIME_BOOTSTRAP_NETWORK_FIGURES_H

#include "runtime/transport/mesh.h"

/* Reads this host's figures.  The round trip is the least of the leader's connection to the store,
 * if that goes from `address` to another host.  The speed is that of the interface with this
 * address. */
struct network_figures network_figures_read(ct_store *store, const char *address);

/* Gives the job's figures, the same on all ranks.  The round trip is the median of the hosts', so
 * that a slow answer to one host does not count.  The speed is the slowest link's, for which a
 * collective waits.  The round trip is rounded to steps of powers of two, so that most runs of a
 * job choose alike. */
struct network_figures network_figures_of_hosts(const struct peer_host *hosts, int count);

#endif
