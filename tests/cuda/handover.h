/* SPDX-License-Identifier: Apache-2.0 */
/* handover.h - runs with what hands calls in a stream over: the hosts or the streams. */
#ifndef TESTS_CUDA_HANDOVER_H
#define TESTS_CUDA_HANDOVER_H

#include <stdlib.h>

#include "tests/harness.h"

/* As CT_HANDOVER has it: "host" or "stream". */
static inline void run_by(const char *way, int ranks, void (*body)(ct_group *, void *), void *arg)
{
    setenv("CT_HANDOVER", way, 1);
    run_processes(ranks, body, arg);
    unsetenv("CT_HANDOVER");
}

#endif
