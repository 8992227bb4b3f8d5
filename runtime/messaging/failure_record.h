/* SPDX-License-Identifier: Apache-2.0 */
/* failure_record.h - the failure of a group, as ranks pass it on to each other.
 *
 * A mismatch is a mismatch on all ranks.  Any other failure of one rank is CT_ERR_PEER on the
 * others, who quote its sentence. */
#ifndef RUNTIME_MESSAGING_FAILURE_RECORD_H
#define RUNTIME_MESSAGING_FAILURE_RECORD_H

#include <stdint.h>

#include "runtime/util/error.h"

#define FAILURE_WORDS 512 /* with the 0 at the end */

struct mesh;

struct group_failure {
    uint64_t from_call; /* this call and all later ones fail; earlier ones can still succeed */
    int32_t status;     /* on the rank that failed first */
    int32_t rank;       /* which rank that is, in the mesh */
    char words[FAILURE_WORDS];
};

/* A failure of this rank, in the words of ct_last_error(). */
struct group_failure failure_here(const struct mesh *mesh, ct_status status, uint64_t from_call);

/* The status that calls of this rank return; failure_quote() also sets ct_last_error(). */
ct_status failure_status(const struct mesh *mesh, const struct group_failure *failure);
ct_status failure_quote(const struct mesh *mesh, const struct group_failure *failure);

#endif
