/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNTIME_UTIL_LOG_H
#define RUNTIME_UTIL_LOG_H

#include <stddef.h>

#include "runtime/util/error.h"

/* CT_LOG=error|warn|info|debug; unset: nothing.  ctrun sets its own default. */
enum log_level { LOG_NONE, LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

/* CT_ERR_INVALID: CT_LOG is none of these words. */
ct_status log_check(void);

/* who: the prefix of the lines ("ctrun", "rank 3"; empty: "ct"); the level if CT_LOG is unset. */
void log_setup(const char *who, enum log_level unless_set);

/* From now on write() gets the lines instead of stderr, for a program that writes other things
 * there, too.  NULL: no more.  Several threads may call it at the same time. */
void log_divert(void (*write)(void *arg, const char *line, size_t size), void *arg);

/* More text of the line before, at any level. */
void log_text(const char *text, size_t size);

int log_wants(enum log_level level); /* lines of this level are written */

/* One line on stderr in one write: "who: text".  A newline is added. */
void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The newest text of LOG_ERROR, whether it was shown or not; "": none. */
void log_last_error(char *text, size_t size);

#endif
