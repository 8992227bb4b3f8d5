/* SPDX-License-Identifier: Apache-2.0 */
/* copies.h - copies between GPUs, their times, and whether the bytes that arrived are right. */
#ifndef TOPOLOGY_COPIES_H
#define TOPOLOGY_COPIES_H

#include "examples/topology/machine.h"

/* Random bytes, of which each sender has a window of its own: no two agree in a word. */
struct pattern {
    unsigned char *bytes, *seen; /* seen: room for what is looked at */
    size_t size;                 /* of a window */
};
void pattern_make(struct pattern *pattern, size_t size, int windows);
void pattern_free(struct pattern *pattern);
const void *pattern_window(const struct pattern *pattern, int window);

/* Its context becomes the current one; memory, a stream and an event there. */
void use_gpu(const struct machine *machine, int gpu);
device_pointer alloc_on(const struct machine *machine, int gpu, size_t bytes);
device_stream stream_on(const struct machine *machine, int gpu);
device_event event_on(const struct machine *machine, int gpu);

/* Writes a window to memory of the current GPU; overwrites it, so that nothing old counts; is the
 * window there? */
void put_window(const struct machine *machine, const struct pattern *pattern, int window,
                device_pointer to);
void spoil(const struct machine *machine, const struct pattern *pattern, device_pointer at,
           size_t bytes);
int holds_window(const struct machine *machine, const struct pattern *pattern, int window,
                 device_pointer at, size_t bytes);

/* Peer access of the pair, both ways round; nothing for a GPU and itself. */
void peer_access(const struct machine *machine, int one, int other, int on);

/* Waits for the current GPU's stream; a minute of it ends the program: some machines' settings let
 * copies between GPUs stand still for ever. */
void finish_copies(const struct machine *machine, device_stream stream, int from, int to);

double median(double *values, int count);

/* What is measured of each pair. */
#define KINDS(X)                                        \
    X(ONE_WAY, "GB/s one way, peer access on")          \
    X(ONE_WAY_OFF, "GB/s one way, peer access off")     \
    X(BOTH_WAYS, "GB/s both ways, peer access on")      \
    X(BOTH_WAYS_OFF, "GB/s both ways, peer access off") \
    X(LATENCY, "us for 16 bytes, peer access on")       \
    X(LATENCY_OFF, "us for 16 bytes, peer access off")

enum kind {
#define KIND_ENUM(name, title) name,
    KINDS(KIND_ENUM)
#undef KIND_ENUM
        KINDS_COUNT
};

/* NAN: not measured; below 0: other bytes arrived than were sent. */
struct measured {
    double value[KINDS_COUNT][GPUS_MOST][GPUS_MOST]; /* [from][to] */
    int wrong;                                       /* so many are below 0 */
};

/* Of all pairs, with copies of `bytes`; a GPU and itself counts as a pair with access. */
void measure_pairs(const struct machine *machine, size_t bytes, struct measured *measured);

#endif
