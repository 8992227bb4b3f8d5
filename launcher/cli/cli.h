/* SPDX-License-Identifier: Apache-2.0 */
/* cli.h - options of ctrun that run no job (--dry-run, --explain), and warnings about misspelt
 * variables. */
#ifndef LAUNCHER_CLI_CLI_H
#define LAUNCHER_CLI_CLI_H

#include "config/job_file.h"
#include "config/rendezvous_options.h"

/* Carries out --dry-run: prints, for each worker of this node, a comment and a shell command.
 * Returns the exit code: 0, or the code for a program that is not found. */
int dry_run(const struct options *options, const struct meeting *meeting, int size);

/* Carries out --explain of a ctrun that would start a ctrun on each node: prints each value, and a
 * heading for the commands that start them. */
void explain_before(const struct options *options);

/* Carries out --explain: prints each value, where it came from and what follows from it.  Returns
 * the exit code. */
int explain(const struct options *options, const struct meeting *meeting, int size,
            const char *why_size);

/* Checks the keys of [collectives].  0: libct has all these variables; -1: error names a wrong key.
 */
int variables_check(const struct jobfile *file, char *error, size_t size);

/* Logs a warning for each misspelt CT_ or PET_ variable of the environment or of [env]: nothing
 * reads it, but its name is near to one that is read. */
void variables_warn(const struct jobfile *file);

#endif
