/* SPDX-License-Identifier: Apache-2.0 */
/* error.c - the last error of each thread, as one sentence. */
#include "runtime/util/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char sentence[1024];
static _Thread_local struct blame blame; /* the rank that caused the error in `sentence` */

/* Formats into a copy first, since the arguments may point to the old sentence. */
static void error_set(struct blame of, const char *format, va_list args)
{
    char text[sizeof sentence];

    vsnprintf(text, sizeof text, format, args);
    memcpy(sentence, text, sizeof text);
    blame = of;
}

ct_status ct_fail(ct_status status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    error_set((struct blame){ 0 }, format, args);
    va_end(args);
    return status;
}

ct_status ct_fail_because(struct blame of, ct_status status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    error_set(of, format, args);
    va_end(args);
    return status;
}

ct_status ct_fail_late(int rank)
{
    return ct_fail_because((struct blame){ rank, BLAME_LATE }, CT_ERR_TIMEOUT, "%s", "");
}

struct blame ct_last_blame(void)
{
    return blame;
}

ct_status ct_fail_in(ct_status status, const char *format, ...)
{
    char text[sizeof sentence];
    va_list args;
    int used;

    va_start(args, format);
    used = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (used >= 0 && (size_t)used < sizeof text)
        snprintf(text + used, sizeof text - (size_t)used, "%s", sentence);
    memcpy(sentence, text, sizeof text);
    return status;
}

const char *ct_last_error(void)
{
    return sentence;
}

const char *ct_strerror(ct_status status)
{
    switch (status) {
#define CASE(name, value, text) \
    case CT_##name:             \
        return text;
        CT_STATUS_MAP(CASE)
#undef CASE
    }
    return "unknown status";
}

const char *ct_version(void)
{
    return CT_VERSION;
}
