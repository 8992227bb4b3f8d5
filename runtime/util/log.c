/* SPDX-License-Identifier: Apache-2.0 */
/* log.c - writes lines to stderr, with the process's name in front. */
#include "runtime/util/log.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "runtime/util/clock.h"

static const char *const names[] = { "none", "waits", "error", "warn", "info", "debug" };
static _Atomic int threshold = -1; /* the last level that is written; -1 until CT_LOG is read */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char speaker[32] = "ct"; /* the prefix of each line, guarded by lock */
static char fault[1200];        /* the newest text of LOG_ERROR, guarded by lock */
static struct {                 /* guarded by lock; write is NULL while lines go to stderr */
    void (*write)(void *arg, const char *line, size_t size);
    void *arg;
} diverted;

static int level_from_environment(int unless_set)
{
    const char *word = getenv("CT_LOG");

    for (int i = 0; word && i < (int)(sizeof names / sizeof *names); i++)
        if (!strcasecmp(word, names[i]))
            return i;
    return unless_set;
}

ct_status log_check(void)
{
    const char *word = getenv("CT_LOG");

    return !word || !*word || level_from_environment(-1) >= 0
               ? CT_OK
               : ct_fail(CT_ERR_INVALID,
                         "CT_LOG=%.60s is not a level; use none, waits, error, warn, info or debug",
                         word);
}

void log_setup(const char *who, enum log_level unless_set)
{
    atomic_store(&threshold, level_from_environment((int)unless_set));
    if (*who) {
        pthread_mutex_lock(&lock);
        snprintf(speaker, sizeof speaker, "%s", who);
        pthread_mutex_unlock(&lock);
    }
}

void log_divert(void (*write)(void *arg, const char *line, size_t size), void *arg)
{
    pthread_mutex_lock(&lock);
    diverted.write = write;
    diverted.arg = arg;
    pthread_mutex_unlock(&lock);
}

static void write_all(const char *text, size_t size)
{
    while (size > 0) {
        const ssize_t wrote = write(STDERR_FILENO, text, size);

        if (wrote < 0 && errno == EAGAIN) /* another program made the terminal non-blocking */
            poll(&(struct pollfd){ STDERR_FILENO, POLLOUT, 0 }, 1, -1);
        else if (wrote < 0 && errno != EINTR)
            return; /* stderr is closed */
        text += wrote > 0 ? wrote : 0;
        size -= wrote > 0 ? (size_t)wrote : 0;
    }
}

void log_text(const char *text, size_t size)
{
    void (*elsewhere)(void *arg, const char *line, size_t size);
    void *arg;

    pthread_mutex_lock(&lock);
    elsewhere = diverted.write;
    arg = diverted.arg;
    pthread_mutex_unlock(&lock);
    if (elsewhere)
        elsewhere(arg, text, size);
    else
        write_all(text, size);
}

int log_wants(enum log_level level)
{
    if (atomic_load_explicit(&threshold, memory_order_relaxed) < 0)
        atomic_store(&threshold, level_from_environment(LOG_WAITS));
    return (int)level <= atomic_load_explicit(&threshold, memory_order_relaxed);
}

void log_line(enum log_level level, const char *format, ...)
{
    char line[1200];
    int used, more;
    va_list args;

    if (level == LOG_ERROR) {
        pthread_mutex_lock(&lock);
        va_start(args, format);
        vsnprintf(fault, sizeof fault, format, args);
        va_end(args);
        pthread_mutex_unlock(&lock);
    }
    if (!log_wants(level))
        return;
    pthread_mutex_lock(&lock);
    used = snprintf(line, sizeof line, "%s: ", speaker);
    pthread_mutex_unlock(&lock);
    va_start(args, format);
    more = vsnprintf(line + used, sizeof line - (size_t)used - 1, format, args);
    va_end(args);
    used += more < (int)sizeof line - used - 1 ? more : (int)sizeof line - used - 2;
    line[used++] = '\n';
    log_text(line, (size_t)used);
}

void log_missing(atomic_flag *said, const char *call, const char *instead)
{
    const int cause = errno;

    if (!atomic_flag_test_and_set(said))
        log_line(LOG_INFO, "%s fails here (%s): %s", call, strerror(cause), instead);
    errno = cause;
}

struct long_wait long_wait_begin(void)
{
    return (struct long_wait){ .since = clock_ms() };
}

int long_wait_is_due(struct long_wait *wait)
{
    if (wait->said || clock_ms() - wait->since < LONG_WAIT_MS)
        return 0;
    wait->said = 1;
    return 1;
}

void log_last_error(char *text, size_t size)
{
    pthread_mutex_lock(&lock);
    snprintf(text, size, "%s", fault);
    pthread_mutex_unlock(&lock);
}
