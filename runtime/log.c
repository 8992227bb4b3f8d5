/* SPDX-License-Identifier: Apache-2.0 */
/* log.c - a record per line on stderr, with who speaks. */
#include "runtime/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

static const char *const names[] = { "none", "error", "warn", "info", "debug" };
static _Atomic int threshold = -1; /* -1: the environment was not looked at yet */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char speaker[32] = "ct"; /* under lock */
static char fault[1200];        /* likewise */

static int level_from_environment(int unless_set)
{
    const char *word = getenv("CT_LOG");

    for (int i = 0; word && i < (int)(sizeof names / sizeof *names); i++)
        if (!strcasecmp(word, names[i]))
            return i;
    return unless_set;
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
    if (atomic_load(&threshold) < 0)
        atomic_store(&threshold, level_from_environment(LOG_NONE));
    if ((int)level > atomic_load(&threshold))
        return;
    pthread_mutex_lock(&lock);
    used = snprintf(line, sizeof line, "%s: ", speaker);
    pthread_mutex_unlock(&lock);
    va_start(args, format);
    more = vsnprintf(line + used, sizeof line - (size_t)used - 1, format, args);
    va_end(args);
    used += more < (int)sizeof line - used - 1 ? more : (int)sizeof line - used - 2;
    line[used++] = '\n';
    if (write(STDERR_FILENO, line, (size_t)used) < 0)
        return; /* nobody listens: nothing to be done about it */
}

void log_last_error(char *text, size_t size)
{
    pthread_mutex_lock(&lock);
    snprintf(text, size, "%s", fault);
    pthread_mutex_unlock(&lock);
}
