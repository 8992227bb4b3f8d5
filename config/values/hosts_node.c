/* SPDX-License-Identifier: Apache-2.0 */
/* hosts_node.c - writes and reads the value of CT_HOSTS_NODE, which has the fields of struct
 * hosts_node in order, with blanks between them. */
#include "config/values/hosts_node.h"

#include <stdio.h>

void hosts_node_print(const struct hosts_node *n, char *text, size_t size)
{
    snprintf(text, size, "%d %d %s %d %d %s %d %d", n->nodes, n->node, n->head, n->port, n->workers,
             n->run_id, n->port_fd, n->terminals);
}

int hosts_node_read(struct hosts_node *n, const char *text)
{
    int end = 0;

    *n = (struct hosts_node){ 0 };
    return sscanf(text, "%9d %9d %255s %9d %9d %63s %9d %9d%n", &n->nodes, &n->node, n->head,
                  &n->port, &n->workers, n->run_id, &n->port_fd, &n->terminals,
                  &end) == 8
                   && !text[end] && n->nodes > 0 && n->node >= 0 && n->node < n->nodes
                   && n->workers >= 0 && n->port >= 0 && n->port <= 65535
               ? 0
               : -1;
}
