/* SPDX-License-Identifier: Apache-2.0 */
/* peer_cards.h - what a rank says of itself before anybody knows it, and what all make of it. */
#ifndef RUNTIME_BOOTSTRAP_PEER_CARDS_H
#define RUNTIME_BOOTSTRAP_PEER_CARDS_H

#include "runtime/transport/mesh.h"

struct card {
    uint32_t version;
    uint32_t uid;
    char machine[72]; /* boot id, network name space and card: who may share memory */
    char host[64];    /* for messages */
    uint64_t pid_space;
    int32_t pid;
    int32_t worker;      /* of ctrun's job; -1: there is no ctrun */
    char generation[64]; /* of that job */
    char link[12];       /* CT_LINK */
    char order[12];      /* CT_ORDER */
    char door[64];
    unsigned char token[16]; /* rank 0's counts */
};

ct_status card_fill(struct card *card, const struct mesh *mesh, const struct node_door *door);
/* All cards, by rank: the mesh knows its peers and its node then.  CT_ERR_MISMATCH: they can't be
 * of one mesh. */
ct_status cards_read(struct mesh *mesh, const struct card *cards);

#endif
