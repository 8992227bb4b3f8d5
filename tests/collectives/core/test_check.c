/* SPDX-License-Identifier: Apache-2.0 */
/* test_check.c - which blocks may overlap, and how long the check takes.
 *
 * The check of a call's arguments alone, with a group of one process: nothing is sent. */
#include "tests/harness.h"

#include <stdlib.h>
#include <string.h>

#include "collectives/core/call.h"
#include "runtime/util/forks.h"

enum { P = 4, MANY = 2048, SECOND_MS = 1000 };

static ct_status check(int size, int rank, const struct request_of_call *request)
{
    ct_group group = { .member = 1, .size = size, .rank = rank, .maker = forks_maker() }, *resolved;
    struct request_of_call r = *request;
    struct place place;

    r.group = &group;
    r.op = r.root = NONE;
    return check_call(&r, &resolved, &place);
}

/* ---- What is refused ------------------------------------------------------------ */

static char memory[64];

#define EACH_ONE     \
    (const size_t[]) \
    {                \
        1, 1, 1, 1   \
    }

/* Rank 1 of 4, bytes. */
static const struct {
    const char *what;
    struct request_of_call request;
    const char *words; /* NULL: it may be so */
} sides[] = {
    { "one place for all blocks of a list",
      { .operation = OPERATION_ALL_GATHER,
        .in_place = IN_PLACE_OWN_RECV,
        .send = { .base = memory + 60, .count = 1, .blocks = 1 },
        .recv = { .list = (void *const[]){ memory, memory, memory, memory },
                  .count = 1,
                  .blocks = P } },
      "all_gather|two blocks of the recv buffer overlap" },
    { "all displacements 0",
      { .operation = OPERATION_ALL_GATHER_V,
        .in_place = IN_PLACE_OWN_RECV,
        .send = { .base = memory + 60, .count = 1, .blocks = 1 },
        .recv = { .base = memory,
                  .counts = EACH_ONE,
                  .displs = (const size_t[]){ 0, 0, 0, 0 },
                  .blocks = P } },
      "all_gather_v|two blocks of the recv buffer overlap" },
    { "the last block begins in the first",
      { .operation = OPERATION_ALL_TO_ALL_V,
        .in_place = IN_PLACE_WHOLE,
        .send = { .base = memory + 32, .counts = EACH_ONE, .blocks = P },
        .recv = { .base = memory,
                  .counts = (const size_t[]){ 3, 1, 1, 1 },
                  .displs = (const size_t[]){ 0, 5, 7, 2 },
                  .blocks = P } },
      "all_to_all_v|two blocks of the recv buffer overlap" },
    { "blocks in another order, with a hole and an empty one inside another",
      { .operation = OPERATION_ALL_TO_ALL_V,
        .in_place = IN_PLACE_WHOLE,
        .send = { .base = memory + 32, .counts = EACH_ONE, .blocks = P },
        .recv = { .base = memory,
                  .counts = (const size_t[]){ 3, 2, 0, 1 },
                  .displs = (const size_t[]){ 4, 2, 5, 0 },
                  .blocks = P } },
      NULL },
    { "one block is sent to all",
      { .operation = OPERATION_ALL_TO_ALL,
        .in_place = IN_PLACE_WHOLE,
        .send = { .list = (void *const[]){ memory, memory, memory, memory },
                  .count = 2,
                  .blocks = P },
        .recv = { .base = memory + 32, .count = 2, .blocks = P } },
      NULL },
    { "all blocks in place, in any order",
      { .operation = OPERATION_ALL_TO_ALL,
        .in_place = IN_PLACE_WHOLE,
        .send = { .list = (void *const[]){ memory + 6, memory, memory + 2, memory + 4 },
                  .count = 2,
                  .blocks = P },
        .recv = { .list = (void *const[]){ memory + 6, memory, memory + 2, memory + 4 },
                  .count = 2,
                  .blocks = P } },
      NULL },
    { "blocks of another rank in place",
      { .operation = OPERATION_ALL_TO_ALL,
        .in_place = IN_PLACE_WHOLE,
        .send = { .list = (void *const[]){ memory, memory + 6, memory + 2, memory + 4 },
                  .count = 2,
                  .blocks = P },
        .recv = { .list = (void *const[]){ memory + 6, memory, memory + 2, memory + 4 },
                  .count = 2,
                  .blocks = P } },
      "all_to_all|send and the recv buffer overlap" },
    { "the own block of recv is sent",
      { .operation = OPERATION_ALL_GATHER,
        .in_place = IN_PLACE_OWN_RECV,
        .send = { .base = memory + 2, .count = 2, .blocks = 1 },
        .recv = { .base = memory, .count = 2, .blocks = P } },
      NULL },
    { "the block of rank 2 is sent",
      { .operation = OPERATION_ALL_GATHER,
        .in_place = IN_PLACE_OWN_RECV,
        .send = { .base = memory + 4, .count = 2, .blocks = 1 },
        .recv = { .base = memory, .count = 2, .blocks = P } },
      "all_gather|send and the recv buffer overlap" },
    { "the own block of send is received",
      { .operation = OPERATION_REDUCE_SCATTER,
        .in_place = IN_PLACE_OWN_SEND,
        .send = { .base = memory, .count = 2, .blocks = P },
        .recv = { .base = memory + 2, .count = 2, .blocks = 1 } },
      NULL },
    { "half of the own block of send",
      { .operation = OPERATION_REDUCE_SCATTER,
        .in_place = IN_PLACE_OWN_SEND,
        .send = { .base = memory, .count = 2, .blocks = P },
        .recv = { .base = memory + 3, .count = 2, .blocks = 1 } },
      "reduce_scatter|send and the recv buffer overlap" },
};

static void blocks_that_are_written_overlap_nothing_but_in_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof sides / sizeof *sides; i++) {
        struct request_of_call request = sides[i].request;
        ct_status status;

        request.dtype = CT_U8;
        status = check(P, 1, &request);
        if (sides[i].words)
            EXPECT_ERROR(status, CT_ERR_INVALID, sides[i].words);
        else if (status != CT_OK)
            expect_fails(__FILE__, __LINE__, "%s: %s", sides[i].what, ct_last_error());
    }
}

/* ---- What it costs ---------------------------------------------------------------- */

/* In place and packed, as for the other rows in ascending order; with displacements, in the
 * opposite. */
static void a_check_of_thousands_of_blocks_takes_no_second(void **state)
{
    size_t *counts = malloc(MANY * sizeof *counts), *displs = malloc(MANY * sizeof *displs);
    char *all = calloc(MANY, 2);
    struct request_of_call request = { .operation = OPERATION_ALL_TO_ALL_V,
                                       .dtype = CT_U8,
                                       .in_place = IN_PLACE_WHOLE };
    double begun;

    (void)state;
    for (size_t i = 0; i < MANY; i++) {
        counts[i] = 2;
        displs[i] = 2 * (MANY - 1 - i);
    }
    request.send = request.recv = (struct blocks){ .base = all, .counts = counts, .blocks = MANY };
    begun = now_ms();
    EXPECT_OK(check(MANY, 0, &request));
    request.send.displs = request.recv.displs = displs;
    EXPECT_OK(check(MANY, 0, &request));
    displs[MANY / 2]++;
    EXPECT_STATUS(check(MANY, 0, &request), CT_ERR_INVALID);
    EXPECT(now_ms() - begun < SECOND_MS);
    free(all);
    free(displs);
    free(counts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_that_are_written_overlap_nothing_but_in_place),
        cmocka_unit_test(a_check_of_thousands_of_blocks_takes_no_second),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
