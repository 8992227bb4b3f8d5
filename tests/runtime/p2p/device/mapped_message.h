/* SPDX-License-Identifier: Apache-2.0 */
/* mapped_message.h - messages of BYTES equal bytes whose receiver maps the buffer of the sender
 * (runtime/messaging/device_rendezvous.c), and a receiver that copies them no earlier than it is
 * told to. */
#ifndef TESTS_RUNTIME_P2P_DEVICE_MAPPED_MESSAGE_H
#define TESTS_RUNTIME_P2P_DEVICE_MAPPED_MESSAGE_H

#include <stdlib.h>

#include "include/ct_cuda.h"
#include "tests/cuda/device.h"
#include "tests/harness.h"

/* Large enough for a rendezvous, and below what is pinned: to pin memory may be to wait for the
   stream. */
enum { BYTES = 60000 };

static inline int is_full_of(const void *memory, unsigned char byte)
{
    unsigned char *here = malloc(BYTES);
    size_t good = 0;

    CU(device.cuMemcpyDtoH(here, at(memory), BYTES));
    while (good < BYTES && here[good] == byte)
        good++;
    free(here);
    return good == BYTES;
}

static inline void fill(void *memory, unsigned char byte)
{
    CU(device.cuMemsetD8Async(at(memory), byte, BYTES, NULL));
    CU(device.cuStreamSynchronize(NULL));
}

/* A receive whose buffer's stream stands still, so that nothing is copied before go_on(). */
struct scene {
    CUstream stream;
    struct gate gate;
    void *buffer;
    ct_work *work;
};

static inline int receive_held(struct scene *s, ct_group *group, int from)
{
    *s = (struct scene){ .stream = NULL };
    CU(device.cuStreamCreate(&s->stream, CU_STREAM_NON_BLOCKING));
    s->buffer = device_alloc(BYTES, 9);
    EXPECT_OK(ct_set_stream(group, s->stream));
    return EXPECT(s->buffer && gate_close(&s->gate, s->stream))
           && EXPECT_OK(ct_irecv(group, s->buffer, BYTES, CT_U8, from, 0, &s->work));
}

static inline void go_on(struct scene *s)
{
    gate_open(&s->gate);
    CU(device.cuStreamSynchronize(s->stream));
}

static inline void tear_down(struct scene *s)
{
    device_free(s->buffer);
    CU(device.cuStreamDestroy(s->stream));
}

#endif
