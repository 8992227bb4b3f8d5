/* SPDX-License-Identifier: Apache-2.0 */
/* fd_passing.h - passing descriptors over a unix socket. */
#ifndef RUNTIME_NET_FD_PASSING_H
#define RUNTIME_NET_FD_PASSING_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/util/error.h"

/* Send and receive at most 128 descriptors; both sides pass the same count.  The receiver owns the
 * descriptors that arrive, which are CLOEXEC.
 *
 * The kernel limits how many descriptors of a user may be in flight, in all programs together
 * (RLIMIT_NOFILE).  Beyond this limit the sender retries until half of the time before the deadline
 * is over, but for at most 10 s.  Then both sides return CT_ERR_UNSUPPORTED, and the connection can
 * still be used. */
ct_status send_fds(int socket, const int *fds, int count, int64_t deadline);
ct_status recv_fds(int socket, int *fds, int count, int64_t deadline);

/* Writes a text such as "ulimit -n is 1024", for error messages, and returns it. */
const char *descriptor_limit(char *text, size_t size);

#endif
