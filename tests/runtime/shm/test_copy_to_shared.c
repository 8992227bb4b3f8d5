/* SPDX-License-Identifier: Apache-2.0 */
/* test_copy_to_shared.c - copies into shared memory are whole, whichever way they take. */
#include <stdlib.h>
#include <string.h>

#include "runtime/shm/copy_to_shared.h"
#include "tests/harness.h"

enum { MOST = 20000, GUARD = 128, GUARDED = 0xa5, COPIES = 3000 };

static void fill(unsigned char *to, size_t bytes, unsigned seed)
{
    for (size_t i = 0; i < bytes; i++)
        to[i] = (unsigned char)((i * 2654435761u + seed) >> 13);
}

/* Nothing is written beside it either. */
static void copy_and_compare(struct copy_shared *state, unsigned char *room, size_t shift,
                             const unsigned char *from, size_t bytes)
{
    unsigned char *to = room + GUARD + shift;

    memset(room, GUARDED, MOST + (size_t)3 * GUARD);
    copy_shared(state, to, from, bytes);
    if (bytes > 0)
        assert_memory_equal(to, from, bytes);
    for (size_t i = 0; i < GUARD; i++) {
        assert_int_equal(to[-1 - (ptrdiff_t)i], GUARDED);
        assert_int_equal(to[bytes + i], GUARDED);
    }
}

/* More of them than two trials take, so that both ways are gone. */
static void every_copy_is_whole_at_any_size_and_place(void **context)
{
    static unsigned char room[MOST + 3 * GUARD], from[MOST + 64];
    struct copy_shared state = { .lap = (size_t)256 << 10 };
    unsigned seed = 1;

    (void)context;
    for (int i = 0; i < COPIES; i++) {
        seed = seed * 1103515245u + 12345u;
        const size_t bytes = seed % 7 == 0 ? seed / 7 % 130 : 4000 + seed / 7 % (MOST - 4000);
        const size_t shift = seed / 1000 % 64, source = seed / 77 % 64;

        fill(from, sizeof from, seed);
        copy_and_compare(&state, room, shift, from + source, bytes);
    }
}

/* What it found: the times are the machine's, the choice that follows from them is not. */
static void the_way_past_the_caches_is_taken_where_it_costs_the_writer_half(void **context)
{
    static unsigned char to[8192], from[8192];
    struct copy_shared state = { .lap = (size_t)256 << 10 };
    int chosen = 0;

    (void)context;
    for (int i = 0; i < 5000000 && chosen < 3; i++) {
        const size_t was_trying = state.trying;

        copy_shared(&state, to, from, sizeof to);
        if (!was_trying || state.trying)
            continue;
        assert_int_equal(state.streams, 2 * state.cost[1] < state.cost[0]);
        chosen++;
    }
    assert_int_equal(chosen, 3);
}

/* The memory grows while a trial runs, and one copy ends it: then that one counts. */
static void a_way_is_never_chosen_unmeasured(void **context)
{
    enum { SMALL = 8 << 10, LARGE = 256 << 10 };
    static unsigned char to[LARGE], from[LARGE];
    struct copy_shared state = { .lap = 3 * SMALL };

    (void)context;
    for (int i = 0; i < 1000 && !state.trying; i++)
        copy_shared(&state, to, from, SMALL);
    assert_int_not_equal(state.trying, 0);
    assert_true(state.cost[1] == 0);
    state.lap = 3 * LARGE;
    copy_shared(&state, to, from, LARGE);
    assert_int_equal(state.trying, 0);
    assert_true(state.cost[1] > 0);
}

static void nothing_is_copied_from_nowhere(void **context)
{
    struct copy_shared state = { .lap = 4096 };

    (void)context;
    copy_shared(&state, NULL, NULL, 0);
    assert_int_equal(state.copies, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_copy_is_whole_at_any_size_and_place),
        cmocka_unit_test(the_way_past_the_caches_is_taken_where_it_costs_the_writer_half),
        cmocka_unit_test(a_way_is_never_chosen_unmeasured),
        cmocka_unit_test(nothing_is_copied_from_nowhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
