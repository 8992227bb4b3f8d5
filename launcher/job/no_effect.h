/* SPDX-License-Identifier: Apache-2.0 */
/* no_effect.h - a line for each option or key that was given and can do nothing. */
#ifndef LAUNCHER_JOB_NO_EFFECT_H
#define LAUNCHER_JOB_NO_EFFECT_H

#include "config/rendezvous_options.h"

/* As far as the words tell; size: workers of this node. */
void no_effect_words(const struct options *options, const struct meeting *meeting, int size);

/* At the start of the first round, when it is known how many ranks there are; on one node.  --stdin
 * and --exec-on say the same themselves (stdin_route_check(), wrapper_check()). */
void no_effect_ranks(const struct options *options, int world);

#endif
