/* SPDX-License-Identifier: Apache-2.0 */
/* rendezvous_options.h - which of torchrun's rendezvous the options choose. */
#ifndef CONFIG_RENDEZVOUS_OPTIONS_H
#define CONFIG_RENDEZVOUS_OPTIONS_H

#include "config/options.h"

#define STATIC_PORT 29500 /* torchrun's, of a fixed job */
#define C10D_PORT 29400   /* and of an elastic one */

struct meeting {
    enum {
        MEET_ALONE,  /* one node, any free port, a name of its own */
        MEET_STATIC, /* node 0 hosts the store at host:port */
        MEET_DYNAMIC /* nodes come and go; torchrun's "c10d" */
    } kind;
    char host[256];      /* without brackets */
    int port;            /* 0: any free one */
    char file[512];      /* MEET_DYNAMIC in a FileStore; "": at host:port */
    int serves_only;     /* MEET_DYNAMIC: this ctrun hosts it and has no workers */
    const char *why;     /* for --explain */
    const char *warning; /* or NULL */
};

/* OPTIONS_RUN, or the sentence is in error. */
enum outcome options_meeting(const struct options *options, struct meeting *meeting, char *error,
                             size_t size);

#endif
