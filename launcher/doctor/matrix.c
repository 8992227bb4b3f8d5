/* SPDX-License-Identifier: Apache-2.0 */
/* matrix.c - computes which pairs and hosts are slow from the measurements between hosts. */
#include "launcher/doctor/matrix.h"

#include <stdlib.h>

/* a pair is bad if its bandwidth is lower than the usual bandwidth by this factor; other programs
 * slow a network less, and only briefly */
#define SLOW 4
/* a round trip is bad if it is longer than the usual round trip by this factor */
#define FAR 10
/* a round trip is bad only if it is also longer than this, in us, since shorter round trips differ
 * because of the processors */
#define FAR_US 500

void pair_take(struct host_pair *pair, uint64_t bytes, int64_t ns, int64_t began, int64_t theirs)
{
    const double us = (double)ns / 1e3, bytes_per_s = (double)bytes * 1e9 / (double)ns;

    if (bytes > 0 && bytes_per_s > pair->figure[BYTES_PER_S])
        pair->figure[BYTES_PER_S] = bytes_per_s;
    if (bytes > 0 || (pair->figure[TRIP_US] > 0 && us >= pair->figure[TRIP_US]))
        return;
    pair->figure[TRIP_US] = us;
    pair->skew_ns = theirs - (began + ns / 2);
}

int pair_is_measured(const struct host_pair *pair)
{
    return !pair->error && pair->figure[BYTES_PER_S] > 0;
}

struct host_pair *matrix_pair(const struct matrix *matrix, int from, int to)
{
    return &matrix->pairs[from * matrix->hosts + to];
}

/* ---- What is usual ------------------------------------------------------------------------ */

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

double matrix_usual(const struct matrix *matrix, enum figure figure)
{
    const int cells = matrix->hosts * matrix->hosts;
    double *all = calloc((size_t)cells, sizeof *all), result = 0;
    int count = 0;

    for (int i = 0; all && i < cells; i++)
        if (pair_is_measured(&matrix->pairs[i]))
            all[count++] = matrix->pairs[i].figure[figure];
    if (count > 0) {
        qsort(all, (size_t)count, sizeof *all, by_size);
        result = all[count * (figure == TRIP_US ? 1 : 3) / 4];
    }
    free(all);
    return result;
}

int pair_is_bad(const struct host_pair *pair, enum figure figure, const double usual[FIGURES])
{
    const double value = pair->figure[figure];

    if (!pair_is_measured(pair))
        return 0;
    return figure == TRIP_US ? value > FAR * usual[TRIP_US] && value > FAR_US
                             : value * SLOW < usual[BYTES_PER_S];
}

int host_is_slow(const struct matrix *matrix, int host, const double usual[FIGURES])
{
    int measured = 0, slow = 0;

    for (int i = 0; i < 2 * matrix->hosts; i++) {
        const int other = i / 2;
        const struct host_pair *pair =
            i % 2 ? matrix_pair(matrix, host, other) : matrix_pair(matrix, other, host);

        measured += pair_is_measured(pair);
        slow += pair_is_bad(pair, BYTES_PER_S, usual);
    }
    return measured > 2 && slow == measured;
}

/* ---- Clocks ------------------------------------------------------------------------- */

int64_t matrix_skew(const struct matrix *matrix, int host)
{
    const struct host_pair *pair = matrix_pair(matrix, host, 0);

    return host == 0 ? 0 : pair->figure[TRIP_US] > 0 ? -pair->skew_ns : NO_SKEW;
}

/* Returns how bad a clock difference in ns is.  Times in logs and --deadline depend on each host's
 * own clock.  If clocks differ by minutes, Kerberos and munge refuse tickets, and make(1) mistakes
 * new files for old files. */
enum finding_level clock_level(int64_t skew)
{
    const int64_t apart = skew < 0 ? -skew : skew;

    return apart >= 5000000000 ? LEVEL_FAIL : apart >= 100000000 ? LEVEL_WARN : LEVEL_OK;
}
