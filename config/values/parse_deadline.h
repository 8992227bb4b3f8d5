/* SPDX-License-Identifier: Apache-2.0 */
/* parse_deadline.h - until when a job may run, in words: for ctrun and for libct. */
#ifndef CONFIG_VALUES_PARSE_DEADLINE_H
#define CONFIG_VALUES_PARSE_DEADLINE_H

#include <stdint.h>

/* Slurm says when it will kill a job; it should have stopped by then. */
#define DEADLINE_MARGIN 60

/* "@1763740800" or "1763740800", seconds since the epoch.  0, or -1: it is not that.  No number
 * of less than 2001 is one. */
int deadline_of_epoch(const char *text, int64_t *at);

/* That; or the next time that the clock here shows "HH:MM"; or from `now` on "90" or "90s",
 * "5m", "1h", "2d". */
int deadline_of_words(const char *text, int64_t now, int64_t *at);

#endif
