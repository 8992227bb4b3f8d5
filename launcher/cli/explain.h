/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LAUNCHER_CLI_EXPLAIN_H
#define LAUNCHER_CLI_EXPLAIN_H

#include "config/rendezvous_options.h"

/* --explain: each value, where it came from and what follows, on stdout.
 * Returns the exit code. */
int explain(const struct options *options, const struct meeting *meeting, int size,
            const char *why_size);

#endif
