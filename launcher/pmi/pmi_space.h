/* SPDX-License-Identifier: Apache-2.0 */
/* pmi_space.h - keys and values that the ranks of one round give each other by PMI.
 *
 * Each node has a copy.  The puts of its own ranks are fresh until the next barrier, at which the
 * nodes exchange them as text: "key value" and a newline for each. */
#ifndef LAUNCHER_PMI_PMI_SPACE_H
#define LAUNCHER_PMI_PMI_SPACE_H

#include "runtime/store/engine/hash_map.h"
#include "runtime/util/text.h"

#define PMI_KEY_MOST 64     /* with its end */
#define PMI_VALUE_MOST 1024 /* with its end */

struct pmi_space {
    struct budget budget;
    struct map map;
    struct text fresh; /* puts since the last barrier */
    int is_shared;     /* with other nodes: fresh puts are kept */
};

int pmi_space_open(struct pmi_space *space, int is_shared); /* -1: out of memory */
void pmi_space_close(struct pmi_space *space);

/* Stores a put of a rank of this node; it replaces an earlier value.  -1: out of memory. */
int pmi_space_put(struct pmi_space *space, struct bytes key, struct bytes value);
/* Gives the value; its data is NULL if no rank has put it. */
struct bytes pmi_space_get(const struct pmi_space *space, struct bytes key);
void pmi_space_remove(struct pmi_space *space, struct bytes key);

/* Adds the puts of another node.  -1: the text is not valid, or out of memory. */
int pmi_space_merge(struct pmi_space *space, const char *text, size_t bytes);

#endif
