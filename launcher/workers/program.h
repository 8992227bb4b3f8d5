/* SPDX-License-Identifier: Apache-2.0 */
/* program.h - finds what to execute, and makes each worker's argv. */
#ifndef LAUNCHER_WORKERS_PROGRAM_H
#define LAUNCHER_WORKERS_PROGRAM_H

#include "config/options.h"

struct program {
    char path[4096];        /* what exec gets */
    char python[4096];      /* the interpreter that leading[0] may name */
    const char *leading[4]; /* before the user's words: "python", "-u", "-m"; NULL-ended */
    char **words;           /* the user's: the program and its arguments */
    int rewritten_from;     /* index of the first word in which $local_rank is replaced */
    int tells_rank;         /* --local-rank=N comes after the first word */
};

/* 0: success; else the exit code (126, 127), and the error is logged. */
int program_find(struct program *program, const struct options *options);

/* Makes argv of one worker, in one block for free(); NULL: out of memory. */
char **program_argv(const struct program *program, int local_rank);

/* Says whether ctrun serves PMI to the program.  --mpi=auto: if it is linked with an MPI of MPICH's
 * family.  Warns if it is linked with Open MPI, which has another protocol. */
int serves_pmi(const struct options *options, const struct program *program);

/* Rewrites one argument as torchrun does: $local_rank, ${local_rank} and $$.  Returns the new
 * length; writes only if `to` is not NULL. */
size_t program_rewrite(const char *text, const char *local_rank, char *to);

/* Searches PATH as the shell does; a name with a slash is that file.  Writes the path and returns
 * 0, or returns the errno that says why no file was found. */
int program_search(const char *name, char *found, size_t size);

/* Writes the path of the file that this process executes; "": /proc does not say. */
void program_own(char *path, size_t size);

/* Logs why `name` can't be run.  Returns the exit code, 126 or 127. */
int program_refuse(const char *name, int cause);

#endif
