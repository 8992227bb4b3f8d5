/* SPDX-License-Identifier: Apache-2.0 */
/* combine_plain.c - compiles the loops of reductions for any machine. */
#define KERNELS kernels_plain
#include "runtime/reduction/combine_loops.h"
