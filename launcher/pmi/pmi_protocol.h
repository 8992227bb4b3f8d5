/* SPDX-License-Identifier: Apache-2.0 */
/* pmi_protocol.h - requests of PMI 1.1 and their replies, without sockets.
 *
 * PMI is how a program of the MPICH family finds the other ranks: on the descriptor PMI_FD it sends
 * a line, "cmd=put kvsname=k key=a value=b", and reads one.  A spawn is several lines,
 * "mcmd=spawn" to "endcmd". */
#ifndef LAUNCHER_PMI_PMI_PROTOCOL_H
#define LAUNCHER_PMI_PMI_PROTOCOL_H

#include "launcher/pmi/pmi_space.h"

#define PMI_LINE 4096           /* the longest request */
#define PMI_RANK_MOST (1 << 20) /* bytes that the puts of one rank may take in a round */
#define PMI_MAPPING 512

/* Of one round, on this node. */
struct pmi_job {
    int world;     /* ranks on all nodes */
    int is_alone;  /* there is no other node */
    char name[64]; /* of the space */
    char
        mapping[PMI_MAPPING]; /* which ranks share a node; "": the ranks find that out themselves */
    struct pmi_space space;
    struct pmi_space names; /* of publish_name */
};

struct pmi_client {
    enum { PMI_SILENT, PMI_INITIALIZED, PMI_FINALIZED } state;
    size_t put;                  /* bytes that its puts took */
    int is_full;                 /* a put was refused, since they are too many */
    int in_spawn, spawn, spawns; /* it is within block number `spawn` of so many */
};

struct pmi_abort {
    int code;
    char message[160]; /* "": none */
};

enum pmi_outcome {
    PMI_ANSWERED, /* the reply is added, if there is one */
    PMI_WAITS,    /* in the barrier */
    PMI_ABORTS,
    PMI_WRONG /* it is no request */
};

/* Takes a request without its newline.  *abort is written for PMI_ABORTS only. */
enum pmi_outcome pmi_request(struct pmi_job *job, struct pmi_client *client, const char *line,
                             size_t size, struct text *reply, struct pmi_abort *abort);

#define PMI_BARRIER_OVER "cmd=barrier_out rc=0\n"

#endif
