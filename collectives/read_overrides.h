/* SPDX-License-Identifier: Apache-2.0 */
/* read_overrides.h - reads the user's overrides (collectives/core/algorithm_overrides.h) from the
 * environment, a file, or a string of the program. */
#ifndef COLLECTIVES_READ_OVERRIDES_H
#define COLLECTIVES_READ_OVERRIDES_H

#include "collectives/core/algorithm_overrides.h"

/* Sets the choices of a group: what the environment says and, for this group alone, what
 * `overrides` says, which may be NULL. */
ct_status choices_open(ct_group *group, const char *overrides);

/* Returns the bytes that a text like "32K" names; 0 if the text is not a size. */
size_t choices_size(const char *text);

struct network_figures; /* mesh.h */

/* Returns the model of a network from the figures that the kernels of the hosts know.  A figure
 * that is 0, or all figures if `known` is NULL, are replaced by those of a TCP network of 10 Gbit/s
 * in one room. */
struct network_model network_model_of(const struct network_figures *known);

#endif
