/* SPDX-License-Identifier: Apache-2.0 */
/* combine_avx512.c - the folds' loops for AVX-512 (CMakeLists.txt has the flags).
 * The narrow floats stay with AVX2's: their conversions are written for it.  So do the complex
 * ones: gcc 12 makes vfmaddsub of their products, whatever -ffp-contract says, and rounds once
 * where all other levels round twice. */
#include "runtime/reduction/combine_kernels.h"

#if defined(__x86_64__)
#define KERNELS kernels_avx512
#define WITHOUT_NARROW
#define WITHOUT_COMPLEX
#include "runtime/reduction/combine_loops.h"
#endif
