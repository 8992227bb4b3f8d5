/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNTIME_SPACE_H
#define RUNTIME_SPACE_H

/* 1: memory of a device, which the host can't touch; builtins.c asks those who know. */
int is_device_memory(const void *pointer);

#define NO_GPU_BACKEND \
    "the buffer is device memory, and this libct has no GPU backend; copy it to the host"

#endif
