/* SPDX-License-Identifier: Apache-2.0 */
/* kernels.cc - the bodies of libct's kernels, compiled for the host: one thread after the other. */
#include "tests/fake/kernels.h"

#include <string.h>

#include "cuda/kernels/bodies.h"

template <class ARGS, void (*BODY)(const ARGS &args, struct place place)>
static void all_threads(const void *args, unsigned blocks, unsigned threads)
{
    for (unsigned block = 0; block < blocks; block++)
        for (unsigned thread = 0; thread < threads; thread++)
            BODY(*(const ARGS *)args, { block, blocks, thread, threads });
}

#define FEW_KERNEL(name, NAME, sources, unrolled)                     \
    static void name(const struct fold_few &args, struct place place) \
    {                                                                 \
        fold_few_body<NAME##_sum, sources, unrolled>(args, place);    \
    }
FEW_KERNELS(FEW_KERNEL)

#define FOLD_KERNEL(NAME, name, T)                                            \
    static void fold_##name(const struct fold_many &args, struct place place) \
    {                                                                         \
        if (args.span.divisor > 0)                                            \
            fold_many_body<NAME##_average>(args, place);                      \
        else                                                                  \
            fold_many_body<NAME##_form>(args, place);                         \
    }
DTYPES(FOLD_KERNEL)

#define FEW_ROW(name, NAME, sources, unrolled) \
    { #name, all_threads<struct fold_few, name>, sizeof(struct fold_few) },
#define FOLD_ROW(NAME, name, T) \
    { "fold_" #name, all_threads<struct fold_many, fold_##name>, sizeof(struct fold_many) },
static const struct kernel {
    const char *name;
    host_kernel_fn *run;
    size_t bytes;
} kernels[] = { FEW_KERNELS(FEW_ROW) DTYPES(FOLD_ROW) };

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
    const struct kernel *const kernel = find(name);

    return kernel ? kernel->bytes : 0;
}

template <class ARGS> static void visit(ARGS *args, void (*each)(uint64_t *pointer))
{
    for (uint32_t s = 0; s < args->span.sources; s++)
        each(&args->src[s]);
    for (uint32_t d = 0; d < args->span.dsts; d++)
        each(&args->dst[d]);
}

void host_kernel_pointers(const char *name, void *args, void (*each)(uint64_t *pointer))
{
    if (host_kernel_bytes(name) == sizeof(struct fold_few))
        visit((struct fold_few *)args, each);
    else if (host_kernel_bytes(name) == sizeof(struct fold_many))
        visit((struct fold_many *)args, each);
}
