/* SPDX-License-Identifier: Apache-2.0 */
/* variables.h - the names of all CT_ variables, and the known name nearest to a misspelt one. */
#ifndef RUNTIME_BOOTSTRAP_VARIABLES_H
#define RUNTIME_BOOTSTRAP_VARIABLES_H

struct variable_row {
    const char *name;
    const char *help; /* NULL: for an option of ctrun, or between our programs */
};

/* Gives row i.  NULL: i is behind the last row. */
const struct variable_row *variable_row(int i);

/* Says whether libct, ctrun or one of their tests reads the variable. */
int variable_is_known(const char *name);
/* Gives the known name that is one or two letters away from `name`.  NULL: `name` is known itself,
 * or differs more, as a program's own CT_ variables do. */
const char *variable_meant(const char *name);

/* Logs a warning for each environment variable whose name is almost a known one. */
void environment_warn(void);

#endif
