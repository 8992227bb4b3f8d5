/* SPDX-License-Identifier: Apache-2.0 */
/* host_rounds.h - the ranks of each simulated host meet in rounds and share slots (rounds.h). */
#ifndef NETWORK_SIM_HOST_ROUNDS_H
#define NETWORK_SIM_HOST_ROUNDS_H

#include "runtime/group/shm/rounds.h"
#include "runtime/group/shm/slots.h"

struct shm_group *host_rounds_make(int hosts, int each); /* free() ends them; NULL: no memory */
struct shm_group *host_rounds_of(struct shm_group *all, int rank); /* NULL: it is alone */

#endif
