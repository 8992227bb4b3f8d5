/* SPDX-License-Identifier: Apache-2.0 */
/* log.h - lines on stderr, chosen by the level in CT_LOG. */
#ifndef RUNTIME_UTIL_LOG_H
#define RUNTIME_UTIL_LOG_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/util/error.h"

/* The levels that CT_LOG can name: none, waits, error, warn, info or debug.  Each level includes
 * those before it.  The default is waits, and ctrun sets its own default. */
enum log_level { LOG_NONE, LOG_WAITS, LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

/* Returns CT_ERR_INVALID if CT_LOG is set to a word that is not a level. */
ct_status log_check(void);

/* Sets the prefix of each line to `who`, such as "ctrun" or "rank 3".  An empty `who` keeps the old
 * prefix, which is "ct" at first.  unless_set is the level if CT_LOG does not name a level. */
void log_setup(const char *who, enum log_level unless_set);

/* Passes later lines to write() instead of stderr, for a program that also writes other things to
 * stderr.  If write is NULL, lines go to stderr again.  Several threads may call write() at the
 * same time. */
void log_divert(void (*write)(void *arg, const char *line, size_t size), void *arg);

/* Writes text without a prefix, at any level, to the same place as lines. */
void log_text(const char *text, size_t size);

int log_wants(enum log_level level); /* true if lines of this level are written */

/* Writes a line "who: text" with one write(), if lines of this level are written.  Adds the
 * newline. */
void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The kernel refused a system call that older kernels lack.  The first call for `said` writes a
 * line (LOG_INFO) with the call, its errno and what happens instead.  Keeps errno. */
void log_missing(atomic_flag *said, const char *call, const char *instead);

/* A wait for other processes.  When the wait has lasted LONG_WAIT_MS, the waiting function writes a
 * line (LOG_WAITS) that says why it waits and what would help. */
#define LONG_WAIT_MS 5000
struct long_wait {
    int64_t since; /* start of the wait, by clock_ms() */
    int said;
};
#define WAITS_FOR_RANKS "waiting %d s for all ranks of the launcher to call ct_init_process_group()"
struct long_wait long_wait_begin(void);
/* Returns 1 once, when the line should be written, and otherwise 0. */
int long_wait_is_due(struct long_wait *wait);

/* Copies the newest text of LOG_ERROR, whether or not its line was written.  Copies "" if no error
 * was logged. */
void log_last_error(char *text, size_t size);

#endif
