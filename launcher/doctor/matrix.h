/* SPDX-License-Identifier: Apache-2.0 */
/* matrix.h - what was measured between hosts, and what follows from it: which pairs are slow, how
 * far the clocks are apart. */
#ifndef LAUNCHER_DOCTOR_MATRIX_H
#define LAUNCHER_DOCTOR_MATRIX_H

#include <stddef.h>
#include <stdint.h>

#include "launcher/doctor/finding.h"

/* One answer of a host about its clock; all in ns, of the clocks that were read. */
struct ping {
    int64_t sent, theirs, received;
};

/* How far that clock is ahead, by the ping with the shortest way, of which the error is at most
 * half.  *round_trip: of that ping; -1: there is none. */
int64_t skew_of_pings(const struct ping *pings, int count, int64_t *round_trip);

/* From one host to another. */
struct host_pair {
    enum level level;
    int measured;    /* the connection worked, and the rest is there */
    int64_t trip_ns; /* the shortest round trip */
    int64_t skew_ns; /* so much is the other's clock ahead */
    double bytes_per_s;
    char *error, *remedy; /* why not, and what to do; NULL: nothing is wrong */
    char *lookup;         /* why its name is not found there; NULL: it is */
};

struct matrix {
    int hosts;
    struct host_pair *pairs; /* [from * hosts + to] */
};

/* -1: out of memory; matrix_close() is owed in any case. */
int matrix_open(struct matrix *matrix, int hosts);
void matrix_close(struct matrix *matrix);
struct host_pair *matrix_pair(const struct matrix *matrix, int from, int to);

/* Of the pairs that are measured; 0: none.  The usual figure is that of the best quarter, which is
 * the network's: of three hosts one that is slow makes four of the six pairs slow. */
double median_bandwidth(const struct matrix *matrix);
double usual_bandwidth(const struct matrix *matrix);
double usual_trip_us(const struct matrix *matrix);

/* 1: so much worse than that, that the network is the reason. */
int pair_is_slow(const struct host_pair *pair, double usual_bytes_per_s);
int pair_is_far(const struct host_pair *pair, double usual_us);
/* All pairs of the host that are measured are slow, and there are so many that it is the host. */
int host_is_slow(const struct matrix *matrix, int host, double usual_bytes_per_s);

/* skews[i]: how far host i is ahead of host 0, through other hosts if need be, by the way whose
 * round trips are the shortest in sum; INT64_MIN: there is none. */
#define NO_SKEW INT64_MIN
int matrix_skews(const struct matrix *matrix, int64_t *skews); /* -1: out of memory */
enum level clock_level(int64_t skew);

/* Round `round` of a tournament: *a and *b of its match `match` (from 0 to (hosts + 1) / 2 - 1).
 * In tournament_rounds() rounds each two hosts meet once, and no host is in two matches of a
 * round.  0: this match has one host only. */
int tournament_rounds(int hosts);
int tournament_match(int hosts, int round, int match, int *a, int *b);

#endif
