/* SPDX-License-Identifier: Apache-2.0 */
/* parse_deadline.h - parses the value of --deadline, for ctrun and for libct. */
#ifndef CONFIG_VALUES_PARSE_DEADLINE_H
#define CONFIG_VALUES_PARSE_DEADLINE_H

#include <stdint.h>

#include "config/values/parse_number.h"

/* Slurm says when it kills a job.  The job should stop this much earlier. */
#define DEADLINE_MARGIN 60 /* seconds */

/* Returns the time at which a job that is killed at `end` should stop.  This time is
 * DEADLINE_MARGIN before `end`, but never before half of the time from `now` to `end` has passed.
 * Otherwise a short job would stop at its first step, and a job that requeues itself would do so
 * for ever. */
int64_t deadline_before(int64_t end, int64_t now);

/* Parses "@1763740800" or "1763740800", which are seconds since the epoch.  Returns 0, or -1 if the
 * text has another form.  Refuses numbers before the year 2001. */
int deadline_of_epoch(const char *text, int64_t *at);

/* Parses seconds since the epoch, as deadline_of_epoch() does.  Also parses "HH:MM", the next time
 * at which the local clock shows HH:MM, and durations from `now` on, such as "90" or "90s", "5m",
 * "1h", "2d".  Returns 0, or -1 if the text has another form. */
int deadline_of_words(const char *text, int64_t now, int64_t *at);

value_parser parse_deadline; /* writes a const char * for deadline_of_words() */

#endif
