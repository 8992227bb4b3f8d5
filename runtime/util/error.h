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

/* Puts text before the recorded sentence: "all_reduce #12 on group world: " + the sentence. */
ct_status ct_fail_in(ct_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
