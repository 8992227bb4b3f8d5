/* SPDX-License-Identifier: Apache-2.0 */
/* message_chains.h - several messages as one.
 *
 * A message from A to B that is taken before B sends one to C is, with that, as one from A to C. So
 * there are messages both ways between the neighbours of a ring, whose messages all go one way. */
#ifndef LAUNCHER_TRACE_MESSAGE_CHAINS_H
#define LAUNCHER_TRACE_MESSAGE_CHAINS_H

#include "runtime/util/text.h"

/* Adds chains from A to B where there are messages from B to A alone.  `messages` holds struct
 * clock_message, and is not made longer than CHAINS_GROWTH times what it was.  Returns 1 if chains
 * were left out for that.  Out of memory it adds none, or not all, and returns 0. */
#define CHAINS_GROWTH 4
int message_chains_add(struct text *messages, int clocks);

#endif
