/* SPDX-License-Identifier: Apache-2.0 */
/* stream_route.h - where one output stream of one worker goes, by the options. */
#ifndef LAUNCHER_STDIO_STREAM_ROUTE_H
#define LAUNCHER_STDIO_STREAM_ROUTE_H

#include "config/options.h"

/* Whose stream it is. */
struct origin {
    int rank, local_rank, world;
    int to;       /* 1 or 2 */
    int terminal; /* is ours of that number one? */
    int files;    /* there is a folder for files */
};

/* All 0: the worker inherits ours, as under torchrun. */
struct route {
    int file;           /* into stdout.log or stderr.log */
    int through;        /* by a pipe through ctrun, */
    int shown;          /* which shows it */
    int tee;            /* the torchrun's way */
    int nowhere;        /* into /dev/null */
    int by_rank;        /* after "[3] ", else: */
    const char *prefix; /* a template */
};

struct route route_of(const struct options *options, const struct origin *origin);

#endif
