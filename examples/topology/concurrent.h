/* SPDX-License-Identifier: Apache-2.0 */
/* concurrent.h - three copies at once from GPU 0 to three others, and why they differ. */
#ifndef TOPOLOGY_CONCURRENT_H
#define TOPOLOGY_CONCURRENT_H

#include "examples/topology/copies.h"

enum { STREAMS = 3, TENSORS = 10 };

/* One tensor's copy, by the sender's clock, after the common start. */
struct slice {
    double begin_us, end_us;
};

struct lane {
    int to;
    double alone, at_once; /* GB/s */
    int wrong;             /* tensors that did not arrive as they were sent */
    struct slice slice[TENSORS];
};

struct concurrent {
    size_t bytes; /* of a tensor */
    struct lane lane[STREAMS];
};

/* Each stream by itself, then all at once.  With fewer GPUs the others take turns; one GPU copies
 * to itself. */
void run_concurrent(const struct machine *machine, size_t floats, struct concurrent *concurrent);
void explain_concurrent(const struct machine *machine, const struct concurrent *concurrent);

/* For ui.perfetto.dev and chrome://tracing.  -1: errno says why not. */
int write_trace(const char *path, const struct machine *machine,
                const struct concurrent *concurrent);

#endif
