/* SPDX-License-Identifier: Apache-2.0 */
/* socket.h - TCP and unix sockets.  All sockets are CLOEXEC, and TCP sockets are NODELAY.  A
 * host may be a name, or an IPv4 or IPv6 literal with or without brackets.  No address is looked
 * up in reverse. */
#ifndef RUNTIME_NET_SOCKET_H
#define RUNTIME_NET_SOCKET_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "runtime/util/error.h"

/* Listens on host (NULL: all interfaces, by one dual-stack socket if there is IPv6) and port (0:
 * the kernel chooses one, see socket_port()).  If the port is in use, the error names the process
 * that has it.  If the name does not resolve, errno is ENOENT. */
ct_status socket_listen(const char *host, int port, int *fd);
int socket_port(int fd);        /* a TCP socket's own port */
int socket_stays_here(int fd);  /* 1 if both ends have the same IP address */
int socket_is_loopback(int fd); /* 1 if our end has a loopback address */

/* Connects by the deadline, trying each address of the name.  A refused connection is retried
 * after pauses that grow from 10 ms to 500 ms, since the peer may be starting.  A name that
 * does not resolve is retried for 5 minutes.  The error names the host, the port, the last
 * cause and the time. */
ct_status socket_connect(const char *host, int port, int64_t deadline, int *fd);

/* Like socket_connect(), but tries each address only once, for a peer that listened before.
 * Returns CT_ERR_PEER if no address accepts. */
ct_status socket_connect_once(const char *host, int port, int64_t deadline, int *fd);

/* Begins to connect without waiting, and tries each address of the name once.  The socket does not
 * block, and may get connected later or never.  Returns CT_ERR_PEER on failure.  Once the socket is
 * connected, the caller checks that it is not connected to itself. */
ct_status socket_connect_begin(const char *host, int port, int *fd);
int socket_is_self_connected(int fd);

/* Listens on a unix socket in the abstract name space: it needs no file and ends with its last
 * descriptor.  If name is NULL, the kernel chooses one, see socket_unix_name(). */
ct_status socket_listen_unix(const char *name, int *fd);
/* Connects to a unix socket by the deadline.  After CT_ERR_TIMEOUT, errno is that of
 * the last try. */
ct_status socket_connect_unix(const char *name, int64_t deadline, int *fd);
ct_status socket_unix_name(int fd, char *name, size_t size);
ct_status socket_peer(int fd, pid_t *pid, uid_t *uid); /* of a unix connection's other end */

/* Calls accept4() with CLOEXEC (and NODELAY on TCP), and waits until the deadline.  With deadline 0
 * it does not wait, if the listener is non-blocking, and returns CT_ERR_TIMEOUT. */
ct_status socket_accept(int listener, int64_t deadline, int *fd);

/* Read or write all bytes by the deadline, or fail, whether or not the socket blocks.  Return
 * CT_ERR_PEER at the end of the stream or a reset. */
ct_status socket_write_all(int fd, const void *data, size_t bytes, int64_t deadline);
ct_status socket_read_all(int fd, void *data, size_t bytes, int64_t deadline);

/* Sets TCP_NODELAY: a small message is sent before the previous one is acknowledged, which may take
 * 40 ms.  The functions of this header that connect and accept set it, too. */
void socket_nodelay(int fd);
/* Breaks the connection within about 6 seconds if the other host vanishes, whether we
 * send or wait. */
void socket_notice_silence(int fd);
int socket_error_is_silence(int error); /* 1 if the other host did not answer or can't be reached */
/* Breaks the connection once bytes that we sent are unanswered for this time; 0:
 * the kernel's limit. */
void socket_give_up_after(int fd, int unanswered_ms);
/* For links between ranks: breaks the connection only after HOST_LOST_MS without a packet, so
 * that a machine that is moved or a switch that restarts ends no job.  Unanswered bytes are not
 * limited: the kernel of a peer that reads nothing for hours still answers, and a limit would
 * end that connection. */
#define HOST_LOST_MS 15000
void socket_notice_lost_host(int fd);
/* Returns 1 if sent bytes are not acknowledged and no packet has come from the other host for
 * HOST_LOST_MS. */
int socket_host_is_lost(int fd);

/* Writes the literal address (without brackets) of our end of a TCP socket. */
ct_status socket_local_address(int fd, char *host, size_t size);

/* Writes the process that listens on a TCP port of this host, such as "pid 1234 (nginx)"; "" if it
 * can't be seen. */
void socket_port_owner(int port, char *text, size_t size);

#endif
