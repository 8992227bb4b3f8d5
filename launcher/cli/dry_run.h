/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LAUNCHER_CLI_DRY_RUN_H
#define LAUNCHER_CLI_DRY_RUN_H

#include "config/rendezvous_options.h"

/* --dry-run: on stdout, for each worker of this node, a command that a shell could run.  Returns
 * the exit code: 0, or that of a program that is not found. */
int dry_run(const struct options *options, const struct meeting *meeting, int size);

#endif
