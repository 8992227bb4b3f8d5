/* SPDX-License-Identifier: Apache-2.0 */
/* variables.h - the names of ctrun's and libct's own variables, for those that are misspelt. */
#ifndef LAUNCHER_CLI_VARIABLES_H
#define LAUNCHER_CLI_VARIABLES_H

#include "config/job_file.h"

/* A key of [collectives] that becomes no variable of libct's leaves a sentence in error: -1. */
int variables_check(const struct jobfile *file, char *error, size_t size);

/* A line for each CT_ or PET_ variable, of the environment or of [env], that nothing reads and
 * whose name is near to one that is read. */
void variables_warn(const struct jobfile *file);

#endif
