/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LAUNCHER_WORKERS_SIGNALS_H
#define LAUNCHER_WORKERS_SIGNALS_H

#include <signal.h>

#include "config/options.h"

/* Gives the signals that ctrun reads: --signals-to-handle, signals that it only forwards, and
 * SIGCHLD. */
sigset_t signals_watched(const struct options *options);

/* Blocks those signals, SIGPIPE and SIGXFSZ.  A signal that comes before the workers have started
 * stays pending until then. */
void signals_block(const struct options *options);

/* Gives the signals that our parent ignored but workers must not: all except nohup's SIGHUP. */
void signals_ignored(sigset_t *ignored);

int signals_hangup_is_ignored(void); /* ctrun was started by nohup */

#endif
