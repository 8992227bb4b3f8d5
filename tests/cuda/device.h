/* SPDX-License-Identifier: Apache-2.0 */
/* device.h - a GPU for a test, by the driver's functions that a program would call.
 *
 * It is tests/fake/'s; with CT_TEST_DRIVER=libcuda.so.1 the machine's own, where
 * tests of what only the fake one can show are skipped.  A driver does not survive
 * fork(): the process that uses the GPU opens it, after the last fork(). */
#ifndef TESTS_CUDA_DEVICE_H
#define TESTS_CUDA_DEVICE_H

#include <cuda.h>
#include <semaphore.h>
#include <stddef.h>
#include <stdint.h>

#define DEVICE_GRAPH_FUNCTIONS(X)        \
    X(cuStreamBeginCapture)              \
    X(cuStreamEndCapture)                \
    X(cuStreamIsCapturing)               \
    X(cuThreadExchangeStreamCaptureMode) \
    X(cuGraphInstantiate)                \
    X(cuGraphLaunch)                     \
    X(cuGraphExecDestroy)                \
    X(cuGraphDestroy)                    \
    X(cuEventQuery)

#define DEVICE_PROBE_FUNCTIONS(X) \
    X(cuMemHostRegister)          \
    X(cuMemHostUnregister)        \
    X(cuStreamCreateWithPriority) \
    X(cuStreamBatchMemOp)         \
    X(cuCtxGetStreamPriorityRange)

#define DEVICE_FUNCTIONS(X)     \
    X(cuInit)                   \
    X(cuDeviceGetCount)         \
    X(cuDevicePrimaryCtxRetain) \
    X(cuCtxGetCurrent)          \
    X(cuCtxSetCurrent)          \
    X(cuMemAlloc)               \
    X(cuMemAllocAsync)          \
    X(cuMemAllocManaged)        \
    X(cuMemAllocHost)           \
    X(cuPointerGetAttribute)    \
    X(cuMemFree)                \
    X(cuMemFreeHost)            \
    X(cuMemcpyHtoD)             \
    X(cuMemcpyDtoH)             \
    X(cuMemcpyHtoDAsync)        \
    X(cuMemcpyDtoHAsync)        \
    X(cuMemcpyDtoDAsync)        \
    X(cuMemsetD8Async)          \
    X(cuLaunchHostFunc)         \
    X(cuStreamCreate)           \
    X(cuStreamDestroy)          \
    X(cuStreamQuery)            \
    X(cuStreamSynchronize)      \
    X(cuStreamWaitEvent)        \
    X(cuEventCreate)            \
    X(cuEventDestroy)           \
    X(cuEventRecord)            \
    X(cuIpcGetMemHandle)        \
    X(cuIpcOpenMemHandle)       \
    X(cuModuleLoadData)         \
    X(cuModuleUnload)           \
    X(cuModuleGetFunction)      \
    X(cuCtxSynchronize)         \
    DEVICE_PROBE_FUNCTIONS(X)   \
    DEVICE_GRAPH_FUNCTIONS(X)

struct device_functions {
#define DEVICE_FIELD(name) __typeof__(name) *name;
    DEVICE_FUNCTIONS(DEVICE_FIELD)
#undef DEVICE_FIELD
};

/* Of the driver, once device_load() found it. */
extern struct device_functions device;

/* A pointer as the driver has it. */
static inline CUdeviceptr at(const void *memory)
{
    return (CUdeviceptr)(uintptr_t)memory;
}

/* For tests, which include tests/harness.h. */
#define CU(call) EXPECT((call) == CUDA_SUCCESS)

/* The driver is loaded; 0: there is none. */
int device_load(void);
/* And this GPU's primary context current on this thread. */
int device_open(int ordinal);
/* The same of the fake driver, which in this process begins all that is enqueued so late. */
int device_open_late(int ordinal, int us);
int device_is_fake(void);

/* cuMemAlloc(), and filled with one byte; NULL: no memory. */
void *device_alloc(size_t bytes, unsigned char byte);
void device_free(void *memory);
/* cuMemcpyHtoD(), and the bytes have arrived for all streams: of memory that is not pinned it
 * returns when they have been read. */
CUresult device_put(CUdeviceptr to, const void *from, size_t bytes);

/* Of the fake driver's memory in this process, its own and others'. */
int device_allocations_here(void);

/* Whether that ends a process, which must not have a driver yet, by a signal; and says the word. */
int device_ends(void (*what)(void), const char *word);

/* Something in a stream that stands still until it is told to go on. */
struct gate {
    sem_t open;
};
int gate_close(struct gate *gate, void *stream);
void gate_open(struct gate *gate);

#endif
