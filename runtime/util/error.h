/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNTIME_UTIL_ERROR_H
#define RUNTIME_UTIL_ERROR_H

#include "include/ct.h"

/* Records the sentence for ct_last_error() and gives status back:
 *     return ct_fail(CT_ERR_SYSTEM, "store at %s:%d: %s", host, port, strerror(errno));
 * Called once, by the function that knows; everyone above passes the status on.
 * The arguments may quote ct_last_error() itself. */
ct_status ct_fail(ct_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Puts words before the recorded sentence: "all_reduce #12 on group world: " + what was there. */
ct_status ct_fail_in(ct_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
