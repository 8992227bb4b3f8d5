/* SPDX-License-Identifier: Apache-2.0 */
/* pairs.h - two ranks with a GPU each, whose peer access is not checked yet. */
#ifndef TESTS_CUDA_PAIRS_H
#define TESTS_CUDA_PAIRS_H

#include <stdlib.h>

#include "tests/cuda/keyed.h"
#include "tests/harness.h"

enum { LARGE = 300000 };

/* Each rank has a GPU of its own, rank 1's is slow: the check and the message take 3 copies. */
static inline struct buffer open_pair(ct_group *group, const char *lag_us)
{
    setenv("FAKE_CUDA_LAG_RANK", ct_rank(group) == 1 ? "all" : "-1", 1);
    setenv("FAKE_CUDA_LAG_US", lag_us, 1);
    if (!EXPECT(device_open(ct_rank(group))))
        return (struct buffer){ DEVICE, NULL };
    return buffer_of(DEVICE);
}

/* Behind this the next message brings the bytes of the peer-access check. */
static inline void exchange_first(ct_group *group, struct buffer b)
{
    write_key(b, 0, LARGE, 3);
    if (ct_rank(group) == 0)
        EXPECT_OK(ct_send(group, b.at, LARGE, CT_U8, 1, 0));
    else
        EXPECT_OK(ct_recv(group, b.at, LARGE, CT_U8, 0, 0, NULL));
}

#endif
