/* SPDX-License-Identifier: Apache-2.0 */
/* debug_wrapper.h - ranks that run under a debugger or the like (--exec-on). */
#ifndef LAUNCHER_WORKERS_DEBUG_WRAPPER_H
#define LAUNCHER_WORKERS_DEBUG_WRAPPER_H

#include "config/options.h"

struct wrapper {
    const char *ranks; /* NULL: no --exec-on */
    char **words;      /* words of the command */
    char path[4096];   /* what exec gets */
};

/* 0: success; else the exit code (1, 2, 126, 127), and the error is logged.  wrapper_free() must
 * follow. */
int wrapper_find(struct wrapper *wrapper, const struct options *options);
void wrapper_free(struct wrapper *wrapper);

int wrapper_has(const struct wrapper *wrapper, int rank, int world);

/* Says whether only one rank runs under the command: it may then have the terminal. */
int wrapper_has_one(const struct wrapper *wrapper, int world);

/* Warns if no rank runs under the command. */
void wrapper_check(const struct wrapper *wrapper, int world);

/* Joins the command's words and the program as it would be executed: path and argv[1...].  Gives
 * one block for free(), and frees argv; NULL: out of memory, or argv was NULL. */
char **wrapper_argv(const struct wrapper *wrapper, const char *path, char **argv);

#endif
