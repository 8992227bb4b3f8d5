/* SPDX-License-Identifier: Apache-2.0 */
/* peer_info.h - what a rank publishes about itself at init, and what it derives from that of all
 * ranks. */
#ifndef RUNTIME_BOOTSTRAP_PEER_INFO_H
#define RUNTIME_BOOTSTRAP_PEER_INFO_H

#include "runtime/transport/mesh.h"

struct peer_info {
    uint32_t version;
    uint32_t uid;
    char machine[72]; /* boot id, network name space, hardware address: ranks that may share memory
                       */
    char host[64];    /* for messages */
    uint64_t pid_space;
    int32_t pid;
    int32_t worker;          /* number in ctrun's job; -1: there is no ctrun */
    char generation[64];     /* of that job */
    char link[12];           /* CT_LINK */
    char order[12];          /* CT_ORDER */
    char unix_socket[64];    /* of host_segment_join.c */
    unsigned char token[16]; /* rank 0's is that of the mesh */
};

ct_status peer_info_fill(struct peer_info *info, const struct mesh *mesh,
                         const struct node_door *door);
/* infos: of all ranks, by rank.  Fills in the mesh's peers and node.  CT_ERR_MISMATCH: the ranks
 * can't be of one mesh. */
ct_status peer_info_apply(struct mesh *mesh, const struct peer_info *infos);

#endif
