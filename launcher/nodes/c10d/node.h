/* SPDX-License-Identifier: Apache-2.0 */
/* node.h - who an agent is: the same three things on every wire and in every order. */
#ifndef LAUNCHER_NODES_C10D_NODE_H
#define LAUNCHER_NODES_C10D_NODE_H

#include <stddef.h>
#include <stdint.h>

struct c10d_node {
    const char *addr;      /* UTF-8; whose memory it is, the holder says */
    int64_t pid, local_id; /* local_id tells the agents of one process apart */
};

/* The order that identity has: code points, which is the bytes of UTF-8, then the numbers. */
int c10d_node_compare(const struct c10d_node *a, const struct c10d_node *b);
/* The order that people expect: node2 before node10.  0 only for the same node. */
int c10d_node_natural(const struct c10d_node *a, const struct c10d_node *b);

/* A copy that owns its addr (free(3) it); -1: no memory. */
int c10d_node_copy(struct c10d_node *to, const struct c10d_node *from);

#endif
