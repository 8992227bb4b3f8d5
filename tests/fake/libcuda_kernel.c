/* SPDX-License-Identifier: Apache-2.0 */
/* libcuda_kernel.c - the fake driver's modules: it can't run what is in an image, only what
 * kernels.cc has under the same name. */
#include "tests/fake/libcuda.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct CUfunc_st {
    CUcontext context;
    host_kernel_fn *kernel;
    CUfunction next;
    char name[64];
};

struct CUmod_st {
    CUcontext context;
    CUfunction functions; /* those that were asked for */
};

#define FATBIN_MAGIC 0xba55ed50u

/* Without kernels.cc it knows nothing. */
__attribute__((weak)) host_kernel_fn *host_kernel(const char *name)
{
    (void)name;
    return NULL;
}

__attribute__((weak)) size_t host_kernel_bytes(const char *name)
{
    (void)name;
    return 0;
}

__attribute__((weak)) const uint32_t *host_kernel_called_off(const char *name, const void *args)
{
    (void)name;
    (void)args;
    return NULL;
}

__attribute__((weak)) void host_kernel_pointers(const char *name, void *args,
                                                void (*each)(uint64_t *pointer, int is_written))
{
    (void)name;
    (void)args;
    (void)each;
}

static int has_code_for(CUcontext context)
{
    const char *const gpus = getenv("FAKE_CUDA_KERNELS");

    return !gpus || strchr(gpus, '0' + fake_machine_device(context->device));
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    CUcontext context;
    const CUresult result = fake_begin_in(__func__, &context);
    uint32_t magic;

    if (result != CUDA_SUCCESS)
        return result;
    if (fake_waits_for_words() > 0) /* the real one may wait for all that runs */
        fake_dies("a module is loaded while a stream waits for a word");
    memcpy(&magic, image, sizeof magic);
    if (magic != FATBIN_MAGIC)
        return CUDA_ERROR_INVALID_IMAGE;
    if (!has_code_for(context))
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    *module = calloc(1, sizeof **module);
    if (!*module)
        return CUDA_ERROR_OUT_OF_MEMORY;
    (*module)->context = context;
    return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule module)
{
    const CUresult result = fake_begin(__func__);

    if (result != CUDA_SUCCESS)
        return result;
    while (module->functions) {
        CUfunction function = module->functions;

        module->functions = function->next;
        free(function);
    }
    free(module);
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    const CUresult result = fake_begin(__func__);
    host_kernel_fn *const kernel = host_kernel(name);
    CUfunction made;

    if (result != CUDA_SUCCESS)
        return result;
    if (!kernel || strlen(name) >= sizeof made->name)
        return CUDA_ERROR_NOT_FOUND;
    made = calloc(1, sizeof *made);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    made->context = module->context;
    made->kernel = kernel;
    strcpy(made->name, name);
    made->next = module->functions;
    module->functions = made;
    *function = made;
    return CUDA_SUCCESS;
}

/* `to`: what went a way that brings other bytes. */
static void run_kernel(struct op *op)
{
    op->kernel(op->args, fake_draw(op->blocks), op->blocks, op->threads);
    if (op->to)
        *op->to ^= 1;
}

/* What translate() works for; host_kernel_pointers() passes nothing along. */
static _Thread_local struct {
    struct op *op;
    CUcontext context;
    int lost;  /* pointers to no device memory, or none that the context may touch */
    int wrong; /* what was read already will arrive so */
} launch;

/* How far the kernel reaches is not known here: its bytes lie between pages that end it. */
static void translate(uint64_t *pointer, int is_written)
{
    const struct block *const block = block_of(*pointer);
    unsigned char *const alias = op_uses(launch.op, *pointer, 1);

    if (!alias || !fake_touches(launch.context, block)) {
        launch.lost++;
    } else {
        const int wrong = fake_spoils(launch.context, block);

        launch.wrong |= wrong && !is_written;
        if (is_written && (wrong || launch.wrong))
            launch.op->to = alias;
    }
    *pointer = (uint64_t)(uintptr_t)alias;
}

/* From now on the op uses what its arguments point to. */
static void use_arguments(struct op *op, CUfunction function)
{
    launch.op = op;
    launch.context = function->context;
    launch.lost = launch.wrong = 0;
    host_kernel_pointers(function->name, op->args, translate);
    if (launch.lost) {
        op->run = NULL;
        op->failure = CUDA_ERROR_ILLEGAL_ADDRESS;
    }
}

/* What is called off when its turn comes uses nothing: by then its memory may be gone. */
static void run_unless_called_off(struct op *op)
{
    const CUfunction function = op->argument;

    if (__atomic_load_n(host_kernel_called_off(function->name, op->args), __ATOMIC_SEQ_CST))
        return;
    op_use_kept(op, "a kernel that begins");
    run_kernel(op);
}

static struct op *prepare(CUfunction function, CUstream stream, const void *args)
{
    const size_t bytes = host_kernel_bytes(function->name);
    struct op *op = op_create(run_kernel);

    op->kernel = function->kernel;
    op->args = malloc(bytes);
    op->args_bytes = bytes;
    if (!op->args)
        fake_dies("no memory");
    memcpy(op->args, args, bytes);
    use_arguments(op, function);
    if (host_kernel_called_off(function->name, op->args) && !capture_has(stream)
        && op->failure == CUDA_SUCCESS) {
        op->run = run_unless_called_off;
        op->argument = function;
        op_keep(op);
    }
    return op;
}

/* Refuses what libct's kernels never want: more than one dimension, shared memory. */
CUresult cuLaunchKernel(CUfunction function, unsigned blocks, unsigned blocks_y, unsigned blocks_z,
                        unsigned threads, unsigned threads_y, unsigned threads_z, unsigned shared,
                        CUstream stream, void **args, void **extra)
{
    const CUresult result = fake_begin_enqueue(__func__, &stream);
    struct op *op;

    if (result != CUDA_SUCCESS)
        return result;
    if (function->context != fake_context_of(stream))
        return CUDA_ERROR_INVALID_HANDLE;
    if (blocks < 1 || blocks_y != 1 || blocks_z != 1 || threads < 1 || threads > 1024
        || threads_y != 1 || threads_z != 1 || shared != 0 || !args || extra)
        return CUDA_ERROR_INVALID_VALUE;
    op = prepare(function, stream, args[0]);
    op->blocks = blocks;
    op->threads = threads;
    fake_enqueue(stream, op);
    return CUDA_SUCCESS;
}
