/* SPDX-License-Identifier: Apache-2.0 */
/* socket_internal.h - what the files of sockets share: socket.c moves blocks, socket_address.c
 * knows names and ends, socket_listen.c and socket_connect.c make connections. */
#ifndef RUNTIME_NET_SOCKET_INTERNAL_H
#define RUNTIME_NET_SOCKET_INTERNAL_H

#include <netdb.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

/* ---- socket_address.c ------------------------------------------------------- */

/* 0, and the list is owed a freeaddrinfo(); else an error of getaddrinfo(). */
int address_of_name(const char *host, int port, struct addrinfo **list);

/* In the abstract name space; a name NULL or "" leaves it to the kernel.  Gives the length. */
socklen_t address_of_unix(const char *name, struct sockaddr_un *address);
int unix_name_fits(const char *name);

/* ---- socket.c --------------------------------------------------------------- */

/* 1: ready; 0: the deadline passed. */
int socket_wait(int fd, short events, int64_t deadline);

#endif
