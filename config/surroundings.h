/* SPDX-License-Identifier: Apache-2.0 */
/* surroundings.h - settings from the scheduler or launcher that started this process, which knows
 * the nodes of the job.
 *
 * These settings override the default in an option's row.  The command line, the environment and
 * job.ini override these settings.  The option --standalone turns them off. */
#ifndef CONFIG_SURROUNDINGS_H
#define CONFIG_SURROUNDINGS_H

#include "config/options.h"

/* Fills in options->surroundings, and the settings that are still unset.  If the outcome is
 * OPTIONS_WRONG, `error` says how to start ctrun here. */
enum outcome surroundings_apply(struct options *options, char *error, size_t size);

#endif
