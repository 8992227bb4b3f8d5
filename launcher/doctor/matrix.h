/* SPDX-License-Identifier: Apache-2.0 */
/* matrix.h - stores the measurements between hosts, and determines which pairs are slow and how
 * much the clocks differ. */
#ifndef LAUNCHER_DOCTOR_MATRIX_H
#define LAUNCHER_DOCTOR_MATRIX_H

#include <stdint.h>

#include "launcher/doctor/checks.h"

enum figure { TRIP_US, BYTES_PER_S, FIGURES };

/* The measurements from one host to another. */
struct host_pair {
    double figure[FIGURES]; /* the shortest round trip and the fastest burst; 0 if not measured */
    /* how many ns the other clock is ahead, measured with the shortest round trip */
    int64_t skew_ns;
    char *error; /* malloc'ed error message; NULL if the connection worked */
    enum finding_level level;
};

/* Adds a measurement: `bytes` were sent, and the answer came after ns.  The fastest measurement
 * counts, since other work on a host only makes a measurement longer.  If `bytes` is 0, the
 * measurement is a ping, which also measures the skew, with an error of at most half the round
 * trip.  `began` is the time of sending by this host's clock.  `theirs` is the time of the answer
 * by the other host's clock. */
void pair_take(struct host_pair *pair, uint64_t bytes, int64_t ns, int64_t began, int64_t theirs);

/* True if the pair is measured completely, and without an error. */
int pair_is_measured(const struct host_pair *pair);

struct matrix {
    int hosts;
    struct host_pair *pairs; /* [from * hosts + to] */
};

struct host_pair *matrix_pair(const struct matrix *matrix, int from, int to);

/* Returns the usual figure of the measured pairs; 0 if no pair was measured.  A quarter of the
 * pairs are better than the usual figure, so it shows what the network can do.  A median would not:
 * if one of three hosts is slow, four of the six pairs are slow. */
double matrix_usual(const struct matrix *matrix, enum figure figure);

/* Returns 1 if the figure is so much worse than the usual figure that the network must be the
 * reason. */
int pair_is_bad(const struct host_pair *pair, enum figure figure, const double usual[FIGURES]);
/* Returns 1 if all measured pairs of the host are slow, and there are so many of them that the host
 * must be the reason. */
int host_is_slow(const struct matrix *matrix, int host, const double usual[FIGURES]);

/* Returns how many ns the host's clock is ahead of host 0's clock, by the host's pings to host 0.
 * Returns NO_SKEW if not known. */
#define NO_SKEW INT64_MIN
int64_t matrix_skew(const struct matrix *matrix, int host);
enum finding_level clock_level(int64_t skew);

#endif
