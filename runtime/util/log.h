/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNTIME_UTIL_LOG_H
#define RUNTIME_UTIL_LOG_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/util/error.h"

/* CT_LOG=none|waits|error|warn|info|debug; unset: waits.  ctrun sets its own default. */
enum log_level { LOG_NONE, LOG_WAITS, LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

/* CT_ERR_INVALID: CT_LOG is none of these words. */
ct_status log_check(void);

/* who: the prefix of each line ("ctrun", "rank 3"; empty: "ct").  unless_set: the level if CT_LOG
 * is unset. */
void log_setup(const char *who, enum log_level unless_set);

/* From now on write() gets the lines instead of stderr, for a program that writes other things
 * there, too.  NULL: no more.  Several threads may call it at the same time. */
void log_divert(void (*write)(void *arg, const char *line, size_t size), void *arg);

/* More text of the line before, at any level. */
void log_text(const char *text, size_t size);

int log_wants(enum log_level level); /* lines of this level are written */

/* One line on stderr in one write: "who: text".  A newline is added. */
void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A wait for other processes.  After LONG_WAIT_MS a line (LOG_WAITS) says what it waits for and
 * what would help. */
#define LONG_WAIT_MS 5000
struct long_wait {
    int64_t since; /* clock_ms() */
    int said;
};
#define WAITS_FOR_RANKS "waiting %d s for all ranks of the launcher to call ct_init_process_group()"
struct long_wait long_wait_begin(void);
int long_wait_is_due(struct long_wait *wait); /* 1 once: the line is due */

/* The newest text of LOG_ERROR, whether it was shown or not; "": none. */
void log_last_error(char *text, size_t size);

#endif
