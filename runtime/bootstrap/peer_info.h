/* SPDX-License-Identifier: Apache-2.0 */
/* peer_info.h - the info that each rank publishes about itself at init, and the info that a leader
 * publishes about its host.  Every rank fills in its mesh from the infos of all ranks. */
#ifndef RUNTIME_BOOTSTRAP_PEER_INFO_H
#define RUNTIME_BOOTSTRAP_PEER_INFO_H

#include "runtime/transport/mesh.h"

#define MACHINE_TEXT 96

/* The info about a rank.  It is short, since each host reads the infos of all ranks. */
struct peer_info {
    uint32_t version;
    int32_t leader; /* the rank that leads this rank's host; host_leader.h */
    int32_t pid;
    int32_t worker;      /* the rank in ctrun's job; -1 without ctrun */
    uint64_t pid_space;  /* the pid namespace, in which alone `pid` is valid */
    uint64_t generation; /* a hash of the job's generation (CT_GENERATION) */
    uint64_t number;     /* a random number of the process, since pids are reused */
    char link[12];       /* value of CT_LINK */
    char order[12];      /* value of CT_ORDER */
    char encrypt[4];     /* value of CT_ENCRYPT */
};

/* The info about a host. */
struct host_info {
    uint32_t version;
    int32_t leader;
    char name[64];           /* for error messages */
    unsigned char token[16]; /* the mesh uses the token of rank 0's host */
};

/* The value that a leader publishes.  Other ranks publish only a struct peer_info. */
struct leader_info {
    struct peer_info peer;
    struct host_info host;
};

/* The infos of all ranks, and of all hosts in the order of their first ranks. */
struct roster {
    int size, hosts;
    struct peer_info *peers; /* [size] */
    struct host_info *host;  /* [hosts] */
};

uint64_t peer_info_number(void);    /* returns this process's peer_info.number */
uint64_t peer_info_pid_space(void); /* returns this process's peer_info.pid_space */
/* Writes a name of the kernel, the network namespace and the user.  Ranks with equal names are on
 * one host. */
void machine_name(char text[MACHINE_TEXT], const struct faults *faults);

void peer_info_fill(struct peer_info *info, const struct mesh *mesh, int leader);
ct_status host_info_fill(struct host_info *info, int leader);

/* Allocates a roster for `size` ranks and `hosts` hosts.  Call roster_free() even after a
 * failure. */
ct_status roster_alloc(struct roster *roster, int size, int hosts);
/* Adds the info that a rank has published.  The leader calls this function for all ranks in order.
 * The roster needs room for as many hosts as ranks. */
ct_status roster_add(struct roster *roster, int rank, const void *value, size_t bytes);
/* Checks that all ranks have equal settings and that each host has its leader, and puts the hosts
 * in their final order.  Called when all ranks were added. */
ct_status roster_check(const struct mesh *mesh, struct roster *roster);

/* Fills in the mesh's peers, hosts and node. */
ct_status roster_apply(struct mesh *mesh, const struct roster *roster);
void roster_free(struct roster *roster); /* a zeroed roster is fine */

#endif
