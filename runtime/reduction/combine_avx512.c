/* SPDX-License-Identifier: Apache-2.0 */
/* combine_avx512.c - compiles the loops of reductions for AVX-512, with flags from CMakeLists.txt.
 * Narrow floats use the AVX2 loops, since their conversions are written for AVX2.  Complex dtypes
 * use the AVX2 loops, too.  For AVX-512, gcc 12 compiles complex products to vfmaddsub even with
 * -ffp-contract=off, which rounds once where all other levels round twice. */
#include "runtime/reduction/combine_kernels.h"

#if defined(__x86_64__)
#define KERNELS kernels_avx512
#define WITHOUT_NARROW
#define WITHOUT_COMPLEX
#include "runtime/reduction/combine_loops.h"
#endif
