/* SPDX-License-Identifier: Apache-2.0 */
/* measure_network.h - measures the speed of the network in calls of the program. */
#ifndef COLLECTIVES_HOSTS_MEASURE_NETWORK_H
#define COLLECTIVES_HOSTS_MEASURE_NETWORK_H

#include "collectives/core/call.h"

/* Runs the call by run().  If the network has not been measured with so many bytes, measures it.
 * In run(), each rank's bytes must cross the network before that rank can return. */
ct_status run_measured(struct call *c, ct_status (*run)(struct call *c));

/* Returns 1 if run_measured() would measure this call. */
int network_is_due(const struct call *c);

#endif
