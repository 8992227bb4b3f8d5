/* SPDX-License-Identifier: Apache-2.0 */
/* sentences.c - see sentences.h.  Pure. */
#include "launcher/inspect/sentences.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "runtime/reduction/combine.h"
#include "runtime/types/call_signature.h"
#include "runtime/util/signal_name.h"

static size_t append(struct sentence *sentence, const char *format, va_list args)
{
    const size_t before = sentence->used, room = sizeof sentence->text - before;
    const int wrote = vsnprintf(sentence->text + before, room, format, args);

    if (wrote >= 0 && (size_t)wrote < room) {
        sentence->used += (size_t)wrote;
    } else if (room > 1) { /* what is cut off shall be seen to be */
        sentence->used = sizeof sentence->text - 4;
        while ((sentence->text[sentence->used] & 0xc0) == 0x80) /* no half character */
            sentence->used--;
        memcpy(sentence->text + sentence->used, "...", 4);
        sentence->used = sizeof sentence->text - 1;
    }
    return before < sentence->used ? before : sentence->used;
}

void say(struct sentence *sentence, const char *format, ...)
{
    va_list args;
    size_t from;

    va_start(args, format);
    from = append(sentence, format, args);
    va_end(args);
    if (!sentence->key)
        sentence->key = 1469598103934665603u;
    for (int number = 0; from < sentence->used; from++) {
        const unsigned char letter = (unsigned char)sentence->text[from];

        number = letter == '#' || (number && letter >= '0' && letter <= '9');
        if (!number || letter == '#')
            sentence->key = (sentence->key ^ letter) * 1099511628211u;
    }
}

void add(struct sentence *sentence, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    append(sentence, format, args);
    va_end(args);
}

void words_ranks(const int *ranks, int count, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "%s ", count == 1 ? "rank" : "ranks");

    for (int i = 0, last; i < count && used < size; i = last + 1) {
        const char *comma = i ? "," : "";

        for (last = i; last + 1 < count && ranks[last + 1] == ranks[last] + 1;)
            last++;
        if (used + 32 > size) { /* a list that is not a job's usual one */
            snprintf(text + used, size - used, ",...");
            return;
        }
        if (last == i)
            used += (size_t)snprintf(text + used, size - used, "%s%d", comma, ranks[i]);
        else
            used +=
                (size_t)snprintf(text + used, size - used, "%s%d-%d", comma, ranks[i], ranks[last]);
    }
}

void words_time(uint64_t ns, char *text, size_t size)
{
    const double seconds = (double)ns / 1e9;

    if (seconds < 120)
        snprintf(text, size, "%.1f s", seconds);
    else if (seconds < 7200)
        snprintf(text, size, "%.1f min", seconds / 60);
    else
        snprintf(text, size, "%.1f h", seconds / 3600);
}

void words_call(const struct call_snapshot *call, char *text, size_t size)
{
    const struct signature signature = { .seq = call->seq,
                                         .count = call->count,
                                         .operation = (uint8_t)call->operation,
                                         .dtype = (uint8_t)call->dtype,
                                         .op = (int16_t)call->op,
                                         .root = call->root };

    if (call->operation == OPERATION_SEND || call->operation == OPERATION_RECV)
        snprintf(text, size, "%s of %llu %s", operation_name(call->operation),
                 (unsigned long long)call->count, dtype_name((ct_dtype)call->dtype));
    else
        signature_describe(&signature, text, size);
}

const char *words_doing(const struct process_snapshot *process, int several)
{
    static const struct {
        const char *waits_in, *one, *some;
    } sleeps[] = {
        { "sleep", "it sleeps", "they sleep" },
        { "futex", "it waits for a thread or a lock", "they wait for threads or locks" },
        { "read", "it waits to read", "they wait to read" },
        { "write", "it waits to write", "they wait to write" },
        { "wait", "it waits for a child process", "they wait for child processes" },
        { "poll", "it waits for input", "they wait for input" },
    };

    switch (process->state) {
    case 'R':
        return several ? "they run" : "it runs";
    case 'D':
        return several ? "they hang in the kernel" : "it hangs in the kernel";
    case 'T':
        return several ? "they are stopped" : "it is stopped";
    case 't':
        return several ? "a debugger holds them" : "a debugger holds it";
    case 'S':
        for (size_t i = 0; i < sizeof sleeps / sizeof *sleeps; i++)
            if (!strcmp(sleeps[i].waits_in, process->waits_in))
                return several ? sleeps[i].some : sleeps[i].one;
        return several ? "they wait in the kernel" : "it waits in the kernel";
    }
    return several ? "they are idle" : "it is idle";
}

void words_death(const struct death_snapshot *death, char *text, size_t size)
{
    char name[32];

    if (death->how == CONTROL_HOST_LOST)
        snprintf(text, size, "was lost with its %s",
                 death->code == CONTROL_CLOSED ? "ctrun" : "host");
    else if (death->how == CLD_EXITED)
        snprintf(text, size, "exited with code %d", death->code);
    else
        snprintf(text, size, "died of %s", signal_name(death->code, name, sizeof name));
}
