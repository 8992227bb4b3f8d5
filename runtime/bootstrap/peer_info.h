/* SPDX-License-Identifier: Apache-2.0 */
/* peer_info.h - the info that a rank publishes about itself at init, that a host's leader publishes
 * about the host, and that every rank derives from the infos of all ranks. */
#ifndef RUNTIME_BOOTSTRAP_PEER_INFO_H
#define RUNTIME_BOOTSTRAP_PEER_INFO_H

#include "runtime/transport/mesh.h"

#define MACHINE_TEXT 96

/* One for each rank, so it is kept short. */
struct peer_info {
    uint32_t version;
    int32_t leader; /* the rank that leads its host; host_leader.h */
    int32_t pid;
    int32_t worker;      /* number in ctrun's job; -1: there is no ctrun */
    uint64_t pid_space;  /* pid name space; `pid` is valid only there */
    uint64_t generation; /* a hash of the job's generation */
    uint64_t number;     /* of the process; random, so that each process has a different one */
    char link[12];       /* CT_LINK */
    char order[12];      /* CT_ORDER */
    char encrypt[4];     /* CT_ENCRYPT */
};

/* One for each host. */
struct host_info {
    uint32_t version;
    int32_t leader;
    char name[64];           /* for messages */
    unsigned char token[16]; /* the mesh uses the token of rank 0's host */
};

/* A leader publishes both. */
struct leader_info {
    struct peer_info peer;
    struct host_info host;
};

/* The infos of all ranks, and of the hosts in the order in which the ranks first name them. */
struct roster {
    int size, hosts;
    struct peer_info *peers; /* [size] */
    struct host_info *host;  /* [hosts] */
};

uint64_t peer_info_number(void);    /* peer_info.number */
uint64_t peer_info_pid_space(void); /* peer_info.pid_space */
/* Names the kernel, the network name space and the user.  Ranks with equal names are on one
 * host. */
void machine_name(char text[MACHINE_TEXT], const struct faults *faults);

void peer_info_fill(struct peer_info *info, const struct mesh *mesh, int leader);
ct_status host_info_fill(struct host_info *info, int leader);

/* Makes room for `size` ranks and `hosts` hosts.  Call roster_free() even if it fails. */
ct_status roster_alloc(struct roster *roster, int size, int hosts);
/* Adds what a rank has published.  The leader calls it for all ranks in order; the roster needs
 * room for as many hosts as ranks.
 * */
ct_status roster_add(struct roster *roster, int rank, const void *value, size_t bytes);
/* Checks, when all ranks were added, that they belong to one mesh and that each host has its
 * leader. */
ct_status roster_check(const struct mesh *mesh, struct roster *roster);

/* Fills in the mesh's peers, hosts and node. */
ct_status roster_apply(struct mesh *mesh, const struct roster *roster);
void roster_free(struct roster *roster); /* zeroed is fine */

#endif
