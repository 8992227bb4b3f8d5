/* SPDX-License-Identifier: Apache-2.0 */
/* modes.h - a mode is a function and a row in main.c. */
#ifndef LAUNCH_BENCH_MODES_H
#define LAUNCH_BENCH_MODES_H

struct bench;

/* start.c: until N times /bin/true are over, and until the first line of each worker's main */
void wall(struct bench *bench);
void first(struct bench *bench);

/* death.c: from the death of one to the others' SIGTERM, to the end, to the next attempt */
void death(struct bench *bench);
void restart(struct bench *bench);

/* memory.c: while all workers idle */
void memory(struct bench *bench);
void idle(struct bench *bench);

/* floor.c: what no launcher can do without */
int spawn_loop(char **words, int sessions);

#endif
