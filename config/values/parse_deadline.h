/* SPDX-License-Identifier: Apache-2.0 */
/* parse_deadline.h - text of --deadline, for ctrun and for libct. */
#ifndef CONFIG_VALUES_PARSE_DEADLINE_H
#define CONFIG_VALUES_PARSE_DEADLINE_H

#include <stdint.h>

#include "config/values/parse_number.h"

/* Slurm gives the time at which it kills a job; the job should stop earlier. */
#define DEADLINE_MARGIN 60 /* seconds */

/* When a job that is killed at `end` should stop: DEADLINE_MARGIN before `end`, but not before half
 * of the time that is left.  Otherwise a short job would stop at its first step, and a job that
 * requeues itself would do so for ever. */
int64_t deadline_before(int64_t end, int64_t now);

/* "@1763740800" or "1763740800", seconds since the epoch.  0, or -1: it is not that.
 * Numbers before the year 2001 are refused. */
int deadline_of_epoch(const char *text, int64_t *at);

/* The same; or "HH:MM", the next time that the local clock shows it; or a duration from `now` on:
 * "90" or "90s", "5m", "1h", "2d". */
int deadline_of_words(const char *text, int64_t now, int64_t *at);

value_parser parse_deadline; /* const char *, which deadline_of_words() reads */

#endif
