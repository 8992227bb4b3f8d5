/* SPDX-License-Identifier: Apache-2.0 */
/* modes.h - a mode is one file and one row in main.c; floor is the server that
 * some of them are measured against as well. */
#ifndef STORE_BENCH_MODES_H
#define STORE_BENCH_MODES_H

void memory(void);
void latency(void);
void throughput(void);
void rendezvous(void);
void many_keys(void);
void big_values(void);

/* Writes its address and port to the file and serves until it is killed. */
_Noreturn void floor_server(const char *path);

#endif
