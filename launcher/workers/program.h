/* SPDX-License-Identifier: Apache-2.0 */
/* program.h - finds the file to execute, and makes each worker's argv. */
#ifndef LAUNCHER_WORKERS_PROGRAM_H
#define LAUNCHER_WORKERS_PROGRAM_H

#include "config/options.h"

struct program {
    char path[4096];        /* file to execute */
    char python[4096];      /* buffer for the interpreter's path, to which leading[0] may point */
    const char *leading[4]; /* words before the user's: "python", "-u", "-m"; NULL-terminated */
    char **words;           /* the user's words: the program and its arguments */
    int rewritten_from;     /* index of the first word in which $local_rank is replaced */
    int tells_rank;         /* true if --local-rank=N is added after the first word */
};

/* Finds the file to execute and the words before the user's.  Returns 0, or logs an error and
 * returns the exit code, 126 or 127. */
int program_find(struct program *program, const struct options *options);

/* Makes the argv of one worker in one block, which the caller must free().  Returns NULL if out of
 * memory. */
char **program_argv(const struct program *program, int local_rank);

/* Returns 1 if ctrun serves PMI to the program.  With --mpi=auto, ctrun does so if the program is
 * linked with MPICH or an MPI derived from it.  Warns if the program is linked with Open MPI, which
 * has another protocol. */
int serves_pmi(const struct options *options, const struct program *program);

/* Replaces $local_rank, ${local_rank} and $$ in one argument, as torchrun does.  Returns the new
 * length.  Writes nothing if `to` is NULL. */
size_t program_rewrite(const char *text, const char *local_rank, char *to);

/* Searches PATH for a program, as the shell does.  A name with a slash is a path already.  Writes
 * the path to `found` and returns 0, or returns an errno if no executable file was found. */
int program_search(const char *name, char *found, size_t size);

/* Writes the path of this process's executable; "" if /proc is not readable. */
void program_own(char *path, size_t size);

/* Logs why `name` can't be run.  Returns the exit code, 126 or 127. */
int program_refuse(const char *name, int cause);

#endif
