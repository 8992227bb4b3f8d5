/* SPDX-License-Identifier: Apache-2.0 */
/* stats.h - samples and the lines that are printed of them. */
#ifndef STORE_BENCH_STATS_H
#define STORE_BENCH_STATS_H

#include <stddef.h>

#define LIMIT_SECONDS 20 /* of one case on one server, then it is given up */
#define ENOUGH_SECONDS 5 /* after that a case gets no further round on that server */

struct server;

double now(void);
_Noreturn void die(const char *what);
void *get_memory(size_t bytes);

/* What a forked child and its parent both see. */
void *get_shared(size_t bytes);

/* Sorts. */
double quantile(double *values, size_t n, double q);

/* One line; the format names the case. */
__attribute__((format(printf, 4, 5))) void figure(const struct server *server, const char *unit,
                                                  const char *value, const char *format, ...);

/* Four of these texts live at a time. */
const char *number(double value);

/* The number, or what an errno says of a case that has none. */
const char *verdict(int error, double value);

#endif
