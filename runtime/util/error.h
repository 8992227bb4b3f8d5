/* SPDX-License-Identifier: Apache-2.0 */
/* error.h - how a function fails. */
#ifndef RUNTIME_UTIL_ERROR_H
#define RUNTIME_UTIL_ERROR_H

#include "include/ct.h"

/* Records the sentence for ct_last_error() and returns status:
 *     return ct_fail(CT_ERR_SYSTEM, "store at %s:%d: %s", host, port, strerror(errno));
 * Only the function that finds the error calls it; its callers pass the status on.
 * The arguments may quote ct_last_error() itself. */
ct_status ct_fail(ct_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Why a call fails because of another rank.  ctrun follows these from the first failed rank to the
 * root cause (docs/reliability.md). */
enum blame_reason {
    BLAME_NONE,     /* the failure is this rank's own */
    BLAME_DIED,     /* its process or host ended */
    BLAME_LEFT,     /* it destroyed the group */
    BLAME_MISMATCH, /* it makes a different call */
    BLAME_STOPPED,  /* its process is stopped */
    BLAME_LATE,     /* it had not come when the time was over */
    BLAME_FAILED,   /* its call failed before this one began, or for its own reason */
    BLAME_REASONS
};

struct blame {
    int32_t rank;   /* as the function that fails counts ranks; in a group: in the mesh */
    int32_t reason; /* enum blame_reason */
};

/* ct_fail() for a failure that another rank caused.  The blame belongs to the sentence:
 * ct_fail() removes it, ct_fail_in() keeps it. */
ct_status ct_fail_because(struct blame blame, ct_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
struct blame ct_last_blame(void);
/* CT_ERR_TIMEOUT of a wait for that rank, without a sentence: the call that waited adds it. */
ct_status ct_fail_late(int rank);

/* Puts text before the recorded sentence: "all_reduce #12 on group world: " + the sentence. */
ct_status ct_fail_in(ct_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
