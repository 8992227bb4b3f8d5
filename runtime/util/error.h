/* SPDX-License-Identifier: Apache-2.0 */
/* error.h - records the last error of a thread, which is one sentence and the rank that caused the
 * error. */
#ifndef RUNTIME_UTIL_ERROR_H
#define RUNTIME_UTIL_ERROR_H

#include "include/ct.h"

/* Records the sentence for ct_last_error() and returns status:
 *     return ct_fail(CT_ERR_SYSTEM, "store at %s:%d: %s", host, port, strerror(errno));
 * Only the function that finds the error calls ct_fail().  Its callers pass the status on.  The
 * arguments may quote ct_last_error(). */
ct_status ct_fail(ct_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Why another rank made a call fail.  ctrun follows these reasons from the first failed rank to the
 * root cause (docs/reliability.md). */
enum blame_reason {
    BLAME_NONE,     /* no other rank caused the failure */
    BLAME_DIED,     /* the other rank's process or host ended */
    BLAME_LEFT,     /* the other rank destroyed the group */
    BLAME_MISMATCH, /* the other rank called something different */
    BLAME_STOPPED,  /* the other rank's process is stopped */
    BLAME_LATE,     /* the other rank had not arrived when the time was over */
    BLAME_FAILED,   /* the other rank's call failed before this call began, or for its own reason */
    BLAME_REASONS
};

struct blame {
    /* The rank that caused the failure.  The function that fails defines how ranks are numbered; in
     * a group it is the rank in the mesh. */
    int32_t rank;
    int32_t reason; /* enum blame_reason */
};

/* Does the same as ct_fail() for a failure that another rank caused.  The blame is stored with the
 * sentence.  A later ct_fail() clears the blame, and ct_fail_in() keeps it. */
ct_status ct_fail_because(struct blame blame, ct_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
struct blame ct_last_blame(void);
/* Returns CT_ERR_TIMEOUT for a wait for `rank`, which gets the blame.  The recorded sentence is
 * empty, since the call that waited writes it. */
ct_status ct_fail_late(int rank);

/* Puts text such as "all_reduce #12 on group world: " before the recorded sentence.  Returns
 * status. */
ct_status ct_fail_in(ct_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
