/* SPDX-License-Identifier: Apache-2.0 */
/* timed.h - cases that are timed once a round, while a second client looks how
 * long it is kept waiting; and the keys such a case needs. */
#ifndef STORE_BENCH_TIMED_H
#define STORE_BENCH_TIMED_H

#include "bench/store_bench/peer.h"

#define MOST_ROUNDS 8

/* What one case gave on one server. */
struct outcome {
    double ms[MOST_ROUNDS], cpu[MOST_ROUNDS], worst[MOST_ROUNDS], p99[MOST_ROUNDS];
    size_t n;
    int error; /* an errno: it was given up; not tried again */
};

/* A case: peers[0] asks; peers[1] is a second client for what needs one. */
typedef int action(struct peer peers[2], int tag, int n);

/* Opens the peers that are not. */
void timed(const struct server *server, struct outcome *outcome, action *act, struct peer peers[2],
           int tag, int n);
void peers_close(struct peer peers[2]);

/* Of each server's outcome; they are stride apart. */
void report(const char *mode, const char *name, const char *size, struct outcome *outcomes,
            size_t stride);

/* n keys, without a watcher and in small messages, which no server minds. */
void set_all(const struct server *server, int tag, int n);
void delete_all(const struct server *server, int tag, int n);

#endif
