/* SPDX-License-Identifier: Apache-2.0 */
/* matrix.h - what was measured between hosts, and what follows from it: which pairs are slow, how
 * far the clocks are apart. */
#ifndef LAUNCHER_DOCTOR_MATRIX_H
#define LAUNCHER_DOCTOR_MATRIX_H

#include <stdint.h>

#include "launcher/doctor/checks.h"

enum figure { TRIP_US, BYTES_PER_S, FIGURES };

/* From one host to another. */
struct host_pair {
    double figure[FIGURES]; /* the shortest round trip, the fastest burst; 0: none yet */
    int64_t skew_ns;        /* so much is the other's clock ahead, by that round trip */
    char *error;            /* malloc'ed; NULL: the connection worked */
    enum finding_level level;
};

/* So many bytes went there and an answer came back, in ns.  The fastest counts, since other work on
 * a host can only make it longer.  0 bytes are a ping: the error of its skew is at most half of the
 * time.  began and theirs: by the clocks of the two hosts. */
void pair_take(struct host_pair *pair, uint64_t bytes, int64_t ns, int64_t began, int64_t theirs);

int pair_is_measured(const struct host_pair *pair); /* all of it, and nothing failed */

struct matrix {
    int hosts;
    struct host_pair *pairs; /* [from * hosts + to] */
};

struct host_pair *matrix_pair(const struct matrix *matrix, int from, int to);

/* Of the pairs that are measured; 0: none was.  The usual figure is that of the best quarter,
 * which is the network's: of three hosts one that is slow makes four of the six pairs slow. */
double matrix_usual(const struct matrix *matrix, enum figure figure);

/* 1: so much worse than the usual figure, that the network is the reason. */
int pair_is_bad(const struct host_pair *pair, enum figure figure, const double usual[FIGURES]);
/* All pairs of the host that are measured are slow, and there are so many that it is the host. */
int host_is_slow(const struct matrix *matrix, int host, const double usual[FIGURES]);

/* How far the host's clock is ahead of host 0's, by its pings to that.  NO_SKEW: not known. */
#define NO_SKEW INT64_MIN
int64_t matrix_skew(const struct matrix *matrix, int host);
enum finding_level clock_level(int64_t skew);

#endif
