/* SPDX-License-Identifier: Apache-2.0 */
/* kernels.h - the bodies of libct's kernels, compiled for the host: what the fake driver runs.
 *
 * kernels.cc has them; without it the driver knows no kernel. */
#ifndef TESTS_FAKE_KERNELS_H
#define TESTS_FAKE_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A whole launch.  args: the kernel's one parameter, its device pointers turned into host ones;
 * first: the block that runs first, and the others follow round and round. */
typedef void host_kernel_fn(const void *args, unsigned first, unsigned blocks, unsigned threads);

/* NULL: no kernel of that name. */
host_kernel_fn *host_kernel(const char *name);
/* The size of its parameter: a launch copies it, as the driver does. */
size_t host_kernel_bytes(const char *name);
/* The word in host memory that calls the launch off; NULL: the launch has no such word. */
const uint32_t *host_kernel_called_off(const char *name, const void *args);
/* Visits every device pointer in the parameter that is in use; what is written behind what it is
 * made of. */
void host_kernel_pointers(const char *name, void *args,
                          void (*each)(uint64_t *pointer, int is_written));

#ifdef __cplusplus
}
#endif

#endif
