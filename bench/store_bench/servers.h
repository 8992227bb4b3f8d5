/* SPDX-License-Identifier: Apache-2.0 */
/* servers.h - the servers of the command line: their processor time, their
 * memory, and where they and their clients run. */
#ifndef STORE_BENCH_SERVERS_H
#define STORE_BENCH_SERVERS_H

#include <netinet/in.h>
#include <sys/types.h>

#define MOST_SERVERS 8

struct server {
    const char *name;
    struct sockaddr_in address;
    pid_t pid; /* 0: not known */
};

extern struct server servers[MOST_SERVERS];
extern int server_count;
extern int quick; /* fewer rounds, fewer clients */

/* All threads of the server, user and kernel, also those that have ended. */
double cpu_seconds(const struct server *server);

/* A line of /proc/PID/status in KiB, e.g. VmRSS. */
double status_kib(const struct server *server, const char *field);

/* Returns when it needs no more processor time: it has noticed that a crowd left. */
void let_settle(const struct server *server);

/* A client and a server that share a processor wake each other at a third of the
 * price, and the scheduler keeps such a pair for seconds: a single client is
 * placed, or chance would decide who is faster. */
enum place { ANYWHERE, FIRST, LAST };

void place_all(enum place client, enum place all_servers);

#endif
