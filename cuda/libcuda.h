/* SPDX-License-Identifier: Apache-2.0 */
/* libcuda.h - the functions of the CUDA driver that libct calls.
 *
 * To call another function, add a row.  The macros of <cuda.h> add the version to a function's name
 * (cuMemAlloc becomes cuMemAlloc_v2).  A row is expanded before it becomes a field or a string, so
 * that both contain the name with the version. */
#ifndef CUDA_LIBCUDA_H
#define CUDA_LIBCUDA_H

#include <cuda.h>

#include "include/ct.h"

#define DRIVER_FUNCTIONS(X)              \
    X(cuGetErrorName)                    \
    X(cuGetErrorString)                  \
    X(cuDriverGetVersion)                \
    X(cuPointerGetAttribute)             \
    X(cuPointerGetAttributes)            \
    X(cuDeviceGetAttribute)              \
    X(cuDeviceGetUuid)                   \
    X(cuDeviceCanAccessPeer)             \
    X(cuDevicePrimaryCtxRetain)          \
    X(cuCtxGetCurrent)                   \
    X(cuCtxSetCurrent)                   \
    X(cuCtxGetDevice)                    \
    X(cuCtxEnablePeerAccess)             \
    X(cuCtxGetStreamPriorityRange)       \
    X(cuThreadExchangeStreamCaptureMode) \
    X(cuStreamCreateWithPriority)        \
    X(cuStreamDestroy)                   \
    X(cuStreamQuery)                     \
    X(cuStreamGetFlags)                  \
    X(cuStreamIsCapturing)               \
    X(cuStreamSynchronize)               \
    X(cuStreamBatchMemOp)                \
    X(cuEventCreate)                     \
    X(cuEventDestroy)                    \
    X(cuEventRecord)                     \
    X(cuEventQuery)                      \
    X(cuMemAllocHost)                    \
    X(cuMemFreeHost)                     \
    X(cuMemAlloc)                        \
    X(cuMemHostGetDevicePointer)         \
    X(cuMemHostRegister)                 \
    X(cuMemHostUnregister)               \
    X(cuMemcpyDtoHAsync)                 \
    X(cuMemcpyHtoDAsync)                 \
    X(cuMemcpyDtoDAsync)                 \
    X(cuIpcGetMemHandle)                 \
    X(cuIpcOpenMemHandle)                \
    X(cuIpcCloseMemHandle)               \
    X(cuModuleLoadData)                  \
    X(cuModuleGetFunction)               \
    X(cuLaunchKernel)

struct driver {
#define DRIVER_FIELD(name) __typeof__(name) *name;
    DRIVER_FUNCTIONS(DRIVER_FIELD)
#undef DRIVER_FIELD
};

/* Sets *driver to the functions of the driver that the program has loaded.  libct itself never
 * loads a driver.  Returns CT_ERR_CUDA if the program has loaded no driver, or if the driver lacks
 * a function. */
ct_status driver_find(const struct driver **driver);

/* Returns CT_OK if `result` is CUDA_SUCCESS.  Otherwise returns CT_ERR_CUDA and sets
 * ct_last_error() to `what`, formatted as by printf(), and the driver's text.  `what` says what
 * libct tried:
 *     return driver_says(driver, driver->cuStreamQuery(stream), "asking a stream"); */
ct_status driver_says(const struct driver *driver, CUresult result, const char *what, ...)
    __attribute__((format(printf, 3, 4)));

#endif
