/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LAUNCHER_WORKERS_SIGNALS_H
#define LAUNCHER_WORKERS_SIGNALS_H

#include <signal.h>

#include "config/options.h"

/* Returns the signals that ctrun reads: those of --signals-to-handle, those that ctrun only
 * forwards, and SIGCHLD. */
sigset_t signals_watched(const struct options *options);

/* Blocks the signals of signals_watched(), SIGPIPE and SIGXFSZ.  A signal that arrives before the
 * workers have started stays pending until then. */
void signals_block(const struct options *options);

/* Sets *ignored to the signals that ctrun's parent ignored but workers must not ignore: all except
 * SIGHUP, which nohup ignores. */
void signals_ignored(sigset_t *ignored);

int signals_hangup_is_ignored(void); /* returns 1 if SIGHUP is ignored, as under nohup */

#endif
