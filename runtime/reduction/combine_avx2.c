/* SPDX-License-Identifier: Apache-2.0 */
/* combine_avx2.c - compiles the loops of reductions for AVX2, with flags from CMakeLists.txt. */
#include "runtime/reduction/combine_kernels.h"

#if defined(__x86_64__)
#define KERNELS kernels_avx2
#include "runtime/reduction/combine_loops.h"
#endif
