/* SPDX-License-Identifier: Apache-2.0 */
/* matrix.c - see matrix.h. */
#include "launcher/doctor/matrix.h"

#include <stdlib.h>

#define SLOW 4 /* times: what other programs do to a network for a moment is less */
#define FAR 10
#define FAR_US 500 /* and at least that: below, it is the processors that differ */

int matrix_open(struct matrix *matrix, int hosts)
{
    *matrix = (struct matrix){
        .hosts = hosts, .pairs = calloc((size_t)hosts * (size_t)hosts + 1, sizeof *matrix->pairs)
    };
    return matrix->pairs ? 0 : -1;
}

void matrix_close(struct matrix *matrix)
{
    for (int i = 0; matrix->pairs && i < matrix->hosts * matrix->hosts; i++) {
        free(matrix->pairs[i].error);
        free(matrix->pairs[i].remedy);
        free(matrix->pairs[i].lookup);
    }
    free(matrix->pairs);
    *matrix = (struct matrix){ 0 };
}

struct host_pair *matrix_pair(const struct matrix *matrix, int from, int to)
{
    return &matrix->pairs[from * matrix->hosts + to];
}

/* ---- What is usual ------------------------------------------------------------------------ */

static double trip_us(const struct host_pair *pair)
{
    return (double)pair->trip_ns / 1e3;
}

static double bandwidth(const struct host_pair *pair)
{
    return pair->bytes_per_s;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* So many quarters of the pairs have less. */
static double quartile(const struct matrix *matrix, int quarters,
                       double (*of)(const struct host_pair *))
{
    const int cells = matrix->hosts * matrix->hosts;
    double *all = calloc((size_t)cells + 1, sizeof *all), result = 0;
    int count = 0;

    for (int i = 0; all && i < cells; i++)
        if (matrix->pairs[i].measured)
            all[count++] = of(&matrix->pairs[i]);
    if (count > 0) {
        qsort(all, (size_t)count, sizeof *all, by_size);
        result = all[count * quarters / 4];
    }
    free(all);
    return result;
}

double median_bandwidth(const struct matrix *matrix)
{
    return quartile(matrix, 2, bandwidth);
}

double usual_bandwidth(const struct matrix *matrix)
{
    return quartile(matrix, 3, bandwidth);
}

double usual_trip_us(const struct matrix *matrix)
{
    return quartile(matrix, 1, trip_us);
}

int pair_is_slow(const struct host_pair *pair, double usual_bytes_per_s)
{
    return pair->measured && pair->bytes_per_s * SLOW < usual_bytes_per_s;
}

int pair_is_far(const struct host_pair *pair, double usual_us)
{
    return pair->measured && trip_us(pair) > FAR * usual_us && trip_us(pair) > FAR_US;
}

int host_is_slow(const struct matrix *matrix, int host, double usual_bytes_per_s)
{
    int measured = 0, slow = 0;

    for (int i = 0; i < 2 * matrix->hosts; i++) {
        const int other = i / 2;
        const struct host_pair *pair =
            i % 2 ? matrix_pair(matrix, host, other) : matrix_pair(matrix, other, host);

        measured += pair->measured;
        slow += pair_is_slow(pair, usual_bytes_per_s);
    }
    return measured > 2 && slow == measured;
}

/* ---- Clocks ------------------------------------------------------------------------- */

int64_t skew_of_pings(const struct ping *pings, int count, int64_t *round_trip)
{
    int64_t skew = 0;

    *round_trip = -1;
    for (int i = 0; i < count; i++) {
        const int64_t trip = pings[i].received - pings[i].sent;

        if (trip < 0 || (*round_trip >= 0 && trip >= *round_trip))
            continue; /* below 0 the clock was set meanwhile */
        *round_trip = trip;
        skew = pings[i].theirs - (pings[i].sent + trip / 2);
    }
    return skew;
}

int matrix_skews(const struct matrix *matrix, int64_t *skews)
{
    int64_t *way = calloc((size_t)matrix->hosts, sizeof *way);
    int better = 1;

    if (!way)
        return -1;
    for (int i = 0; i < matrix->hosts; i++) {
        skews[i] = i == 0 ? 0 : NO_SKEW;
        way[i] = i == 0 ? 0 : INT64_MAX;
    }
    while (better) {
        better = 0;
        for (int from = 0; from < matrix->hosts; from++)
            for (int to = 0; to < matrix->hosts; to++) {
                const struct host_pair *pair = matrix_pair(matrix, from, to);

                if (!pair->measured)
                    continue;
                if (way[from] != INT64_MAX && way[from] + pair->trip_ns < way[to]) {
                    way[to] = way[from] + pair->trip_ns;
                    skews[to] = skews[from] + pair->skew_ns;
                    better = 1;
                }
                if (way[to] != INT64_MAX && way[to] + pair->trip_ns < way[from]) {
                    way[from] = way[to] + pair->trip_ns;
                    skews[from] = skews[to] - pair->skew_ns;
                    better = 1;
                }
            }
    }
    free(way);
    return 0;
}

/* Times in logs and --deadline are by each host's own clock; from minutes on tickets of Kerberos
 * and munge are refused, and make takes new files for old ones. */
enum level clock_level(int64_t skew)
{
    const int64_t apart = skew < 0 ? -skew : skew;

    return apart >= 5000000000 ? LEVEL_FAIL : apart >= 100000000 ? LEVEL_WARN : LEVEL_OK;
}

/* ---- Rounds ------------------------------------------------------------------------- */

/* The circle method: one stays, the others move on by one place a round.  An odd number gets a host
 * more that does not exist. */
static int places(int hosts)
{
    return hosts + hosts % 2;
}

int tournament_rounds(int hosts)
{
    return hosts < 2 ? 0 : places(hosts) - 1;
}

int tournament_match(int hosts, int round, int match, int *a, int *b)
{
    const int moving = places(hosts) - 1;

    *a = match == 0 ? moving : (round + match) % moving;
    *b = (round + moving - match) % moving;
    return *a < hosts && *b < hosts;
}
