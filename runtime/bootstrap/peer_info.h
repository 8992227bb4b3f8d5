/* SPDX-License-Identifier: Apache-2.0 */
/* peer_info.h - what a rank publishes about itself at init, what the leader of its host publishes
 * about the host, and what every rank derives from those of all. */
#ifndef RUNTIME_BOOTSTRAP_PEER_INFO_H
#define RUNTIME_BOOTSTRAP_PEER_INFO_H

#include "runtime/transport/mesh.h"

#define MACHINE_TEXT 96

/* Of each rank, so it is kept short. */
struct peer_info {
    uint32_t version;
    int32_t leader; /* the rank that leads its host; host_leader.h */
    int32_t pid;
    int32_t worker;      /* number in ctrun's job; -1: there is no ctrun */
    uint64_t pid_space;  /* its pid means the same to ranks of this name space only */
    uint64_t generation; /* a hash of that job's */
    uint64_t number;     /* of the process; random, so no other one has it */
    char link[12];       /* CT_LINK */
    char order[12];      /* CT_ORDER */
    char encrypt[4];     /* CT_ENCRYPT */
};

/* Of each host. */
struct host_info {
    uint32_t version;
    int32_t leader;
    char name[64];           /* for messages */
    unsigned char token[16]; /* that of the mesh, of the host of rank 0 */
};

/* What a leader publishes. */
struct leader_info {
    struct peer_info peer;
    struct host_info host;
};

/* Those of all ranks, and of the hosts in the order in which they first appear among them. */
struct roster {
    int size, hosts;
    struct peer_info *peers; /* [size] */
    struct host_info *host;  /* [hosts] */
};

uint64_t peer_info_number(void);    /* peer_info.number */
uint64_t peer_info_pid_space(void); /* peer_info.pid_space */
/* The kernel, its network, and the user: ranks for which it is equal are one host. */
void machine_name(char text[MACHINE_TEXT], const struct faults *faults);

void peer_info_fill(struct peer_info *info, const struct mesh *mesh, int leader);
ct_status host_info_fill(struct host_info *info, int leader);

/* hosts: room for so many.  roster_free() is owed even if it fails. */
ct_status roster_alloc(struct roster *roster, int size, int hosts);
/* For the leader, with room for a host a rank: what a rank has published; all, in order of ranks.
 */
ct_status roster_add(struct roster *roster, int rank, const void *value, size_t bytes);
/* When all were added: do they belong to one mesh, and is each host's leader there? */
ct_status roster_check(const struct mesh *mesh, struct roster *roster);

/* Fills in the mesh's peers, hosts and node. */
ct_status roster_apply(struct mesh *mesh, const struct roster *roster);
void roster_free(struct roster *roster); /* zeroed is fine */

#endif
