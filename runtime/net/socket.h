/* SPDX-License-Identifier: Apache-2.0 */
/* socket.h - TCP and unix sockets.  All are CLOEXEC, TCP ones NODELAY.  host may be a name, an IPv4
 * or an IPv6 literal with or without brackets.  No address is looked up in reverse. */
#ifndef RUNTIME_NET_SOCKET_H
#define RUNTIME_NET_SOCKET_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "runtime/util/error.h"

/* Listens on host (NULL: all interfaces, one dual-stack socket where there is IPv6) and port (0:
 * the kernel chooses, see socket_port()).  If the port is in use, the error names the process that
 * has it; if the name does not resolve, errno is ENOENT. */
ct_status socket_listen(const char *host, int port, int *fd);
int socket_port(int fd);        /* a TCP socket's own port */
int socket_stays_here(int fd);  /* both ends of a TCP connection have the same address */
int socket_is_loopback(int fd); /* its own address is one of the loopback */

/* Connects by the deadline and tries each address of the name.  A refused connection is retried
 * (after 10 ms, growing to 500 ms), since the peer may be starting, and so is a name that does not
 * resolve, for 5 minutes.  The error names host, port, the last cause and the time. */
ct_status socket_connect(const char *host, int port, int64_t deadline, int *fd);

/* The same, but each address is tried once: for a peer that listened before.  CT_ERR_PEER. */
ct_status socket_connect_once(const char *host, int port, int64_t deadline, int *fd);

/* Without waiting: the socket does not block, and may be connected only later, or never; each
 * address of the name is tried once.  CT_ERR_PEER.  Once
 * it is connected, the caller checks that it is not connected to itself. */
ct_status socket_connect_begin(const char *host, int port, int *fd);
int socket_is_self_connected(int fd);

/* The same on a unix socket in the abstract name space (no file; it ends with its last descriptor).
 * name NULL: the kernel chooses one, see socket_unix_name(). */
ct_status socket_listen_unix(const char *name, int *fd);
/* CT_ERR_TIMEOUT: errno is that of the last try. */
ct_status socket_connect_unix(const char *name, int64_t deadline, int *fd);
ct_status socket_unix_name(int fd, char *name, size_t size);
ct_status socket_peer(int fd, pid_t *pid, uid_t *uid); /* the other end of a unix connection */

/* accept4() with CLOEXEC (and NODELAY on TCP), waiting until the deadline. */
ct_status socket_accept(int listener, int64_t deadline, int *fd);

/* Blocking or not, all bytes or a failure; EOF and reset are CT_ERR_PEER. */
ct_status socket_write_all(int fd, const void *data, size_t bytes, int64_t deadline);
ct_status socket_read_all(int fd, void *data, size_t bytes, int64_t deadline);

/* A small message is sent before the one before it is acknowledged, which may take 40 ms.  Sockets
 * that this header's functions connect and accept have it. */
void socket_nodelay(int fd);
/* If the other host vanishes, the connection breaks within some 6 seconds, whether we send or wait.
 */
void socket_notice_silence(int fd);
int socket_error_is_silence(int error); /* the other host did not answer, or can't be reached */
void socket_give_up_after(int fd, int unanswered_ms); /* of what we send; 0: the kernel's limit */
/* For links between ranks: the same after HOST_LOST_MS without a packet, so that a machine that is
 * moved or a switch that restarts ends no job.  The kernel of a peer that reads nothing for hours
 * still answers; a limit on unanswered bytes would end that connection, too. */
#define HOST_LOST_MS 15000
void socket_notice_lost_host(int fd);
/* Bytes are unanswered, and no packet came from that host for HOST_LOST_MS. */
int socket_host_is_lost(int fd);

/* The literal address (no brackets) of this or the other end of a TCP socket. */
ct_status socket_local_address(int fd, char *host, size_t size);

/* "pid 1234 (nginx)": the process that listens on a TCP port of this host; "": it can't be seen. */
void socket_port_owner(int port, char *text, size_t size);

#endif
