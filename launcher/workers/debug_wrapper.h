/* SPDX-License-Identifier: Apache-2.0 */
/* debug_wrapper.h - the command under which some ranks run, such as a debugger (--exec-on). */
#ifndef LAUNCHER_WORKERS_DEBUG_WRAPPER_H
#define LAUNCHER_WORKERS_DEBUG_WRAPPER_H

#include "config/options.h"

struct wrapper {
    const char *ranks; /* the ranks that run under the command; NULL without --exec-on */
    char **words;      /* words of the command */
    char path[4096];   /* path of the command's executable */
};

/* Splits the command and finds its executable.  Returns 0, or logs an error and returns the exit
 * code (1, 2, 126, 127).  The caller must call wrapper_free() in both cases. */
int wrapper_find(struct wrapper *wrapper, const struct options *options);
void wrapper_free(struct wrapper *wrapper);

/* Returns 1 if the rank runs under the command. */
int wrapper_has(const struct wrapper *wrapper, int rank, int world);

/* Returns 1 if exactly one rank runs under the command.  That rank may then get the terminal. */
int wrapper_has_one(const struct wrapper *wrapper, int world);

/* Warns if no rank runs under the command. */
void wrapper_check(const struct wrapper *wrapper, int world);

/* Returns the command's words, followed by `path` and argv[1...].  The result is one block, which
 * the caller must free().  Frees argv.  Returns NULL if out of memory or if argv is NULL. */
char **wrapper_argv(const struct wrapper *wrapper, const char *path, char **argv);

#endif
