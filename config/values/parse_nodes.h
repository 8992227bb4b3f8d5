/* SPDX-License-Identifier: Apache-2.0 */
/* parse_nodes.h - parses the number of nodes, and the endpoint and settings of their rendezvous. */
#ifndef CONFIG_VALUES_PARSE_NODES_H
#define CONFIG_VALUES_PARSE_NODES_H

#include "config/values/parse_number.h"

struct nodes_range {
    int min, max;
};

/* The settings of --rdzv-conf, with torchrun's names and defaults.  Times are in seconds. */
struct rdzv_conf {
    int join_timeout, last_call_timeout;
    int keep_alive_interval, keep_alive_max_attempt;
    int keep_alive_given; /* true if a keep_alive_ key was given */
    int unread;           /* the value of a torchrun key that ctrun ignores */
    int timeout;          /* limit for all nodes of a static job to connect */
    /* Why the timeout is wrong, which is an error in a static job only.  "" if it is right. */
    char no_timeout[128];
    int is_host;       /* true if this node hosts the rendezvous; -1 if not given */
    int in_a_file;     /* true for store_type=file, with which the endpoint is a path */
    unsigned given;    /* bit i is set if key i was given; rdzv_conf_idle() uses it */
    char unknown[64];  /* the first unknown key, or "" */
    const char *meant; /* the known key nearest to `unknown`, or NULL */
};

/* host[:port] of --rdzv-endpoint. */
struct rdzv_endpoint {
    char host[256]; /* without brackets; "localhost" if the text is empty */
    int port;       /* -1 if no port was given */
};

value_parser parse_nnodes;    /* writes a struct nodes_range */
value_parser parse_rdzv_conf; /* writes a struct rdzv_conf */

/* Returns the first given key that this kind of rendezvous does not read, or NULL if the rendezvous
 * reads all given keys.  dynamic is 0 for a static rendezvous. */
const char *rdzv_conf_idle(const struct rdzv_conf *conf, int dynamic);

/* Parses host[:port].  Returns 0, or -1 with the reason in `why`.  This function is not the parser
 * of a row of options, since the endpoint is not read with --standalone. */
int endpoint_parse(const char *text, struct rdzv_endpoint *endpoint, struct why *why);

#endif
