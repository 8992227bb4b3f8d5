/* SPDX-License-Identifier: Apache-2.0 */
/* no_effect.h - logs a line for each option or key that was given but can do nothing. */
#ifndef LAUNCHER_JOB_NO_EFFECT_H
#define LAUNCHER_JOB_NO_EFFECT_H

#include "config/rendezvous_options.h"

/* Logs what has no effect, as far as that is known before the number of ranks is.  size is the
 * number of workers of this node. */
void no_effect_words(const struct options *options, const struct meeting *meeting, int size);

/* Logs which options have no effect with `world` ranks.  Node 0 calls this at the start of the
 * first round.  Other functions check --stdin (stdin_route_check()) and --exec-on
 * (wrapper_check()). */
void no_effect_ranks(const struct options *options, int world);

#endif
