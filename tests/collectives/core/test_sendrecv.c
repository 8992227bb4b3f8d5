/* SPDX-License-Identifier: Apache-2.0 */
/* test_sendrecv.c - blocks that go a piece at a time, where the piece depends on the ranks. */
#include "tests/harness.h"

#include <stdlib.h>
#include <string.h>

#include "collectives/core/sendrecv.h"

enum { RANKS = 9 };

static size_t piece_of_ranks(int p)
{
    struct ct_group group = { .size = p };
    const struct call call = { .group = &group };

    return piece_of_each(&call);
}

static void a_place_for_each_rank_takes_no_more_of_many_ranks(void **state)
{
    (void)state;
    assert_int_equal(piece_of_ranks(2), 1 << 20);
    assert_int_equal(piece_of_ranks(8), 1 << 20);
    for (int p = 1; p <= 100000; p++) {
        assert_true((size_t)p * piece_of_ranks(p) <= SCRATCH_BYTES);
        assert_true(piece_of_ranks(p) > 0 && piece_of_ranks(p) % 64 == 0); /* whole elements */
    }
}

/* Rank r gives r + i + 1 as element i of each block. */
static void one_element_more_than_a_piece(ct_group *group, void *unused)
{
    const size_t count = piece_of_ranks(RANKS) / sizeof(int32_t) + 1;
    int32_t *const send = malloc(RANKS * count * sizeof *send);
    int32_t *const recv = malloc(count * sizeof *recv);

    (void)unused;
    if (!send || !recv)
        abort();
    for (size_t i = 0; i < RANKS * count; i++)
        send[i] = ct_rank(group) + (int32_t)(i % count) + 1;
    EXPECT_OK(ct_reduce_scatter(group, send, recv, count, CT_I32, CT_SUM, NULL));
    for (size_t i = 0; i < count; i++)
        if (!EXPECT(recv[i] == RANKS * (int32_t)i + RANKS * (RANKS + 1) / 2))
            break;
    free(send);
    free(recv);
}

static void a_block_longer_than_a_piece_of_nine_ranks_is_summed(void **state)
{
    static const char *const rows[] = { "direct", "nodes" };

    (void)state;
    setenv("CT_FAULT", "hosts:0.0.0.1.1.1.2.2.2", 1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        setenv("CT_REDUCE_SCATTER", rows[i], 1);
        run_processes(RANKS, one_element_more_than_a_piece, NULL);
    }
    unsetenv("CT_REDUCE_SCATTER");
    unsetenv("CT_FAULT");
}

/* Rank r gives r + i + 1 as element i; the last piece may have fewer elements than there are
 * ranks. */
static void sum_of(ct_group *group, size_t count, int in_place)
{
    const int p = ct_size(group);
    int32_t *const send = malloc(count * sizeof *send);
    int32_t *const recv = in_place ? send : malloc(count * sizeof *recv);

    if (!send || !recv)
        abort();
    for (size_t i = 0; i < count; i++)
        send[i] = ct_rank(group) + (int32_t)i + 1;
    EXPECT_OK(ct_all_reduce(group, send, recv, count, CT_I32, CT_SUM, NULL));
    EXPECT(!strcmp(ct_last_algorithm(group), "two_shot"));
    for (size_t i = 0; i < count; i++)
        if (!EXPECT(recv[i] == p * (int32_t)i + p * (p + 1) / 2))
            break;
    free(send);
    if (!in_place)
        free(recv);
}

static void around_one_and_more_pieces(ct_group *group, void *unused)
{
    const size_t piece = (size_t)ct_size(group) * EAGER_MOST / sizeof(int32_t);

    (void)unused;
    for (size_t pieces = 1; pieces < 5; pieces++)
        for (size_t more = 0; more < 3; more++)
            sum_of(group, pieces * piece + more - 1, more % 2 == 0);
}

static void an_all_reduce_by_pieces_may_end_anywhere(void **state)
{
    (void)state;
    setenv("CT_ALL_REDUCE", "two_shot", 1);
    for (int p = 2; p < 4; p++)
        run_ranks(p, around_one_and_more_pieces, NULL);
    unsetenv("CT_ALL_REDUCE");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_place_for_each_rank_takes_no_more_of_many_ranks),
        cmocka_unit_test(a_block_longer_than_a_piece_of_nine_ranks_is_summed),
        cmocka_unit_test(an_all_reduce_by_pieces_may_end_anywhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
