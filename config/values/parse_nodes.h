/* SPDX-License-Identifier: Apache-2.0 */
/* parse_nodes.h - the number of nodes, and the endpoint and settings of their rendezvous. */
#ifndef CONFIG_VALUES_PARSE_NODES_H
#define CONFIG_VALUES_PARSE_NODES_H

#include "config/values/parse_number.h"

struct nodes_range {
    int min, max;
};

/* --rdzv-conf, seconds where nothing else is said; torchrun's names and defaults. */
struct rdzv_conf {
    int join_timeout, last_call_timeout;
    int keep_alive_interval, keep_alive_max_attempt;
    int keep_alive_given; /* one of these two was given */
    int unread;           /* a key of torchrun that ctrun ignores was given */
    int timeout;          /* for all nodes of a static job */
    char no_timeout[128]; /* why it is wrong, which matters in a static job only; "": it is right */
    int is_host;          /* -1: find out */
    int in_a_file;        /* store_type=file: the endpoint is a path */
    unsigned given;       /* bits of the rows of keys: for rdzv_conf_idle() */
    char unknown[64];     /* the first unknown key; "": none */
    const char *meant;    /* the key nearest to it, or NULL */
};

/* host[:port] of --rdzv-endpoint. */
struct rdzv_endpoint {
    char host[256]; /* without brackets; "localhost" if the text is empty */
    int port;       /* -1: none was given */
};

value_parser parse_nnodes;    /* struct nodes_range */
value_parser parse_rdzv_conf; /* struct rdzv_conf */

/* The first given key that this kind of rendezvous does not read; NULL: there is none. */
const char *rdzv_conf_idle(const struct rdzv_conf *conf, int dynamic);

/* Not a row's parser: with --standalone the endpoint is not read. */
int endpoint_parse(const char *text, struct rdzv_endpoint *endpoint, struct why *why);

#endif
