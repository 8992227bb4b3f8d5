/* SPDX-License-Identifier: Apache-2.0 */
/* results.h - what was simulated, and how it is shown. */
#ifndef NETWORK_SIM_RESULTS_H
#define NETWORK_SIM_RESULTS_H

#include <stdio.h>

#include "bench/network_sim/simulate.h"

/* All rows of a job. */
struct result {
    struct job job;
    double bound;
    int rows, chosen; /* how many; the one that the library takes */
    struct row_info info[MOST_ROWS];
    struct outcome outcome[MOST_ROWS]; /* us NAN: not simulated */
};

struct results {
    struct result *all;
    size_t count, room;
};

/* NULL: there is no memory.  Ends with free(results.all). */
struct result *results_add(struct results *results);

/* The fastest row that was simulated. */
int fastest_row(const struct result *r);

const char *bytes_text(size_t bytes, char text[24]); /* 64K */
const char *us_text(double us, char text[24]);       /* 43.6 ms */

/* table.c: text, a table for each operation, size and number of ranks, as they come. */
void table_heading(FILE *file, const struct result *r);
void table_line(FILE *file, const struct result *r);
void table_of_slower(FILE *file, const struct results *results); /* where another row is faster */
void csv_write(FILE *file, const struct results *results);
void json_write(FILE *file, const struct results *results);

/* figure.c: an SVG of all_reduce by hosts, a panel for each size, of jobs with `each` ranks. */
void figure_draw(FILE *file, const struct results *results, int each);

#endif
