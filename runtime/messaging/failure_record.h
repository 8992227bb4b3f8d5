/* SPDX-License-Identifier: Apache-2.0 */
/* failure_record.h - that a group broke, in the words of the rank on which it broke first.
 *
 * A mismatch is one on all ranks; whatever else broke the group of one rank is the failure of
 * a peer for the others. */
#ifndef RUNTIME_MESSAGING_FAILURE_RECORD_H
#define RUNTIME_MESSAGING_FAILURE_RECORD_H

#include <stdint.h>

#include "runtime/util/error.h"

#define BREACH_WORDS 512 /* with the 0 at the end */

struct mesh;

struct breach {
    uint64_t seq;   /* the call that it broke in: earlier ones can still succeed; 0: all at once */
    int32_t status; /* on that rank */
    int32_t rank;   /* which, in the mesh */
    char words[BREACH_WORDS];
};

/* The current sentence, of this rank. */
struct breach breach_here(const struct mesh *mesh, ct_status status, uint64_t seq);

/* What it is on this rank; breach_fail() also makes it the current sentence. */
ct_status breach_status(const struct mesh *mesh, const struct breach *breach);
ct_status breach_fail(const struct mesh *mesh, const struct breach *breach);

#endif
