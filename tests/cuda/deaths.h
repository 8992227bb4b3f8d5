/* SPDX-License-Identifier: Apache-2.0 */
/* deaths.h - a rank is killed in its calls on a GPU: all other ranks' errors name it, in that call
 * or in the next one. */
#ifndef TESTS_CUDA_DEATHS_H
#define TESTS_CUDA_DEATHS_H

#include "tests/harness.h"

/* So many calls on this rank, until one fails; it opens its GPU itself. */
typedef ct_status mortal_calls(ct_group *group, const void *arg, int calls);

struct death {
    mortal_calls *make;
    const void *arg;
    int calls;  /* of the victim's; the others make one more */
    int victim; /* dies where CT_FAULT says, or behind its calls */
};

/* Of p ranks, which are programs. */
void one_of_them_dies(int p, const struct death *death);

#endif
