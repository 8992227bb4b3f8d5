/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNTIME_DESCRIPTORS_H
#define RUNTIME_DESCRIPTORS_H

#include <stdint.h>

#include "runtime/error.h"

/* At most 128 in one message, or all in as many as it takes.  Both sides give
 * the same count; what arrives is CLOEXEC and the receiver's. */
ct_status send_fds(int socket, const int *fds, int count);
ct_status recv_fds(int socket, int *fds, int count, int64_t deadline);
ct_status send_all_fds(int socket, const int *fds, int count);
ct_status recv_all_fds(int socket, int *fds, int count, int64_t deadline);

#endif
