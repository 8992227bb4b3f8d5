/* SPDX-License-Identifier: Apache-2.0 */
/* fake_graphs.h - streams that are captured, for tests of the fake driver itself. */
#ifndef TESTS_CUDA_FAKE_GRAPHS_H
#define TESTS_CUDA_FAKE_GRAPHS_H

#include "tests/cuda/device.h"
#include "tests/harness.h"

enum { BYTES = 64 };

/* Two streams, two buffers, an event. */
struct scene {
    CUstream stream, other;
    char *one, *two;
    CUevent event;
};

static inline int set_up(struct scene *s)
{
    *s = (struct scene){ .stream = NULL };
    if (!EXPECT(device_open(0)))
        return 0;
    CU(device.cuStreamCreate(&s->stream, CU_STREAM_NON_BLOCKING));
    CU(device.cuStreamCreate(&s->other, CU_STREAM_NON_BLOCKING));
    CU(device.cuEventCreate(&s->event, CU_EVENT_DISABLE_TIMING));
    s->one = device_alloc(BYTES, 1);
    s->two = device_alloc(BYTES, 2);
    return EXPECT(s->one && s->two);
}

static inline void tear_down(const struct scene *s)
{
    CU(device.cuCtxSynchronize());
    CU(device.cuEventDestroy(s->event));
    CU(device.cuStreamDestroy(s->stream));
    CU(device.cuStreamDestroy(s->other));
    device_free(s->one);
    device_free(s->two);
}

struct part {
    void (*body)(struct scene *);
};

static inline void in_a_scene(ct_group *group, void *arg)
{
    const struct part *part = arg;
    struct scene s;

    (void)group;
    if (!set_up(&s))
        return;
    part->body(&s);
    tear_down(&s);
}

/* Each test is a process of its own: none of them inherits a driver. */
static inline void run(void (*body)(struct scene *))
{
    run_processes(1, in_a_scene, &(struct part){ body });
}

static inline CUresult set(void *memory, unsigned char byte, CUstream stream)
{
    return device.cuMemsetD8Async(at(memory), byte, BYTES, stream);
}

/* Waits for the whole device. */
static inline int byte_of(const char *memory)
{
    char bytes[BYTES];

    if (device.cuCtxSynchronize() != CUDA_SUCCESS
        || device.cuMemcpyDtoH(bytes, at(memory), BYTES) != CUDA_SUCCESS)
        return -1;
    return bytes[BYTES - 1];
}

static inline CUresult begin(const struct scene *s)
{
    return device.cuStreamBeginCapture(s->stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

/* With what error it ends; a graph is destroyed. */
static inline CUresult end(CUstream stream)
{
    CUgraph graph = NULL;
    const CUresult result = device.cuStreamEndCapture(stream, &graph);

    EXPECT((graph != NULL) == (result == CUDA_SUCCESS));
    if (graph)
        CU(device.cuGraphDestroy(graph));
    return result;
}

static inline CUgraphExec end_and_instantiate(CUstream stream)
{
    CUgraphExec exec = NULL;
    CUgraph graph = NULL;

    CU(device.cuStreamEndCapture(stream, &graph));
    CU(device.cuGraphInstantiate(&exec, graph, 0));
    CU(device.cuGraphDestroy(graph));
    return exec;
}

static inline CUresult follow(CUstream later, CUstream earlier, CUevent event)
{
    const CUresult result = device.cuEventRecord(event, earlier);

    return result == CUDA_SUCCESS ? device.cuStreamWaitEvent(later, event, 0) : result;
}

#endif
