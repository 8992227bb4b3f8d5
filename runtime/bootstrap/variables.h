/* SPDX-License-Identifier: Apache-2.0 */
/* variables.h - the names of all CT_ variables, and the known name nearest to a misspelt one. */
#ifndef RUNTIME_BOOTSTRAP_VARIABLES_H
#define RUNTIME_BOOTSTRAP_VARIABLES_H

struct variable_row {
    const char *name;
    const char *help; /* NULL: an option of ctrun, or between programs of ours */
};

/* NULL behind the last. */
const struct variable_row *variable_row(int i);

/* libct, ctrun or one of their tests reads it. */
int variable_is_known(const char *name);
/* The known name that is one or two letters away from `name`; NULL: `name` is known itself, or is
 * not near to a known one, as a program's own variables that begin with CT_. */
const char *variable_meant(const char *name);

/* A line of LOG_WARN for each variable of the environment that is almost a known one. */
void environment_warn(void);

#endif
