/* SPDX-License-Identifier: Apache-2.0 */
/* cli.h - options of ctrun that do something else than run a job, and its misspelt variables. */
#ifndef LAUNCHER_CLI_CLI_H
#define LAUNCHER_CLI_CLI_H

#include "config/job_file.h"
#include "config/rendezvous_options.h"

/* --dry-run: on stdout, for each worker of this node, a comment and a command for a shell.  Returns
 * the exit code: 0, or that of a program that is not found. */
int dry_run(const struct options *options, const struct meeting *meeting, int size);

/* --explain of a ctrun that would start others on the nodes: each value, and a head for their
 * commands. */
void explain_before(const struct options *options);

/* --explain: each value, where it came from and what follows, on stdout.
 * Returns the exit code. */
int explain(const struct options *options, const struct meeting *meeting, int size,
            const char *why_size);

/* -1: a key of [collectives] is no variable of libct's; error says which. */
int variables_check(const struct jobfile *file, char *error, size_t size);

/* A line for each CT_ or PET_ variable, of the environment or of [env], that nothing reads and
 * whose name is near to one that is read. */
void variables_warn(const struct jobfile *file);

#endif
