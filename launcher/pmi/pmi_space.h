/* SPDX-License-Identifier: Apache-2.0 */
/* pmi_space.h - the keys and values that the ranks of one round publish for each other by PMI.
 *
 * Each node has a copy.  What its own ranks put is fresh until the next barrier, at which the nodes
 * exchange it as text: "key value" and a newline for each. */
#ifndef LAUNCHER_PMI_PMI_SPACE_H
#define LAUNCHER_PMI_PMI_SPACE_H

#include "runtime/store/engine/hash_map.h"
#include "runtime/util/text.h"

#define PMI_KEY_MOST 64     /* with its end */
#define PMI_VALUE_MOST 1024 /* with its end */

struct pmi_space {
    struct budget budget;
    struct map map;
    struct text fresh; /* since the last barrier */
    int is_shared;     /* with other nodes: fresh is kept */
};

int pmi_space_open(struct pmi_space *space, int is_shared); /* -1: out of memory */
void pmi_space_close(struct pmi_space *space);

/* A put of a rank of this node; the last one of a key counts.  -1: out of memory. */
int pmi_space_put(struct pmi_space *space, struct bytes key, struct bytes value);
/* Its data is NULL if no rank has put it. */
struct bytes pmi_space_get(const struct pmi_space *space, struct bytes key);
void pmi_space_remove(struct pmi_space *space, struct bytes key);

/* What another node sent.  -1: it is no such text, or there is no memory. */
int pmi_space_merge(struct pmi_space *space, const char *text, size_t bytes);

#endif
