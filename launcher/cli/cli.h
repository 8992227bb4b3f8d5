/* SPDX-License-Identifier: Apache-2.0 */
/* cli.h - handles the options --dry-run and --explain of ctrun, which run no job, and warns about
 * misspelt variables. */
#ifndef LAUNCHER_CLI_CLI_H
#define LAUNCHER_CLI_CLI_H

#include "config/job_file.h"
#include "config/rendezvous_options.h"

/* Carries out --dry-run: prints a comment and a shell command for each worker of this node.
 * Returns 0, or the exit code after it has logged an error. */
int dry_run(const struct options *options, const struct meeting *meeting, int size);

/* Carries out --explain if this ctrun would start a ctrun on each node.  Prints each option's
 * value, and a heading for the commands that the caller prints next. */
void explain_before(const struct options *options);

/* Carries out --explain: prints each value, where it came from, and what follows from it.  Returns
 * the exit code. */
int explain(const struct options *options, const struct meeting *meeting, int size,
            const char *why_size);

/* Checks the keys of [collectives].  Returns 0 if libct has a variable for each key, or -1 with an
 * error message about a wrong key. */
int variables_check(const struct jobfile *file, char *error, size_t size);

/* Logs a warning for each misspelt CT_ or PET_ variable of the environment or of [env].  A variable
 * counts as misspelt if neither libct nor ctrun reads it, but its name is similar to a name that
 * they read. */
void variables_warn(const struct jobfile *file);

#endif
