/* SPDX-License-Identifier: Apache-2.0 */
/* scheduler.h - ranks as coroutines of one process, and what happens at which simulated time.
 *
 * An event is a function that is called at its time, earliest first and at one time in the order in
 * which they were noted: so two runs are equal.  A rank has a clock of its own.  It runs until it
 * has to wait or to look at what others did, so its clock may be ahead of the events.  All it does
 * to others becomes events at the time of its clock.  Times are us. */
#ifndef NETWORK_SIM_SCHEDULER_H
#define NETWORK_SIM_SCHEDULER_H

#include <stdint.h>

/* 0, or -1: there is no memory for so many ranks.  Begins at time 0, with no events. */
int scheduler_open(int ranks);

/* Runs body(rank) on each rank, and what comes of it, until nothing happens any more or
 * scheduler_stop().  Returns how many ranks have not come to their end. */
int scheduler_run(void (*body)(int rank));
void scheduler_stop(void);
void scheduler_close(void); /* the memory of all runs */

double now(void);
void at_time(double us, void (*happens)(void *arg), void *arg);

/* ---- Ranks ---- */

int this_rank(void); /* the one that runs */
double clock_of(int rank);
int has_ended(int rank);

/* The rank's processor works for so long, not before `from`. */
void works(int rank, double from, double us);

/* The rank that runs waits until another event calls wake(); wake() itself runs it, so it must
 * not be called by a rank. */
void sleep_here(void);
void wake(int rank);

/* Until the events are where this rank's clock is: before it looks at what others have done. */
void sleep_until_clock(void);

#endif
