/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNTIME_NET_SOCKET_H
#define RUNTIME_NET_SOCKET_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "runtime/util/error.h"

/* All sockets are CLOEXEC; TCP ones NODELAY.  host may be a name, an IPv4 or an
 * IPv6 literal with or without brackets.  No reverse look-up anywhere. */

/* Listens on host (NULL: all interfaces, one dual-stack socket where IPv6 is
 * there) and port (0: the kernel's choice, see socket_port()).  A port in use
 * is named with the process that holds it. */
ct_status socket_listen(const char *host, int port, int *fd);
int socket_port(int fd);        /* a TCP socket's own port */
int socket_stays_here(int fd);  /* a TCP connection: do both ends have the same address? */
int socket_is_loopback(int fd); /* is its own address one that only this host reaches? */

/* Connects by the deadline, trying each address of the name; a refused
 * connection is retried (10 ms, growing to 500 ms), since the peer may not be
 * up yet.  The sentence says host, port, the last cause and how long. */
ct_status socket_connect(const char *host, int port, int64_t deadline, int *fd);

/* The same, but each address is tried once: for who was listening before and is
 * not coming back.  CT_ERR_PEER. */
ct_status socket_connect_once(const char *host, int port, int64_t deadline, int *fd);

/* Without waiting: the socket does not block, and may be connected only later, or never; each
 * address of the name is tried once.  CT_ERR_PEER.  Who is connected must ask whether to itself. */
ct_status socket_connect_begin(const char *host, int port, int *fd);
int socket_meets_itself(int fd);

/* The same on a unix socket in the abstract name space (no file; gone with its
 * last descriptor).  name NULL: the kernel invents one, see socket_unix_name(). */
ct_status socket_listen_unix(const char *name, int *fd);
ct_status socket_connect_unix(const char *name, int64_t deadline, int *fd);
ct_status socket_unix_name(int fd, char *name, size_t size);
ct_status socket_peer(int fd, pid_t *pid, uid_t *uid); /* of a unix connection, by the kernel */

/* accept4() with CLOEXEC (and NODELAY on TCP), waiting until the deadline. */
ct_status socket_accept(int listener, int64_t deadline, int *fd);

/* Blocking or not, all bytes or a failure; EOF and reset are CT_ERR_PEER. */
ct_status socket_write_all(int fd, const void *data, size_t bytes, int64_t deadline);
ct_status socket_read_all(int fd, void *data, size_t bytes, int64_t deadline);

/* A small message does not wait until the one before it is acknowledged, which takes up to 40 ms:
 * as on all that this header's functions connect and accept. */
void socket_nodelay(int fd);
/* A host at the other end that vanishes without a word breaks the connection within
 * some 6 seconds, whether we send or wait. */
void socket_notice_silence(int fd);
/* The same while we wait; bytes that it does not take may lie as long as it likes. */
void socket_notice_absence(int fd);
void socket_give_up_after(int fd, int unanswered_ms); /* of what we send; 0: the kernel's limit */
/* Of a rank to a rank: the same within HOST_LOST_MS of silence, so that a machine that is moved or
 * a switch that starts again ends no job.  A peer that reads nothing for hours is not silent, its
 * kernel answers; the kernel's own limit on unanswered bytes would end that connection, too. */
#define HOST_LOST_MS 15000
void socket_notice_lost_host(int fd);
/* Bytes lie there unanswered, and nothing at all came from that host for so long. */
int socket_host_is_lost(int fd);

/* The literal address (no brackets) of this or the other end of a TCP socket. */
ct_status socket_local_address(int fd, char *host, size_t size);

/* "pid 1234 (nginx)" for who listens on a TCP port of this host; "" when it can't be seen. */
void socket_port_owner(int port, char *text, size_t size);

#endif
