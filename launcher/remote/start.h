/* SPDX-License-Identifier: Apache-2.0 */
/* start.h - the data of FRAME_START: what a host needs to start its part of a job. */
#ifndef LAUNCHER_REMOTE_START_H
#define LAUNCHER_REMOTE_START_H

#include "config/values/host_list.h"

struct start {
    int nodes;     /* of the job */
    int first;     /* the node that gets this start */
    int terminals; /* bits 1 and 2: the user's standard output and error are terminals */
    int at_once;   /* 1: a node does not wait for FRAME_PORT */
    char *head;    /* MASTER_ADDR: node 0's host */
    char *run_id;
    char *folder;           /* the folder to run in */
    char *path;             /* of the program on each host: ctrun or ctctl */
    char *shell;            /* --ssh */
    struct host_list hosts; /* of nodes first, first + 1, ...: a node starts those after it */
    char **words;           /* for the program, without its name; ends with NULL */
    char **variables;       /* "NAME=value"; ends with NULL */
    char *block;            /* has the strings of a start that was read */
};

/* Writes the start for `count` of these nodes, beginning with `first`, as a block for free(). NULL:
 * out of memory. */
char *start_write(const struct start *start, int first, int count, size_t *size);

/* Reads a start.  0: the caller must call start_free(); -1: it is broken, or out of memory. */
int start_read(struct start *start, const char *data, size_t size);
void start_free(struct start *start);

const char *start_program(const struct start *start); /* "ctrun", for messages */

#endif
