/* SPDX-License-Identifier: Apache-2.0 */
/* hosts_node.h - CT_HOSTS_NODE, the variable in which ctrun --hosts passes settings of the job to
 * each ctrun that it starts on a host. */
#ifndef CONFIG_VALUES_HOSTS_NODE_H
#define CONFIG_VALUES_HOSTS_NODE_H

#include <stddef.h>

#define HOSTS_NODE_VARIABLE "CT_HOSTS_NODE"
#define HOSTS_NAMES_VARIABLE "CT_HOSTS_NAMES" /* hosts of all nodes, separated by commas */
#define HOSTS_NAMES_MOST 65536                /* bytes; a longer list of names is not passed on */
/* A relay that loses the connection to the ctrun of --hosts sends SIGTERM with this value to the
 * node's ctrun (sigqueue()). */
#define HOSTS_CONNECTION_LOST 1

struct hosts_node {
    int nodes, node; /* number of nodes of the job; number of this node, from 0 */
    char head[256];  /* host of node 0 */
    int port;        /* port on which node 0 listens; 0 on node 0, which chooses a port */
    int workers;     /* workers of this node, from the list of hosts; 0 if not given */
    char run_id[64]; /* without blanks */
    int port_fd;     /* descriptor to which node 0 writes its port; -1 on other nodes */
    int terminals;   /* 1 if the user's stdout is a terminal, plus 2 if stderr is a terminal */
};

/* Write the variable's value, and read it.  hosts_node_read() returns 0, or -1 if the text is not a
 * value of the variable. */
void hosts_node_print(const struct hosts_node *node, char *text, size_t size);
int hosts_node_read(struct hosts_node *node, const char *text);

#endif
