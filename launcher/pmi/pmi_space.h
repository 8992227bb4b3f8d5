/* SPDX-License-Identifier: Apache-2.0 */
/* pmi_space.h - stores the keys and values that the ranks of a round exchange by PMI.
 *
 * Each node has a copy.  Puts of a node's own ranks are called fresh until the next barrier.  At
 * the barrier the nodes exchange their fresh puts as text, with a line "key value" for each put. */
#ifndef LAUNCHER_PMI_PMI_SPACE_H
#define LAUNCHER_PMI_PMI_SPACE_H

#include "runtime/store/engine/hash_map.h"
#include "runtime/util/text.h"

#define PMI_KEY_MOST 64     /* most bytes of a key, including the terminating null byte */
#define PMI_VALUE_MOST 1024 /* most bytes of a value, including the terminating null byte */

struct pmi_space {
    struct budget budget;
    struct map map;
    /* this node's puts since the last barrier, as text; empty if is_shared is 0 */
    struct text fresh;
    int is_shared; /* 1 if there are other nodes, so that fresh puts are collected */
};

/* Opens an empty space.  Returns 0, or -1 if memory is exhausted. */
int pmi_space_open(struct pmi_space *space, int is_shared);
void pmi_space_close(struct pmi_space *space);

/* Stores a put of a rank of this node, which replaces an earlier value.  Returns 0, or -1 if memory
 * is exhausted. */
int pmi_space_put(struct pmi_space *space, struct bytes key, struct bytes value);
/* Returns the value of the key; data is NULL if no rank has put the key. */
struct bytes pmi_space_get(const struct pmi_space *space, struct bytes key);
void pmi_space_remove(struct pmi_space *space, struct bytes key);

/* Adds the puts of another node.  Returns 0, or -1 if the text is not valid or memory is exhausted.
 */
int pmi_space_merge(struct pmi_space *space, const char *text, size_t bytes);

#endif
