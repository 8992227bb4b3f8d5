/* SPDX-License-Identifier: Apache-2.0 */
/* read_overrides.h - the user's overrides (collectives/core/algorithm_overrides.h), from the
 * environment, a file, or a program's text. */
#ifndef COLLECTIVES_READ_OVERRIDES_H
#define COLLECTIVES_READ_OVERRIDES_H

#include "collectives/core/algorithm_overrides.h"

/* Makes group->choices: what the environment says, and for this group alone what `overrides` (may
 * be NULL) says. */
ct_status choices_open(ct_group *group, const char *overrides);

/* The bytes of "32K"; 0: the text is not a size. */
size_t choices_size(const char *text);

struct network_figures; /* mesh.h */

/* Of what the kernels of the hosts know; NULL, or what is 0 there, is that of a TCP network of
 * 10 Gbit/s in one room. */
struct network_model network_model_of(const struct network_figures *known);

#endif
