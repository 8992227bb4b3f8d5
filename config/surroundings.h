/* SPDX-License-Identifier: Apache-2.0 */
/* surroundings.h - what the scheduler or launcher that started this process says about the nodes of
 * the job.
 *
 * It gives options their defaults: stronger than a row's own, weaker than the command line, the
 * environment and job.ini.  --standalone switches it off. */
#ifndef CONFIG_SURROUNDINGS_H
#define CONFIG_SURROUNDINGS_H

#include "config/options.h"

/* Fills in options->surroundings, and the settings that are still unset.  OPTIONS_WRONG: error says
 * how to start ctrun here. */
enum outcome surroundings_apply(struct options *options, char *error, size_t size);

#endif
