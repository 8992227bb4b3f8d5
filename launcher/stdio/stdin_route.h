/* SPDX-License-Identifier: Apache-2.0 */
/* stdin_route.h - which worker has our standard input. */
#ifndef LAUNCHER_STDIO_STDIN_ROUTE_H
#define LAUNCHER_STDIO_STDIN_ROUTE_H

#include "config/options.h"

struct input {
    const struct stdin_to *to;
    int away; /* ours is a terminal that belongs to somebody else now */
    int null; /* /dev/null, for workers; -1: not opened yet */
};

void input_setup(struct input *input, const struct options *options);

/* What this rank gets as its descriptor 0; -1: ours. */
int input_of(struct input *input, int rank);
int input_null(struct input *input); /* -1 with errno */

/* A sentence if nobody gets it and that can't be meant. */
void input_check(const struct input *input, int world);
void input_close(struct input *input);

#endif
