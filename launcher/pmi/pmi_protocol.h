/* SPDX-License-Identifier: Apache-2.0 */
/* pmi_protocol.h - requests of PMI 1.1 and their replies, without sockets.
 *
 * A program of the MPICH family finds the other ranks by PMI: on the descriptor PMI_FD it sends a
 * line, "cmd=put kvsname=k key=a value=b", and reads a line.  A spawn has several lines, from
 * "mcmd=spawn" to "endcmd". */
#ifndef LAUNCHER_PMI_PMI_PROTOCOL_H
#define LAUNCHER_PMI_PMI_PROTOCOL_H

#include "launcher/pmi/pmi_space.h"

#define PMI_LINE 4096           /* the longest request */
#define PMI_RANK_MOST (1 << 20) /* bytes that the puts of one rank may take in a round */
#define PMI_MAPPING 512

/* The state of one round on this node. */
struct pmi_job {
    int world;     /* ranks on all nodes */
    int is_alone;  /* the job has only this node */
    char name[64]; /* of the space */
    char
        mapping[PMI_MAPPING]; /* says which ranks share a node; "": the ranks find out themselves */
    struct pmi_space space;
    struct pmi_space names; /* that publish_name has set */
};

struct pmi_client {
    enum { PMI_SILENT, PMI_INITIALIZED, PMI_FINALIZED } state;
    size_t put;                  /* bytes that its puts have used */
    int is_full;                 /* a put was refused, since the puts were too large */
    int in_spawn, spawn, spawns; /* it is within a spawn: number `spawn` of `spawns` */
};

struct pmi_abort {
    int code;
    char message[160]; /* "": none */
};

enum pmi_outcome {
    PMI_ANSWERED, /* the reply is added, if the request has one */
    PMI_WAITS,    /* in the barrier */
    PMI_ABORTS,
    PMI_WRONG /* not a request */
};

/* Takes a request without its newline.  *abort is written only for PMI_ABORTS. */
enum pmi_outcome pmi_request(struct pmi_job *job, struct pmi_client *client, const char *line,
                             size_t size, struct text *reply, struct pmi_abort *abort);

#define PMI_BARRIER_OVER "cmd=barrier_out rc=0\n"

#endif
