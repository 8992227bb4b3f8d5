/* SPDX-License-Identifier: Apache-2.0 */
/* rendezvous_options.h - the rendezvous that the options choose, as in torchrun. */
#ifndef CONFIG_RENDEZVOUS_OPTIONS_H
#define CONFIG_RENDEZVOUS_OPTIONS_H

#include "config/options.h"

#define STATIC_PORT 29500 /* torchrun's default port for a fixed job */
#define C10D_PORT 29400   /* torchrun's default port for an elastic job */

struct meeting {
    enum {
        MEET_ALONE,  /* one node with any free port and its own job name */
        MEET_STATIC, /* node 0 hosts the store at host:port */
        MEET_DYNAMIC /* nodes join and leave while the job runs; torchrun's "c10d" */
    } kind;
    char host[256];      /* a name or an address; an IPv6 address has no brackets here */
    int port;            /* 0 for any free port */
    char file[512];      /* path of the FileStore of MEET_DYNAMIC; "" if nodes meet at host:port */
    int serves_only;     /* 1 if this ctrun only hosts a MEET_DYNAMIC rendezvous for other nodes */
    const char *why;     /* the reason for this choice, for --explain */
    const char *warning; /* a warning for the user, or NULL */
};

/* Chooses the rendezvous.  Returns OPTIONS_RUN, or OPTIONS_WRONG with an error message in
 * `error`. */
enum outcome options_meeting(const struct options *options, struct meeting *meeting, char *error,
                             size_t size);

#endif
