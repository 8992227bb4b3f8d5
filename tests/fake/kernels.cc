/* SPDX-License-Identifier: Apache-2.0 */
/* kernels.cc - the bodies of libct's kernels, compiled for the host: one thread after the other. */
#include "tests/fake/kernels.h"

#include <string.h>

#include "cuda/kernels/kernel_bodies.h"

template <void (*BODY)(const struct fold_args &args, struct kernel_place place)>
static void all_threads(const void *args, unsigned first, unsigned blocks, unsigned threads)
{
    for (unsigned i = 0; i < blocks; i++) {
        const unsigned block = (first + i) % blocks;

        for (unsigned thread = 0; thread < threads; thread++)
            BODY(*(const struct fold_args *)args, { block, blocks, thread, threads });
    }
}

#define FEW_KERNEL(name, NAME, sources, unrolled, exchanges)                  \
    static void name(const struct fold_args &args, struct kernel_place place) \
    {                                                                         \
        fold_few_body<NAME##_sum, sources, unrolled, exchanges>(args, place); \
    }
FEW_KERNELS(FEW_KERNEL)

#define FOLD_KERNEL(NAME, name, ...)                                                 \
    static void fold_##name(const struct fold_args &args, struct kernel_place place) \
    {                                                                                \
        if (args.divisor > 0)                                                        \
            fold_many_body<NAME##_average>(args, place);                             \
        else                                                                         \
            fold_many_body<NAME##_form>(args, place);                                \
    }
DTYPES(FOLD_KERNEL)

#define ROW(name, ...) { #name, all_threads<name> },
#define FOLD_ROW(NAME, name, ...) { "fold_" #name, all_threads<fold_##name> },
static const struct kernel {
    const char *name;
    host_kernel_fn *run;
} kernels[] = { FEW_KERNELS(ROW) DTYPES(FOLD_ROW) };

static const struct kernel *find(const char *name)
{
    for (const struct kernel &kernel : kernels)
        if (!strcmp(kernel.name, name))
            return &kernel;
    return NULL;
}

host_kernel_fn *host_kernel(const char *name)
{
    const struct kernel *const kernel = find(name);

    return kernel ? kernel->run : NULL;
}

size_t host_kernel_bytes(const char *name)
{
    return find(name) ? sizeof(struct fold_args) : 0;
}

const uint32_t *host_kernel_called_off(const char *name, const void *of)
{
    return find(name) ? (const uint32_t *)(uintptr_t)((const struct fold_args *)of)->called_off
                      : NULL;
}

void host_kernel_pointers(const char *name, void *of,
                          void (*each)(uint64_t *pointer, int is_written))
{
    struct fold_args *const args = (struct fold_args *)of;

    if (!find(name))
        return;
    if (args->called_off)
        each(&args->called_off, 0);
    for (uint32_t i = 0; i < args->spans; i++) {
        const struct fold_span span = span_at(*args, i);

        for (uint32_t p = 0; p < args->sources + span.dsts; p++)
            each(&args->words[span.pointers + p], p >= args->sources);
    }
}
