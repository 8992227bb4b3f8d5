/* SPDX-License-Identifier: Apache-2.0 */
/* device.h - a GPU and its memory, by the functions that any program would call.
 *
 * The driver is opened when --memory=cuda asks for it: ct_bench is the same program on a machine
 * without one.  What fails after the GPU was opened ends the program with a sentence, for a GPU
 * that failed once fails for good. */
#ifndef CT_BENCH_DEVICE_H
#define CT_BENCH_DEVICE_H

#include <stddef.h>
#include <stdint.h>

/* GPU CT_BENCH_GPU, or LOCAL_RANK modulo the number of GPUs, becomes this thread's.  The driver is
 * libcuda.so.1, or CT_TEST_DRIVER.  0, or -1 with a sentence. */
int device_open(char why[200]);
/* The same in every process that uses this GPU, whatever number it has there. */
void device_id(uint64_t id[2]);

void *device_stream(void); /* a new one, which waits for no other */
void device_finish(void *stream);

void *device_alloc(size_t bytes); /* NULL: no memory */
void device_free(void *at);

/* Each is done when it returns. */
void device_put(void *to, const void *from_host, size_t bytes);
void device_get(void *to_host, const void *from, size_t bytes);
void device_copy(void *to, const void *from, size_t bytes); /* within it */

#endif
