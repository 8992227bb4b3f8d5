/* SPDX-License-Identifier: Apache-2.0 */
/* pmi_protocol.h - handles requests of PMI 1.1 and their replies, without sockets.
 *
 * A program linked with MPICH or a library derived from it finds the other ranks by PMI.  On the
 * descriptor PMI_FD it sends a line such as "cmd=put kvsname=k key=a value=b", and reads a line as
 * the reply.  A spawn has several lines, from "mcmd=spawn" to "endcmd". */
#ifndef LAUNCHER_PMI_PMI_PROTOCOL_H
#define LAUNCHER_PMI_PMI_PROTOCOL_H

#include "launcher/pmi/pmi_space.h"

#define PMI_LINE 4096           /* longest request, in bytes */
#define PMI_RANK_MOST (1 << 20) /* most bytes that the puts of a rank may use in a round */
#define PMI_MAPPING 512

/* The state of one round on this node. */
struct pmi_job {
    int world;     /* number of ranks on all nodes */
    int is_alone;  /* 1 if the job has only this node */
    char name[64]; /* name of the key-value space */
    char
        /* value of PMI_process_mapping, which tells the ranks which ranks share a node; "" if the
         * ranks must find this out themselves */
        mapping[PMI_MAPPING];
    struct pmi_space space;
    struct pmi_space names; /* names that publish_name requests have published */
};

struct pmi_client {
    enum { PMI_SILENT, PMI_INITIALIZED, PMI_FINALIZED } state;
    size_t put;  /* bytes that the rank's puts have used */
    int is_full; /* 1 if a put was refused, since the rank's puts were too large */
    /* in_spawn is 1 within a spawn request; `spawn` is the number of the current spawn, of `spawns`
     */
    int in_spawn, spawn, spawns;
};

struct pmi_abort {
    int code;
    char message[160]; /* "" if the abort has no message */
};

enum pmi_outcome {
    /* the request was carried out or refused, and its reply was added if it has one */
    PMI_ANSWERED,
    PMI_WAITS, /* the rank waits in the barrier, and gets its reply later */
    PMI_ABORTS,
    PMI_WRONG /* not a request */
};

/* Carries out the request in line[0..size), which must not include the newline, and adds the reply
 * to *reply.  Writes *abort only for PMI_ABORTS. */
enum pmi_outcome pmi_request(struct pmi_job *job, struct pmi_client *client, const char *line,
                             size_t size, struct text *reply, struct pmi_abort *abort);

#define PMI_BARRIER_OVER "cmd=barrier_out rc=0\n"

#endif
