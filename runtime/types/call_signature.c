/* SPDX-License-Identifier: Apache-2.0 */
/* call_signature.c - writes calls, and the difference between two calls, as text. */
#include "runtime/types/call_signature.h"

#include <stdarg.h>
#include <stdio.h>

#include "runtime/types/dtype.h"

static const char *const names[] = {
#define OPERATION_NAME(name, text) [OPERATION_##name] = text,
    OPERATIONS(OPERATION_NAME)
#undef OPERATION_NAME
};

const char *operation_name(int operation)
{
    return operation >= 0 && operation < OPERATION_COUNT ? names[operation] : "?";
}

int collective_named(const char *name)
{
    for (int i = 0; i < OPERATION_COUNT; i++)
        if (operation_is_collective(i) && !strcmp(names[i], name))
            return i;
    return -1;
}

static void signature_append(char *text, size_t size, const char *format, ...)
{
    const size_t used = strlen(text);
    va_list args;

    va_start(args, format);
    vsnprintf(text + used, size - used, format, args);
    va_end(args);
}

void signature_describe(const struct signature *s, char *text, size_t size)
{
    snprintf(text, size, "%s #%llu", operation_name(s->operation), (unsigned long long)s->seq);
    if (operation_is_barrier(s->operation) || operation_is_agreement(s->operation)
        || s->dtype == DTYPE_NOT_KNOWN)
        return;
    signature_append(text, size, " (%llu %s", (unsigned long long)s->count,
                     dtype_name((ct_dtype)s->dtype));
    if (s->op >= 0)
        signature_append(text, size, ", %s", op_name(s->op));
    if (s->root >= 0)
        signature_append(text, size, ", root %d", s->root);
    if (signature_calls(s) > 0)
        signature_append(text, size, ", %u calls in one", signature_calls(s));
    if (s->algorithm & SIGNATURE_DEVICE)
        signature_append(text, size, ", device memory");
    if (s->algorithm & SIGNATURE_CAPTURED)
        signature_append(text, size, ", in a CUDA graph");
    signature_append(text, size, ")");
}

void signature_differ(const struct signature *mine, int rank, const struct signature *theirs,
                      int peer, char *text, size_t size)
{
    struct signature same = *theirs;
    char ours[128], other[128];
    const int low = rank < peer ? rank : peer, high = rank < peer ? peer : rank;

    same.history = mine->history;
    signature_describe(mine, ours, sizeof ours);
    signature_describe(theirs, other, sizeof other);
    if (!signature_equal(&same, mine) && !strcmp(ours, other))
        snprintf(text, size,
                 "ranks %d and %d were told different algorithms for %s (by CT_ALL_REDUCE or the "
                 "like, CT_TUNING, CT_NETWORK or ct_group_options.algorithms)",
                 low, high, ours);
    else if (!signature_equal(&same, mine))
        snprintf(text, size, "the ranks disagree: rank %d calls %s, rank %d calls %s", low,
                 low == rank ? ours : other, high, low == rank ? other : ours);
    else if (operation_has_counts(mine->operation) || signature_calls(mine) > 0)
        snprintf(text, size,
                 "ranks %d and %d pass different counts to %s, or made different calls before it",
                 low, high, ours);
    else if (mine->seq == 1)
        snprintf(
            text, size,
            "ranks %d and %d were told different networks (by CT_NETWORK or CT_TUNING); all ranks "
            "need the same",
            low, high);
    else
        snprintf(text, size, "ranks %d and %d both call %s, but made different calls before it",
                 low, high, ours);
}
