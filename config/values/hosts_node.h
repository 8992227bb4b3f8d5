/* SPDX-License-Identifier: Apache-2.0 */
/* hosts_node.h - CT_HOSTS_NODE: what ctrun --hosts says to each ctrun that it has started on a
 * host.
 */
#ifndef CONFIG_VALUES_HOSTS_NODE_H
#define CONFIG_VALUES_HOSTS_NODE_H

#include <stddef.h>

#define HOSTS_NODE_VARIABLE "CT_HOSTS_NODE"
#define HOSTS_NAMES_VARIABLE "CT_HOSTS_NAMES" /* of all nodes, separated by commas */
#define HOSTS_NAMES_MOST 65536                /* bytes; a longer list is not passed on */
/* A relay that loses the connection to the ctrun of --hosts sends SIGTERM with this value
 * (sigqueue()). */
#define HOSTS_CONNECTION_LOST 1

struct hosts_node {
    int nodes, node; /* of the job, and which one this is */
    char head[256];  /* node 0's host */
    int port;        /* where node 0 listens; 0 for itself, which chooses one */
    int workers;     /* of this node, as the list of hosts has it; 0: not said */
    char run_id[64]; /* without blanks */
    int port_fd;     /* where node 0 writes its port; -1: nowhere */
    int terminals;   /* bits 1 and 2: the user's standard output and error are terminals */
};

/* The variable's value, and back.  -1: it is none. */
void hosts_node_print(const struct hosts_node *node, char *text, size_t size);
int hosts_node_read(struct hosts_node *node, const char *text);

#endif
