/* SPDX-License-Identifier: Apache-2.0 */
/* cuda.h - what this folder gives the others, without a CUDA header.
 *
 * Built only with CT_CUDA; CT_WITH_CUDA says so to the code. */
#ifndef CUDA_CUDA_H
#define CUDA_CUDA_H

/* 1 if the pointer is device memory that the host can't touch.  Asks the driver
 * only when the program itself has loaded one: a few ns until then. */
int cuda_owns(const void *pointer);

#endif
