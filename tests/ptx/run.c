/* SPDX-License-Identifier: Apache-2.0 */
/* run.c - a launch, one thread after the other.
 *
 * Threads find in their registers what the one before left there: nothing may depend on it. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ptx/parts.h"

enum { MOST_STEPS = 1 << 26 }; /* of a thread: more is a loop that does not end */

void thread_fault(struct thread *thread, const struct instruction *i, const char *format, ...)
{
    va_list arguments;
    int length;

    thread->next = NULL;
    length =
        snprintf(thread->words, PTX_WORDS / 2,
                 "%s, thread %u of block %u, line %u of the PTX, `%.*s`: ", thread->kernel->name,
                 (unsigned)thread->slot[TID], (unsigned)thread->slot[CTAID], i->line,
                 (int)strcspn(i->text, "\n"), i->text);
    va_start(arguments, format);
    vsnprintf(thread->words + (length < PTX_WORDS / 2 ? length : PTX_WORDS / 2 - 1), PTX_WORDS / 2,
              format, arguments);
    va_end(arguments);
}

static void run_thread(struct thread *thread)
{
    const struct kernel *const kernel = thread->kernel;
    uint64_t *const slot = thread->slot;
    uint32_t steps = 0;

    thread->next = kernel->code;
    while (thread->next) {
        const struct instruction *const i = thread->next++;

        kernel->ran[i - kernel->code] = 1;
        if (++steps > MOST_STEPS)
            thread_fault(thread, i, "the thread does not end");
        else if (slot[i->guard] == i->wanted)
            i->act(thread, i);
    }
}

static struct kernel *find(const struct ptx *ptx, const char *name)
{
    for (size_t k = 0; k < ptx->count; k++)
        if (!strcmp(ptx->kernel[k].name, name))
            return &ptx->kernel[k];
    return NULL;
}

static int may_begin(const struct kernel *kernel, const struct ptx_launch *launch, char *words)
{
    words[0] = 0;
    if (!kernel)
        snprintf(words, PTX_WORDS, "the PTX has no kernel %.64s", launch->kernel);
    else if (launch->bytes != kernel->parameter_bytes)
        snprintf(words, PTX_WORDS, "%s takes %zu bytes of parameters, not %zu", kernel->name,
                 (size_t)kernel->parameter_bytes, launch->bytes);
    else if (launch->blocks < 1 || launch->threads < 1 || launch->threads > kernel->most_threads)
        snprintf(words, PTX_WORDS, "%s runs in blocks of up to %u threads, not %u blocks of %u",
                 kernel->name, kernel->most_threads, launch->blocks, launch->threads);
    return !words[0];
}

int ptx_run(struct ptx *ptx, const struct ptx_launch *launch, char *words)
{
    const struct kernel *const kernel = find(ptx, launch->kernel);
    struct thread thread = { .kernel = kernel, .launch = launch, .words = words };
    uint64_t all = (uint64_t)launch->blocks * launch->threads;

    if (!may_begin(kernel, launch, words))
        return 0;
    thread.slot = malloc(kernel->slots * sizeof *thread.slot);
    if (!thread.slot)
        abort();
    memcpy(thread.slot, kernel->slot, kernel->slots * sizeof *thread.slot);
    thread.slot[NTID] = launch->threads;
    thread.slot[NCTAID] = launch->blocks;
    for (uint64_t k = 0; k < all && !words[0]; k++) {
        const uint64_t own = launch->backwards ? all - 1 - k : k;

        thread.slot[TID] = own % launch->threads;
        thread.slot[CTAID] = own / launch->threads;
        run_thread(&thread);
    }
    free(thread.slot);
    return !words[0];
}

const char *ptx_kernel(const struct ptx *ptx, size_t number)
{
    return number < ptx->count ? ptx->kernel[number].name : NULL;
}

void ptx_instructions(const struct ptx *ptx, const char *name, unsigned *all, unsigned *ran)
{
    const struct kernel *const kernel = find(ptx, name);

    *all = *ran = 0;
    if (!kernel)
        return;
    *all = kernel->count;
    for (uint32_t k = 0; k < kernel->count; k++)
        *ran += kernel->ran[k];
}
