/* SPDX-License-Identifier: Apache-2.0 */
/* start.h - what a host needs to know to start its part of a job: the data of FRAME_START. */
#ifndef LAUNCHER_REMOTE_START_H
#define LAUNCHER_REMOTE_START_H

#include "config/values/host_list.h"

struct start {
    int nodes;     /* of the job */
    int first;     /* the node that gets it */
    int terminals; /* bits 1 and 2: the user's standard output and error are terminals */
    int at_once;   /* a node does not wait for FRAME_PORT */
    char *head;    /* MASTER_ADDR: node 0's host */
    char *run_id;
    char *folder;           /* to run in */
    char *path;             /* of the program that is started on each host: ctrun, or ctctl */
    char *shell;            /* --ssh */
    struct host_list hosts; /* nodes first, first + 1, ...: it starts those behind itself */
    char **words;           /* for it, NULL-ended; without its own name */
    char **variables;       /* "NAME=value", NULL-ended */
    char *block;            /* where the strings of a start that was read lie */
};

/* The same job for `count` of these nodes, beginning with `first`, as a block for free(); NULL: out
 * of memory. */
char *start_write(const struct start *start, int first, int count, size_t *size);

/* -1: it is broken, or there is no memory.  start_free() is owed if 0. */
int start_read(struct start *start, const char *data, size_t size);
void start_free(struct start *start);

const char *start_program(const struct start *start); /* "ctrun", for messages */

#endif
