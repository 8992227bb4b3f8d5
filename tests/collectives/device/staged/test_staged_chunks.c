/* SPDX-License-Identifier: Apache-2.0 */
/* test_staged_chunks.c - a staged call and its pieces, on a made-up device: its memory is the
 * host's, and a copy runs at the last moment, when the call waits for it.  So a call that does not
 * wait finds the old bytes, each time; and the copies that run beside the host's algorithm can be
 * counted.
 *
 * With one rank: the algorithm is the test's own. */
#include "tests/harness.h"

#include <stdlib.h>
#include <string.h>

#include "collectives/device/staged/staged.h"
#include "runtime/util/clock.h"

enum { COUNT = 1000, EACH = 64, PIECES = 16, MOST_COPIES = 200, LIMIT_MS = 20000 };

struct copy {
    enum copy_way way;
    void *to;
    const void *from;
    size_t bytes;
    int done;
};

/* All copies of a way before the number. */
struct mark {
    enum copy_way way;
    int before;
};

static struct late {
    struct copy copies[MOST_COPIES];
    int begun, marks;
    int calls, fails; /* of its functions; which one fails */
    int runs, fails_run;
    int beside[COPY_WAYS][PIECES]; /* copies not done while the host has piece k */
} late;

static ct_status may_fail(void)
{
    return ++late.calls == late.fails ? ct_fail(CT_ERR_CUDA, "the device fails") : CT_OK;
}

static ct_status late_enter(void **before)
{
    *before = NULL;
    return CT_OK;
}

static void late_leave(void *before)
{
    (void)before;
}

static ct_status late_pin(struct device *device, void *memory, size_t bytes)
{
    (void)device;
    (void)memory;
    (void)bytes;
    return CT_OK;
}

static ct_status late_unpin(struct device *device, void *memory, int may_wait)
{
    (void)device;
    (void)memory;
    (void)may_wait;
    return CT_OK;
}

static ct_status late_begin(struct device *device, enum copy_way way, void *to, const void *from,
                            size_t bytes)
{
    (void)device;
    if (may_fail() != CT_OK)
        return CT_ERR_CUDA;
    late.copies[late.begun++] = (struct copy){ way, to, from, bytes, 0 };
    return CT_OK;
}

static ct_status late_mark(struct device *device, enum copy_way way, void **mark)
{
    struct mark *made;

    (void)device;
    *mark = NULL;
    if (may_fail() != CT_OK || !(made = malloc(sizeof *made)))
        return CT_ERR_CUDA;
    *made = (struct mark){ way, late.begun };
    late.marks++;
    *mark = made;
    return CT_OK;
}

static void do_copies(enum copy_way way, int before)
{
    for (int i = 0; i < before; i++) {
        struct copy *copy = &late.copies[i];

        if (copy->way == way && !copy->done)
            memcpy(copy->to, copy->from, copy->bytes);
        copy->done |= copy->way == way;
    }
}

static ct_status late_wait(struct device *device, void *mark, struct patience patience)
{
    const struct mark *m = mark;

    (void)device;
    (void)patience;
    if (may_fail() != CT_OK)
        return CT_ERR_CUDA;
    do_copies(m->way, m->before);
    return CT_OK;
}

static void late_forget(struct device *device, void *mark)
{
    (void)device;
    free(mark);
    late.marks--;
}

static void late_end(struct device *device)
{
    (void)device;
    do_copies(COPY_TO_HOST, late.begun);
    do_copies(COPY_FROM_HOST, late.begun);
}

static int not_done(enum copy_way way)
{
    int count = 0;

    for (int i = 0; i < late.begun; i++)
        count += late.copies[i].way == way && !late.copies[i].done;
    return count;
}

static const struct space late_space = { .name = "late",
                                         .enter = late_enter,
                                         .leave = late_leave,
                                         .register_host = late_pin,
                                         .unregister_host = late_unpin,
                                         .begin_copy = late_begin,
                                         .mark_copies = late_mark,
                                         .wait_for = late_wait,
                                         .forget = late_forget,
                                         .end_copies = late_end };

/* ---- A call ------------------------------------------------------------------------------- */

/* Of one rank: what it gives is what it gets, with every bit turned, so that no check takes one for
 * the other. */
static ct_status turn_bits(struct call *c)
{
    const struct span in = block_at(c, &c->send, 0), out = block_at(c, &c->recv, 0);

    for (int way = 0; way < COPY_WAYS; way++)
        late.beside[way][late.runs] = not_done((enum copy_way)way);
    if (++late.runs == late.fails_run)
        return ct_fail(CT_ERR_PEER, "the host's part fails");
    for (size_t i = 0; i < out.bytes; i++)
        out.data[i] = (char)~in.data[i];
    return CT_OK;
}

static const struct algorithm turns = { .name = "turns", .run = turn_bits };

static struct call call_on(ct_group *group, void *send, void *recv, int operation, ct_dtype dtype)
{
    return (struct call){ .group = group,
                          .element = ct_dtype_size(dtype),
                          .signature = { .count = COUNT,
                                         .operation = (uint8_t)operation,
                                         .dtype = (uint8_t)dtype,
                                         .op = (int16_t)(operation == OPERATION_ALL_REDUCE ? CT_SUM
                                                                                           : -1),
                                         .root = -1 },
                          .send = { .base = send, .count = COUNT, .blocks = 1 },
                          .recv = { .base = recv, .count = COUNT, .blocks = 1 },
                          .deadline = deadline_after(LIMIT_MS),
                          .algorithm = &turns,
                          .place = { &late_space, NULL } };
}

static void fill(int32_t *numbers)
{
    for (int i = 0; i < COUNT; i++)
        numbers[i] = i;
}

static ct_status make(ct_group *group, int32_t *send, int32_t *recv)
{
    struct call c = call_on(group, send, recv, OPERATION_ALL_REDUCE, CT_I32);
    enum path_result result;

    piece_sizes = (struct piece_sizes){ EACH * sizeof *send, EACH * sizeof *send };
    fill(send);
    return EXPECT(device_group_of(group) != NULL) ? staged_path.run(&c, &result) : CT_ERR_NOMEM;
}

static int all_turned(const int32_t *numbers)
{
    int right = 0;

    while (right < COUNT && numbers[right] == ~right)
        right++;
    return right == COUNT;
}

/* ---- What is right, and beside what ---------------------------------------------------------- */

static void copies_go_on(ct_group *group, void *arg)
{
    static int32_t send[COUNT], recv[COUNT];

    (void)arg;
    for (int in_place = 0; in_place < 2; in_place++) {
        late = (struct late){ .fails = 0 };
        EXPECT_OK(make(group, in_place ? recv : send, recv));
        EXPECT(late.runs == PIECES && all_turned(recv));
        EXPECT(late.marks == 0 && late.begun == 2 * PIECES);
        EXPECT(not_done(COPY_TO_HOST) == 0 && not_done(COPY_FROM_HOST) == 0);
        for (int k = 0; k < PIECES; k++) {
            EXPECT(late.beside[COPY_TO_HOST][k] == (k + 1 < PIECES));
            EXPECT(late.beside[COPY_FROM_HOST][k] >= (k > 0));
        }
    }
}

static void while_the_host_has_a_piece_the_next_comes_and_the_last_goes(void **state)
{
    (void)state;
    run_processes(1, copies_go_on, NULL);
}

/* ---- Failures -------------------------------------------------------------------------------- */

/* Of what the device is asked for each thing fails once, and of the host's part each piece. */
static void all_fail_once(ct_group *group, void *arg)
{
    static int32_t send[COUNT], recv[COUNT];
    int asked;

    (void)arg;
    late = (struct late){ .fails = 0 };
    EXPECT_OK(make(group, send, recv));
    asked = late.calls;
    EXPECT(asked >= 6 * PIECES);
    for (int i = 1; i <= asked + PIECES; i++) {
        late = (struct late){ .fails = i <= asked ? i : 0, .fails_run = i - asked };
        EXPECT_ERROR(make(group, send, recv), i <= asked ? CT_ERR_CUDA : CT_ERR_PEER,
                     i <= asked ? "the device fails" : "the host's part fails");
        EXPECT(not_done(COPY_TO_HOST) == 0 && not_done(COPY_FROM_HOST) == 0);
        EXPECT(late.marks == 0);
    }
    late = (struct late){ .fails = 0 };
    EXPECT_OK(make(group, send, recv));
    EXPECT(all_turned(recv));
}

static void whatever_fails_no_copy_is_left_running(void **state)
{
    (void)state;
    run_processes(1, all_fail_once, NULL);
}

/* ---- What is cut ----------------------------------------------------------------------------- */

static size_t pieces(ct_group *group, int operation, ct_dtype dtype)
{
    static char memory[COUNT * 8];
    const struct call c = call_on(group, memory, memory, operation, dtype);

    return pieces_of(&c).pieces;
}

static void cuts(ct_group *group, void *arg)
{
    static char memory[COUNT * 8];
    struct call c = call_on(group, memory, memory, OPERATION_BROADCAST, CT_F32);
    struct pieces p;
    size_t all = 0;

    (void)arg;
    piece_sizes = (struct piece_sizes){ 1000, 1000 };
    p = pieces_of(&c);
    for (size_t k = 0; k < p.pieces; k++) {
        const struct span block = piece_block(&c, &p, &c.recv, 0, k);

        EXPECT(block.data == memory + all && block.bytes > 0);
        all += block.bytes;
    }
    EXPECT(all == COUNT * sizeof(float));
    EXPECT(pieces(group, OPERATION_ALL_REDUCE, CT_F32) > 1);
    EXPECT(pieces(group, OPERATION_ALL_GATHER_V, CT_F32) == 1);
    group->order.rule = ORDER_FAST;
    EXPECT(pieces(group, OPERATION_ALL_REDUCE, CT_F32) == 1);
    EXPECT(pieces(group, OPERATION_ALL_REDUCE, CT_I32) > 1);
    EXPECT(pieces(group, OPERATION_BROADCAST, CT_F32) > 1);
    piece_sizes = (struct piece_sizes){ (size_t)1 << 20, 1000 };
    EXPECT(pieces(group, OPERATION_ALL_REDUCE, CT_I32) == 1);
}

static void what_is_cut_is_what_all_ranks_know_and_whose_bits_stay(void **state)
{
    (void)state;
    run_processes(1, cuts, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(while_the_host_has_a_piece_the_next_comes_and_the_last_goes),
        cmocka_unit_test(whatever_fails_no_copy_is_left_running),
        cmocka_unit_test(what_is_cut_is_what_all_ranks_know_and_whose_bits_stay),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
