/* SPDX-License-Identifier: Apache-2.0 */
/* variables.h - lists the CT_ variables, and finds misspelt names of such variables. */
#ifndef RUNTIME_BOOTSTRAP_VARIABLES_H
#define RUNTIME_BOOTSTRAP_VARIABLES_H

struct variable_row {
    const char *name;
    const char *help; /* NULL if the variable is ctrun's, internal, or for tests and scripts */
};

/* Returns row i, or NULL if i is behind the last row. */
const struct variable_row *variable_row(int i);

/* Returns 1 if libct, ctrun or one of their tests reads the variable. */
int variable_is_known(const char *name);
/* Returns the known name that differs from `name` in one or two letters.  Returns NULL if `name` is
 * known itself, or differs more, as a program's own CT_ variables do. */
const char *variable_meant(const char *name);

/* Logs a warning for each environment variable whose name is almost a known one. */
void environment_warn(void);

#endif
