/* SPDX-License-Identifier: Apache-2.0 */
/* builtins.c - every kind of link, best first.  The one file that names them all. */
#include "runtime/link.h"

extern const struct link_ops link_shm, link_tcp;

const struct link_ops *const link_kinds[] = { &link_shm, &link_tcp, NULL };
