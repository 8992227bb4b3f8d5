/* SPDX-License-Identifier: Apache-2.0 */
/* ptx.h - an interpreter of the PTX that nvcc made of the kernels, over ordinary memory.
 *
 * ptx_read() decodes each entry once; what it does not know it refuses, and says the line.
 * ptx_run() executes a launch, one thread after the other: there are no barriers, no shared
 * memory and no calls in what it knows.  Where PTX leaves a result open (a division by zero)
 * that is a fault, as is whatever a GPU would not bear; the bits of a NaN, which PTX leaves
 * open too, are those of no operand. */
#ifndef TESTS_PTX_PTX_H
#define TESTS_PTX_PTX_H

#include <stddef.h>
#include <stdint.h>

enum { PTX_WORDS = 512 }; /* of a sentence about what went wrong, with its 0 */

struct ptx;

/* NULL: `words` says why.  The text is taken over, and is malloc()'s. */
struct ptx *ptx_read(char *text, char *words);
/* The same of a file. */
struct ptx *ptx_read_file(const char *path, char *words);
void ptx_free(struct ptx *ptx);

/* The entries, in the file's order; NULL: no more. */
const char *ptx_kernel(const struct ptx *ptx, size_t number);

/* What a launch may reach. */
struct ptx_range {
    uint64_t begin, end;
};

struct ptx_ranges {
    struct ptx_range *range; /* ascending; none overlaps another */
    size_t count;
};

/* Brings them in order, and makes one of those that overlap. */
void ptx_sort(struct ptx_ranges *ranges);

struct ptx_launch {
    const char *kernel;
    unsigned blocks, threads;
    const void *parameter; /* its only one */
    size_t bytes;
    struct ptx_ranges read, written; /* global memory, sorted */
    int backwards;                   /* the last thread first: their order must not matter */
};

/* 0: `words` says what no GPU bears, or what is none of the launch's. */
int ptx_run(struct ptx *ptx, const struct ptx_launch *launch, char *words);

/* How many instructions a kernel has, and how many of them some launch has come to. */
void ptx_instructions(const struct ptx *ptx, const char *kernel, unsigned *all, unsigned *ran);

#endif
