/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LAUNCHER_WORKERS_SIGNALS_H
#define LAUNCHER_WORKERS_SIGNALS_H

#include <signal.h>

#include "config/options.h"

/* --signals-to-handle, those that are only forwarded, and SIGCHLD. */
sigset_t signals_watched(const struct options *options);

/* Blocks them, and SIGPIPE: one that comes before the workers have started
 * is pending until they have. */
void signals_block(const struct options *options);

/* What our parent ignored and workers must not, which is all but nohup's SIGHUP. */
void signals_ignored(sigset_t *ignored);

int signals_hangup_is_ignored(void); /* ctrun was started by nohup */

#endif
