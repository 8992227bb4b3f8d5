/* SPDX-License-Identifier: Apache-2.0 */
/* program.h - what to execute, and each worker's argv. */
#ifndef LAUNCHER_WORKERS_PROGRAM_H
#define LAUNCHER_WORKERS_PROGRAM_H

#include "config/options.h"

struct program {
    char path[4096];        /* what exec gets */
    char python[4096];      /* the one that leading[0] may name */
    const char *leading[4]; /* before the user's words: "python", "-u", "-m"; NULL-ended */
    char **words;           /* the user's: the program and its arguments */
    int rewritten_from;     /* first of them in which $local_rank is replaced */
    int tells_rank;         /* --local-rank=N comes after the first of them */
};

/* 0, or the exit code (126, 127) and the error is logged. */
int program_find(struct program *program, const struct options *options);

/* argv of one worker, in one block for free(); NULL: out of memory. */
char **program_argv(const struct program *program, int local_rank);

/* Does ctrun serve PMI to it?  --mpi=auto: to what is linked with an MPI of MPICH's family.  Of
 * Open MPI's, which has another protocol, it says so. */
int serves_pmi(const struct options *options, const struct program *program);

/* torchrun's rewriting of one argument: $local_rank, ${local_rank} and $$.
 * Returns its length; writes if to is not NULL. */
size_t program_rewrite(const char *text, const char *local_rank, char *to);

/* Along PATH, as the shell (with a slash in it: that file): writes the path and returns 0, or
 * returns the errno that says why there is none. */
int program_search(const char *name, char *found, size_t size);

/* The file that this process executes; "": /proc does not say. */
void program_own(char *path, size_t size);

/* Says why name can't be run; the exit code, 126 or 127. */
int program_refuse(const char *name, int cause);

#endif
