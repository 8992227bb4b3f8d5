/* SPDX-License-Identifier: Apache-2.0 */
/* test_message_crowds.c - many messages from and to device memory at one time, among them random
 * ones of all sizes and kinds of memory. */
#include "tests/harness.h"

#ifdef CT_WITH_CUDA

#include <stdlib.h>

#include "include/ct_cuda.h"
#include "tests/cuda/keyed.h"

/* Also to itself; and waited for last to first. */
static void many(ct_group *group, void *arg)
{
    enum { EACH = 12, BYTES = 40000 };
    const int me = ct_rank(group), size = ct_size(group);
    ct_work *works[2 * EACH * MAX_RANKS];
    ct_p2p ops[2 * EACH * MAX_RANKS];
    struct buffer in, out;
    int count = 0;

    (void)arg;
    if (!EXPECT(device_open(0)))
        return;
    in = (struct buffer){ DEVICE, device_alloc((size_t)(EACH * size) * BYTES, 0) };
    out = (struct buffer){ DEVICE, device_alloc((size_t)(EACH * size) * BYTES, 0) };
    for (int i = 0; i < EACH * size; i++) {
        const size_t place = (size_t)i * BYTES;

        write_key(out, place, BYTES, 100 * me + i);
        ops[count++] = (ct_p2p){ CT_P2P_SEND, out.at + place, BYTES, CT_U8, i % size, i / size };
        ops[count++] = (ct_p2p){ CT_P2P_RECV, in.at + place, BYTES, CT_U8, i % size, i / size };
    }
    EXPECT_OK(ct_batch_isend_irecv(group, ops, count, works));
    while (count > 0)
        EXPECT_OK(ct_wait(works[--count]));
    for (int i = 0; i < EACH * size; i++)
        EXPECT(has_key(in, (size_t)i * BYTES, BYTES, 100 * (i % size) + i / size * size + me));
    EXPECT_OK(ct_barrier(group, NULL));
    free_buffer(in);
    free_buffer(out);
}

static void many_may_be_under_way(void **state)
{
    (void)state;
    run_processes(3, many, NULL);
    run_threads(3, many, NULL);
}

/* ---- Random ones ------------------------------------------------------------------ */

enum { ROUNDS = 6, MESSAGES = 24 };

struct message {
    int from, to, tag;
    enum kind send, recv;
    size_t bytes, send_at, recv_at;
    struct buffer here;
    ct_work *work;
};

static unsigned draw(unsigned *state, unsigned below)
{
    *state = *state * 1103515245u + 12345u;
    return (*state >> 8) % below;
}

/* The same on all ranks.  Few tags, so that their order counts; half of all are on devices. */
static void draw_message(unsigned *state, int size, struct message *m)
{
    static const unsigned sizes[] = { 100, 33000, 70000, 200000, 390000 };

    m->from = (int)draw(state, (unsigned)size);
    m->to = (int)draw(state, (unsigned)size);
    m->tag = (int)draw(state, 3);
    m->send = draw(state, 2) ? DEVICE : (enum kind)draw(state, KINDS);
    m->recv = draw(state, 2) ? DEVICE : (enum kind)draw(state, KINDS);
    m->bytes = draw(state, sizes[draw(state, 5)]);
    m->send_at = draw(state, 64);
    m->recv_at = draw(state, 64);
}

static void finish(struct message *m, int key, int received)
{
    EXPECT_OK(ct_wait(m->work));
    EXPECT(!received || has_key(m->here, m->recv_at, m->bytes, key));
}

/* Receives first, since a rank may send to itself; waited for in a random order, which is each
 * rank's own. */
static void round_of(ct_group *group, unsigned *state, unsigned *own)
{
    struct message in[MESSAGES], out[MESSAGES], *owed[2 * MESSAGES];
    int keys[2 * MESSAGES], count = 0;
    const int me = ct_rank(group);

    for (int i = 0; i < MESSAGES; i++) {
        draw_message(state, ct_size(group), &in[i]);
        out[i] = in[i];
        if (in[i].to == me) {
            in[i].here = buffer_of(in[i].recv);
            EXPECT_OK(ct_irecv(group, in[i].here.at + in[i].recv_at, in[i].bytes, CT_U8, in[i].from,
                               in[i].tag, &in[i].work));
            keys[count] = i;
            owed[count++] = &in[i];
        }
    }
    for (int i = 0; i < MESSAGES; i++)
        if (out[i].from == me) {
            out[i].here = buffer_of(out[i].send);
            write_key(out[i].here, out[i].send_at, out[i].bytes, i);
            EXPECT_OK(ct_isend(group, out[i].here.at + out[i].send_at, out[i].bytes, CT_U8,
                               out[i].to, out[i].tag, &out[i].work));
            keys[count] = i;
            owed[count++] = &out[i];
        }
    while (count > 0) {
        const unsigned one = draw(own, (unsigned)count);

        finish(owed[one], keys[one], owed[one] >= in && owed[one] < in + MESSAGES);
        count--;
        free_buffer(owed[one]->here);
        owed[one] = owed[count];
        keys[one] = keys[count];
    }
}

static void random_ones(ct_group *group, void *arg)
{
    unsigned state = 1, own = (unsigned)ct_rank(group) + 7;
    struct buffer b;

    if (arg) { /* two GPUs; "apart": rank 3 can map nothing, so nothing is proved of them */
        setenv("FAKE_CUDA_DEVICES", "2", 1);
        setenv("CT_LIBNCCL", "/nowhere/libnccl.so.2", 1);
    }
    if (arg && !strcmp(arg, "apart") && ct_rank(group) == 3)
        setenv("FAKE_CUDA_IPC", "0", 1);
    if (!EXPECT(device_open(arg ? ct_rank(group) % 2 : 0)))
        return;
    b = buffer_of(DEVICE);
    EXPECT_OK(ct_all_reduce(group, b.at, b.at, 1000, CT_I32, CT_MAX, NULL));
    free_buffer(b);
    for (int i = 0; i < ROUNDS; i++)
        round_of(group, &state, &own);
    EXPECT_OK(ct_barrier(group, NULL));
}

static void random_messages_arrive_as_they_were_sent(void **state)
{
    (void)state;
    run_processes(4, random_ones, NULL);
    run_threads(4, random_ones, NULL);
    if (device_is_fake())
        run_processes(4, random_ones, (void *)(uintptr_t) "apart");
    if (device_is_fake())
        run_processes(4, random_ones, (void *)(uintptr_t) "together");
    use_link("tcp");
    run_processes(4, random_ones, NULL);
    use_link(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_may_be_under_way),
        cmocka_unit_test(random_messages_arrive_as_they_were_sent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    return 77; /* skipped: built without CUDA */
}

#endif
