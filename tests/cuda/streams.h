/* SPDX-License-Identifier: Apache-2.0 */
/* streams.h - calls in streams: a rank with a stream and two buffers of COUNT numbers, and what is
 * in them when the stream comes to it. */
#ifndef TESTS_CUDA_STREAMS_H
#define TESTS_CUDA_STREAMS_H

#include <stdlib.h>
#include <string.h>

#include "tests/cuda/device.h"
#include "tests/cuda/handover.h"
#include "tests/harness.h"

enum { COUNT = 1000, SOON_MS = 100 };

/* A rank's GPU, a stream, two buffers there, and host memory that the driver copies into late. */
struct scene {
    CUstream stream;
    int32_t *send, *recv;
    int32_t *seen;
};

/* A group's first call on device memory is in no stream. */
static inline int set_up(struct scene *s, ct_group *group)
{
    *s = (struct scene){ .stream = NULL };
    if (!EXPECT(device_open(0)) || !CU(device.cuStreamCreate(&s->stream, CU_STREAM_NON_BLOCKING))
        || !CU(device.cuMemAllocHost((void **)&s->seen, COUNT * sizeof *s->seen)))
        return 0;
    memset(s->seen, 0, COUNT * sizeof *s->seen);
    s->send = device_alloc(COUNT * sizeof *s->send, 0);
    s->recv = device_alloc(COUNT * sizeof *s->recv, 0);
    return EXPECT(s->send != NULL && s->recv != NULL)
           && EXPECT_OK(ct_all_reduce(group, s->send, s->recv, COUNT, CT_I32, CT_SUM, NULL));
}

static inline void tear_down(struct scene *s)
{
    CU(device.cuStreamSynchronize(s->stream));
    CU(device.cuStreamDestroy(s->stream));
    device_free(s->send);
    device_free(s->recv);
    CU(device.cuMemFreeHost(s->seen));
}

/* Enqueued in the stream: every byte of send; and what recv holds, for the host to see. */
static inline void fill(const struct scene *s, unsigned char byte)
{
    CU(device.cuMemsetD8Async(at(s->send), byte, COUNT * sizeof *s->send, s->stream));
}

static inline void look(const struct scene *s, const void *buffer)
{
    CU(device.cuMemcpyDtoHAsync(s->seen, at(buffer), COUNT * sizeof *s->seen, s->stream));
}

static inline int all_seen_are(const struct scene *s, int32_t value)
{
    for (int i = 0; i < COUNT; i++)
        if (s->seen[i] != value) {
            print_error("element %d is %d, not %d\n", i, s->seen[i], value);
            return 0;
        }
    return 1;
}

/* Each with processes and threads as ranks, on one device and through the host.  Of threads one may
 * free memory while another one's call needs the driver: not where that keeps its lock meanwhile.
 */
static inline void run_everywhere(void (*body)(ct_group *, void *), void *arg)
{
    static const char *const by[] = { "host", "stream" };

    for (int i = 0; i < 2; i++) {
        run_by(by[i], 3, body, arg);
        run_by(by[i], 1, body, arg);
        setenv("CT_HANDOVER", by[i], 1);
        if (!getenv("FAKE_CUDA_LOCK"))
            run_threads(2, body, arg);
        unsetenv("CT_HANDOVER");
    }
    setenv("CT_DEVICE", "staged", 1);
    run_processes(3, body, arg);
    unsetenv("CT_DEVICE");
}

#endif
