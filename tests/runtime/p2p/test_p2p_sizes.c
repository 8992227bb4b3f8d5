/* SPDX-License-Identifier: Apache-2.0 */
/* test_p2p_sizes.c - messages of all sizes around those at which their way changes, from and to
 * memory of either kind: every byte arrives, where it should and nowhere else. */
#include "tests/harness.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A piece of the ring, a quarter, all of it, the largest eager message, those of several rings. */
static const size_t around[] = { 1,        96,        8 << 10,   16 << 10, 32 << 10,
                                 64 << 10, 128 << 10, 256 << 10, 1 << 20 };
enum { LARGEST = (1 << 20) + 1, EDGE = 64 };

/* Whose memory ct_mem_alloc() gave: of a message's sender and of its receiver. */
struct memory {
    int sender, receiver;
};

static unsigned char *take(ct_group *group, int shared)
{
    void *memory = NULL;

    if (shared)
        EXPECT_OK(ct_mem_alloc(group, LARGEST + 2 * EDGE, &memory));
    else
        memory = malloc(LARGEST + 2 * EDGE);
    EXPECT(memory != NULL);
    return memory;
}

static void give(ct_group *group, unsigned char *memory, int shared)
{
    if (shared)
        EXPECT_OK(ct_mem_free(group, memory));
    else
        free(memory);
}

static unsigned char byte_of(int rank, size_t bytes, size_t i)
{
    return (unsigned char)(i * 7 + (i >> 8) + bytes + (size_t)rank * 31);
}

static void fill(unsigned char *data, int rank, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        data[i] = byte_of(rank, bytes, i);
}

static void expect(const unsigned char *memory, int from, size_t bytes)
{
    size_t wrong = 0;

    for (size_t i = 0; i < bytes; i++)
        wrong += memory[EDGE + i] != byte_of(from, bytes, i);
    for (size_t i = 0; i < EDGE; i++)
        wrong += (memory[i] != 0xee) + (memory[EDGE + bytes + i] != 0xee);
    EXPECT(wrong == 0);
}

/* Each to the next, all at once; then each pair of neighbours one way after the other. */
static void round_of(ct_group *group, unsigned char *out, unsigned char *in, size_t bytes)
{
    const int p = ct_size(group), me = ct_rank(group);
    const int next = (me + 1) % p, previous = (me + p - 1) % p;
    ct_work *receive, *send;

    fill(out + EDGE, me, bytes);
    memset(in, 0xee, bytes + 2 * EDGE);
    EXPECT_OK(ct_irecv(group, in + EDGE, bytes, CT_U8, previous, 1, &receive));
    EXPECT_OK(ct_isend(group, out + EDGE, bytes, CT_U8, next, 1, &send));
    EXPECT_OK(ct_wait(receive));
    EXPECT_OK(ct_wait(send));
    expect(in, previous, bytes);
    memset(in, 0xee, bytes + 2 * EDGE);
    if (me > 0) {
        EXPECT_OK(ct_recv(group, in + EDGE, bytes, CT_U8, me - 1, 2, NULL));
        expect(in, me - 1, bytes);
    }
    if (me < p - 1)
        EXPECT_OK(ct_send(group, out + EDGE, bytes, CT_U8, me + 1, 2));
}

static void all_sizes(ct_group *group, void *arg)
{
    const struct memory *memory = arg;
    unsigned char *out = take(group, memory->sender), *in = take(group, memory->receiver);

    for (size_t i = 0; i < sizeof around / sizeof *around; i++)
        for (size_t bytes = around[i] - 1; bytes <= around[i] + 1; bytes++)
            round_of(group, out, in, bytes);
    EXPECT_OK(ct_barrier(group, NULL));
    give(group, in, memory->receiver);
    give(group, out, memory->sender);
}

static void every_byte_arrives_whatever_the_size_and_the_memory(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        struct memory memory = { kind & 1, kind >> 1 };

        run_ranks(2, all_sizes, &memory);
        run_ranks(3, all_sizes, &memory);
    }
}

/* Short messages are read from the note of a ring, which the next message of a sender that does
 * not wait may overwrite meanwhile.  Number i has i % 41 bytes. */
static void stream_of_small_ones(ct_group *group, void *arg)
{
    enum { MESSAGES = 60000, MOST = 40 };
    unsigned char data[MOST], expected[MOST];
    uint32_t wrong = 0;

    (void)arg;
    for (uint32_t i = 0; i < MESSAGES; i++) {
        const size_t bytes = i % (MOST + 1);

        for (size_t b = 0; b < bytes; b++)
            expected[b] = (unsigned char)(i * 2654435761u >> (b % 4 * 8)) ^ (unsigned char)b;
        if (ct_rank(group) == 0) {
            if (!EXPECT_OK(ct_send(group, expected, bytes, CT_U8, 1, (int)(i % 3))))
                return;
            continue;
        }
        memset(data, 0xee, sizeof data);
        if (!EXPECT_OK(ct_recv(group, data, bytes, CT_U8, 0, (int)(i % 3), NULL)))
            return;
        wrong += memcmp(data, expected, bytes) != 0;
    }
    EXPECT(wrong == 0);
}

static void small_messages_in_a_row_arrive_whole(void **state)
{
    (void)state;
    run_ranks(2, stream_of_small_ones, NULL);
}

/* More than goes through a ring before it grows (18 MiB and more), each to the next, in sizes that
 * are no part of anything. */
static void stream_of_large_ones(ct_group *group, void *arg)
{
    unsigned char *out = take(group, 0), *in = take(group, 0);

    (void)arg;
    for (size_t i = 0; i < 60; i++)
        round_of(group, out, in, 1 + i * 104729 % 600000);
    EXPECT_OK(ct_barrier(group, NULL));
    give(group, in, 0);
    give(group, out, 0);
}

static void messages_arrive_whole_while_their_rings_grow(void **state)
{
    (void)state;
    run_ranks(2, stream_of_large_ones, NULL);
    run_ranks(3, stream_of_large_ones, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_byte_arrives_whatever_the_size_and_the_memory),
        cmocka_unit_test(small_messages_in_a_row_arrive_whole),
        cmocka_unit_test(messages_arrive_whole_while_their_rings_grow),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
