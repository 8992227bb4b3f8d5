/* SPDX-License-Identifier: Apache-2.0 */
/* matrix.h - what was measured between hosts, and what follows: which pairs are slow, and how much
 * the clocks differ. */
#ifndef LAUNCHER_DOCTOR_MATRIX_H
#define LAUNCHER_DOCTOR_MATRIX_H

#include <stdint.h>

#include "launcher/doctor/checks.h"

enum figure { TRIP_US, BYTES_PER_S, FIGURES };

/* The measurements from one host to another. */
struct host_pair {
    double figure[FIGURES]; /* the shortest round trip, the fastest burst; 0: not measured */
    int64_t skew_ns;        /* how far the other clock is ahead, by the shortest round trip */
    char *error;            /* malloc'ed; NULL: the connection worked */
    enum finding_level level;
};

/* Takes a measurement: the bytes were sent, and an answer came after ns.  The fastest one counts,
 * since other work on a host only makes it longer.  0 bytes are a ping, which also gives the skew,
 * with an error of at most half the time.  began: by the clock of this host; theirs: by the other
 * clock. */
void pair_take(struct host_pair *pair, uint64_t bytes, int64_t ns, int64_t began, int64_t theirs);

int pair_is_measured(const struct host_pair *pair); /* completely, and without an error */

struct matrix {
    int hosts;
    struct host_pair *pairs; /* [from * hosts + to] */
};

struct host_pair *matrix_pair(const struct matrix *matrix, int from, int to);

/* Gives the usual figure of the measured pairs; 0: no pair was measured.  It is the figure of the
 * best quarter of the pairs, which shows the network: if one of three hosts is slow, four of the
 * six pairs are slow. */
double matrix_usual(const struct matrix *matrix, enum figure figure);

/* 1: the figure is so much worse than the usual one that the network must be the reason. */
int pair_is_bad(const struct host_pair *pair, enum figure figure, const double usual[FIGURES]);
/* 1: all measured pairs of the host are slow, and they are so many that the host must be the
 * reason. */
int host_is_slow(const struct matrix *matrix, int host, const double usual[FIGURES]);

/* Gives how far the host's clock is ahead of host 0's, by its pings to host 0.  NO_SKEW: not known.
 */
#define NO_SKEW INT64_MIN
int64_t matrix_skew(const struct matrix *matrix, int host);
enum finding_level clock_level(int64_t skew);

#endif
