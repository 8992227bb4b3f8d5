/* SPDX-License-Identifier: Apache-2.0 */
/* variables.h - the names of all CT_ variables, and those that are almost one. */
#ifndef RUNTIME_BOOTSTRAP_VARIABLES_H
#define RUNTIME_BOOTSTRAP_VARIABLES_H

/* Does libct or ctrun read it, or a test of theirs? */
int variable_is_known(const char *name);
/* The known one that `name` may be meant to be, one or two letters away; NULL: it is known itself,
 * or like none, as variables of the program's own that begin with CT_. */
const char *variable_meant(const char *name);

/* A line of LOG_WARN for each variable of the environment that is almost a known one. */
void environment_warn(void);

#endif
