/* SPDX-License-Identifier: Apache-2.0 */
/* network_figures.h - how far away the other hosts are and how fast the wire to them is, as the
 * kernel knows it: nothing is sent to find out. */
#ifndef RUNTIME_BOOTSTRAP_NETWORK_FIGURES_H
#define RUNTIME_BOOTSTRAP_NETWORK_FIGURES_H

#include "runtime/transport/mesh.h"

/* Of this host: the least round trip of the leader's connection to the store, if that goes to
 * another host from `address`, and the speed of the interface that has this address. */
struct network_figures network_figures_read(ct_store *store, const char *address);

/* Of the job, the same on all ranks: the median of the hosts' round trips, so that a slow answer to
 * one host does not count, and the slowest link, for which a collective waits.  The round trip is
 * given in powers of two, so that most runs of a job choose alike. */
struct network_figures network_figures_of_hosts(const struct peer_host *hosts, int count);

#endif
