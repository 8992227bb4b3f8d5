/* SPDX-License-Identifier: Apache-2.0 */
/* network.h - the simulated hosts and their network.
 *
 * A switch that blocks nothing connects the hosts.  Each has one wire, which carries a message at a
 * time out and one in, in the order in which they come.  A message's first byte arrives a latency
 * after it left, if the receiver's wire is free then.  Above EAGER_MOST the sender asks
 * first (RTS, CTS): these two are small, and wait for what goes to the same rank only.  Messages
 * are matched as runtime/messaging does: by sender, in their order. */
#ifndef NETWORK_SIM_NETWORK_H
#define NETWORK_SIM_NETWORK_H

#include <stddef.h>
#include <stdint.h>

#include "collectives/core/algorithm_overrides.h"

struct model {
    struct network_model network; /* alpha, the overhead of a message on a processor, 1/bandwidth */
    double copy_us_per_byte; /* a rank copies, or folds 2/3 of that: it reads two and writes one */
    double hop_us;           /* until another rank of the host sees what this one wrote */
    double skew_us;          /* ranks begin within so long, at times that only look random */
    double jitter_us;        /* likewise, from each barrier of job_sample() on */
};

struct traffic {
    uint64_t messages;          /* between hosts, without RTS and CTS */
    uint64_t most_out, most_in; /* bytes of the host that sends, receives the most */
};

extern struct model model;

/* On the wire: alpha is what an empty message takes from rank to rank, with the work at both ends.
 */
static inline double latency_us(void)
{
    const double us = model.network.alpha_us - 2 * model.network.overhead_us;

    return us > 0 ? us : 0;
}

/* hosts of `each` ranks, in the order of the ranks.  0, or -1: there is no memory. */
int network_open(int hosts, int each);
void network_close(void);
int network_host(int rank);
struct traffic network_traffic(void);

/* After scheduler_run(): a message that no rank has received, "" if there is none. */
void network_name_leftover(char *text, size_t size);
/* For what the rank waits. */
void network_name_wait(int rank, char *text, size_t size);

/* The simulation ends; the first one counts. */
__attribute__((format(printf, 1, 2))) void simulation_fails(const char *format, ...);
const char *simulation_failure(void); /* "": none */

#endif
