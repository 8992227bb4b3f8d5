/* SPDX-License-Identifier: Apache-2.0 */
/* start.h - struct start is the data of FRAME_START, with all that a host needs to start its part
 * of a job. */
#ifndef LAUNCHER_REMOTE_START_H
#define LAUNCHER_REMOTE_START_H

#include "config/values/host_list.h"

struct start {
    int nodes;     /* number of nodes of the job */
    int first;     /* number of the node that gets this start */
    int terminals; /* 1 if the user's standard output is a terminal, plus 2 if standard error is */
    int at_once;   /* 1 if a node starts without waiting for FRAME_PORT */
    char *head;    /* host of node 0, the default of MASTER_ADDR */
    char *run_id;
    char *folder;           /* working directory of the program */
    char *path;             /* path of the program on each host, ctrun or ctctl */
    char *shell;            /* value of --ssh */
    struct host_list hosts; /* hosts of the nodes from `first` on; the first starts the others */
    char **words;           /* arguments of the program, without its name; ends with NULL */
    char **variables;       /* "NAME=value" entries; ends with NULL */
    char *block;            /* memory of the strings that start_read() read, else NULL */
};

/* Writes the start for the nodes first, ..., first + count - 1 into a block, which the caller
 * frees.  Returns NULL if memory runs out. */
char *start_write(const struct start *start, int first, int count, size_t *size);

/* Reads a start.  Returns 0, and the caller must call start_free().  Returns -1 if the data are not
 * a valid start or memory runs out. */
int start_read(struct start *start, const char *data, size_t size);
void start_free(struct start *start);

/* Returns the name of the program without its folder, such as "ctrun", for messages. */
const char *start_program(const struct start *start);

#endif
