/* SPDX-License-Identifier: Apache-2.0 */
/* test_root_cause.c - which rank caused a failure. */
#include "tests/harness.h"

#include <signal.h>

#include "launcher/report/root_cause.h"
#include "runtime/types/call_signature.h"

#define WORLD 8

static struct root_graph graph;

static int begin(void **state)
{
    (void)state;
    root_graph_begin(&graph, WORLD);
    return 0;
}

static int end(void **state)
{
    (void)state;
    root_graph_free(&graph);
    return 0;
}

static struct control_blame on(int rank, enum blame_reason reason)
{
    return (struct control_blame){ .on = { rank, reason },
                                   .group = 5,
                                   .call = {
                                       .seq = 4, .begun_ns = 1, .operation = OPERATION_BARRIER } };
}

/* A rank ends; its number makes its pid. */
static void ends(int rank, int how, int code, int asked, struct control_blame blame)
{
    const struct control_death death = {
        .rank = rank, .how = how, .code = code, .asked = asked, .pid = 100 + rank, .blame = blame
    };

    root_graph_died(&graph, &death, 1);
}

static void exits(int rank, int code, struct control_blame blame)
{
    ends(rank, CLD_EXITED, code, 0, blame);
}

static void is_ended(int rank, struct control_blame blame)
{
    ends(rank, CLD_KILLED, SIGTERM, SIGTERM, blame);
}

static const struct control_blame none;

static void expect_root(enum root_kind kind, int rank, int code, const char *words)
{
    const struct root_cause root = root_graph_find(&graph);
    char text[512];

    assert_int_equal(root.kind, kind);
    assert_int_equal(root.rank, rank);
    assert_int_equal(root.code, code);
    root_graph_words(&graph, &root, text, sizeof text);
    assert_string_equal(text, words);
}

static void without_an_edge_there_is_no_root(void **state)
{
    (void)state;
    exits(1, 3, none);
    exits(2, 3, none);
    assert_int_equal(root_graph_find(&graph).kind, ROOT_NONE);
}

static void a_victim_that_died_first_is_not_the_root(void **state)
{
    (void)state;
    exits(0, 7, on(2, BLAME_LEFT));
    exits(1, 7, on(0, BLAME_DIED));
    exits(2, 3, none);
    expect_root(ROOT_EXITED, 2, 3, "rank 2 (pid 102) exited with code 3");
}

static void a_victim_that_aborts_or_crashes_is_not_the_root(void **state)
{
    (void)state;
    ends(0, CLD_DUMPED, SIGABRT, 0, on(2, BLAME_DIED));
    ends(1, CLD_KILLED, SIGSEGV, 0, on(2, BLAME_DIED));
    exits(2, 3, none);
    expect_root(ROOT_EXITED, 2, 3, "rank 2 (pid 102) exited with code 3");
}

static void a_rank_that_left_with_0_is_the_root_and_the_code_is_1(void **state)
{
    (void)state;
    exits(2, 0, none);
    exits(0, 7, on(2, BLAME_DIED));
    is_ended(1, on(2, BLAME_DIED));
    is_ended(3, on(2, BLAME_DIED));
    expect_root(ROOT_LEFT, 2, 1,
                "rank 2 (pid 102) left with exit code 0 while ranks 0-1 and 3 were in barrier #4; "
                "rank 0 then exited with code 7");
}

static void the_code_of_a_late_root_is_the_first_victims(void **state)
{
    (void)state;
    exits(0, 7, on(2, BLAME_LATE));
    is_ended(2, none);
    expect_root(ROOT_LATE, 2, 7,
                "rank 2 (pid 102) did not join in time while rank 0 (pid 100) was in barrier #4; "
                "rank 0 then exited with code 7");
}

/* A rank that ctrun ended.  It had begun that call of group 5, and no later one. */
static struct control_death ended_at(int rank, uint64_t begun, int is_in_call)
{
    struct control_death death = { .rank = rank,
                                   .how = CLD_KILLED,
                                   .code = SIGTERM,
                                   .asked = SIGTERM,
                                   .pid = 100 + rank,
                                   .tombs = 1,
                                   .tomb = { { 5, begun, begun - (uint64_t)is_in_call, 99 } } };

    if (is_in_call) {
        death.blame = on(0, BLAME_NONE);
        death.blame.call.seq = begun;
        death.blame.call_hash = 99;
    }
    return death;
}

static void is_ended_at(int rank, uint64_t begun, int is_in_call, int stopped)
{
    struct control_death death = ended_at(rank, begun, is_in_call);

    death.stopped = stopped;
    root_graph_died(&graph, &death, 1);
}

static void a_rank_that_stands_still_in_the_call_is_not_said_to_have_not_come(void **state)
{
    (void)state;
    exits(0, 7, on(2, BLAME_LATE));
    is_ended_at(2, 4, 1, 0);
    expect_root(ROOT_LATE, 2, 7,
                "rank 2 (pid 102) got no further in the same call while rank 0 (pid 100) was in "
                "barrier #4; rank 0 then exited with code 7");
}

/* Rank 1 waited for rank 2 too, but ctrun ended it before it could say so. */
static void ctrun_knows_for_whom_a_rank_waited_that_it_ended(void **state)
{
    (void)state;
    exits(0, 7, on(1, BLAME_LATE));
    is_ended_at(1, 4, 1, 0);
    is_ended_at(2, 3, 0, 0);
    is_ended_at(3, 4, 1, 0);
    expect_root(ROOT_LATE, 2, 7,
                "rank 2 (pid 102) did not join in time while rank 1 (pid 101) was in barrier #4; "
                "rank 0 then exited with code 7");
}

static void of_the_ranks_that_are_behind_one_that_was_stopped_is_the_root(void **state)
{
    (void)state;
    exits(0, 7, on(1, BLAME_DIED));
    is_ended_at(1, 4, 1, 0);
    is_ended_at(2, 3, 0, 0);
    is_ended_at(3, 3, 0, 1);
    expect_root(ROOT_STOPPED, 3, 7,
                "rank 3 (pid 103) was stopped while rank 1 (pid 101) was in barrier #4; rank 0 "
                "then exited with code 7");
}

/* A rank that is stopped within the call comes before one that has not begun it. */
static void a_rank_that_was_stopped_in_the_call_is_the_root(void **state)
{
    (void)state;
    exits(0, 7, on(1, BLAME_LATE));
    is_ended_at(1, 4, 1, 0);
    is_ended_at(2, 4, 1, 1);
    is_ended_at(3, 3, 0, 0);
    expect_root(ROOT_STOPPED, 2, 7,
                "rank 2 (pid 102) was stopped while rank 1 (pid 101) was in barrier #4; rank 0 "
                "then exited with code 7");
}

/* Rank 1 waited in group 5 for rank 2, which waited in group 6 for rank 3.  The answer does not
 * depend on the numbers of the ranks, nor on how often it is asked for. */
static void ranks_that_ctrun_ended_may_form_a_chain(void **state)
{
    (void)state;
    for (int blamer = 0; blamer <= 4; blamer += 4) {
        struct control_death second = ended_at(2, 3, 0), third = ended_at(3, 8, 0);

        second.tombs = 2;
        second.tomb[1] = (struct control_tomb){ 6, 9, 8, 99 };
        second.blame = on(0, BLAME_NONE);
        second.blame.group = third.tomb[0].group = 6;
        second.blame.call.seq = 9;
        root_graph_begin(&graph, 5);
        exits(blamer, 7, on(1, BLAME_LATE));
        is_ended_at(1, 4, 1, 0);
        root_graph_died(&graph, &second, 1);
        root_graph_died(&graph, &third, 1);
        for (int times = 0; times < 2; times++) {
            assert_int_equal(root_graph_find(&graph).kind, ROOT_LATE);
            assert_int_equal(root_graph_find(&graph).rank, 3);
        }
    }
}

/* ctrun had asked it too late, or it is known to have done something else than wait. */
static void an_edge_that_says_more_than_late_is_not_followed_further(void **state)
{
    static const struct {
        int reason, code;
        enum root_kind kind;
    } cases[] = { { BLAME_DIED, SIGKILL, ROOT_KILLED },
                  { BLAME_MISMATCH, SIGTERM, ROOT_MISMATCH },
                  { BLAME_LEFT, SIGTERM, ROOT_DESTROYED },
                  { BLAME_FAILED, SIGTERM, ROOT_FAILED } };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct control_death death = ended_at(1, 4, 1);
        struct root_cause root;

        death.code = cases[i].code;
        root_graph_begin(&graph, 4);
        exits(0, 7, on(1, cases[i].reason));
        root_graph_died(&graph, &death, 1);
        is_ended_at(2, 3, 0, 0);
        root = root_graph_find(&graph);
        assert_int_equal(root.kind, cases[i].kind);
        assert_true(root_graph_is_marked(&graph, 1));
        assert_false(root_graph_is_marked(&graph, 2));
    }
}

/* A quadratic search would take minutes here. */
static void many_ranks_that_wait_for_one_that_hangs(void **state)
{
    enum { MANY = 100000 };

    (void)state;
    root_graph_begin(&graph, MANY);
    is_ended_at(0, 4, 1, 0);
    for (int rank = 1; rank < MANY; rank++)
        if (rank % 2)
            exits(rank, 7, on(0, BLAME_LATE));
        else
            is_ended_at(rank, 4, 1, 0);
    assert_int_equal(root_graph_find(&graph).kind, ROOT_LATE);
    assert_int_equal(root_graph_find(&graph).rank, 0);
}

static void a_late_rank_that_found_the_others_dead_is_the_root(void **state)
{
    (void)state;
    exits(0, 7, on(2, BLAME_LATE));
    exits(2, 9, on(0, BLAME_DIED));
    assert_int_equal(root_graph_find(&graph).rank, 2);
}

static void a_stopped_rank_is_named_as_stopped(void **state)
{
    (void)state;
    exits(0, 7, on(2, BLAME_STOPPED));
    exits(1, 7, on(2, BLAME_LATE));
    is_ended(2, none);
    expect_root(ROOT_STOPPED, 2, 7,
                "rank 2 (pid 102) was stopped while ranks 0-1 were in barrier #4; rank 0 then "
                "exited with code 7");
}

static void ranks_that_wait_for_each_other_are_one_root(void **state)
{
    (void)state;
    is_ended(6, on(4, BLAME_LATE));
    exits(4, 7, on(5, BLAME_LATE));
    exits(5, 8, on(6, BLAME_LATE));
    exits(1, 9, on(4, BLAME_DIED));
    expect_root(ROOT_DEADLOCK, 4, 7,
                "ranks 4-6 wait for each other in barrier #4 (a deadlock); rank 1 then exited with "
                "code 9");
}

/* A quadratic walk would take minutes here. */
static void a_ring_of_many_ranks_is_one_root(void **state)
{
    enum { MANY = 200000 };

    (void)state;
    root_graph_begin(&graph, MANY);
    for (int rank = 0; rank < MANY; rank++)
        exits(rank, 7, on((rank + 1) % MANY, BLAME_LATE));
    expect_root(ROOT_DEADLOCK, 0, 7,
                "ranks 0-199999 wait for each other in barrier #4 (a deadlock)");
}

/* Ranks 0 to 3; rank `odd` makes a different call.  Each rank blames the rank that it compared
 * with. */
static void makes_calls(int ranks, int odd)
{
    for (int rank = 0; rank < ranks; rank++) {
        const int met = rank == odd ? (odd + 1) % ranks : odd;
        struct control_death death = { .rank = rank,
                                       .how = CLD_EXITED,
                                       .code = 10 + rank,
                                       .pid = 100 + rank,
                                       .blame = on(met, BLAME_MISMATCH),
                                       .tombs = 1,
                                       .tomb = { { 5, 4, 3, rank == odd ? 77 : 99 } } };

        death.blame.call_hash = death.tomb[0].call;
        if (rank % 2) /* it has destroyed the group */
            death.tombs = 0;
        root_graph_died(&graph, &death, 1);
    }
}

static void in_a_mismatch_the_minority_is_the_root(void **state)
{
    (void)state;
    makes_calls(4, 3);
    expect_root(ROOT_MISMATCH, 3, 13,
                "rank 3 (pid 103) made a different call than ranks 0-2, which were in barrier #4; "
                "rank 0 then exited with code 10");
}

static void in_a_mismatch_of_two_both_are_named(void **state)
{
    (void)state;
    makes_calls(2, 1);
    expect_root(ROOT_MISMATCH, 0, 10,
                "ranks 0-1 disagree: they made different calls in barrier #4");
}

/* Rank 2 still runs, and its call will show which of the two is wrong. */
static void in_a_mismatch_the_ranks_that_run_are_marked(void **state)
{
    (void)state;
    makes_calls(2, 1);
    assert_true(root_graph_end(&graph, 0) >= 0);
    for (int rank = 0; rank < 3; rank++)
        assert_true(root_graph_is_marked(&graph, rank));
}

/* Rank 1 had no time yet to blame rank 0. */
static void a_mismatch_that_one_rank_has_told_marks_the_ranks_that_run(void **state)
{
    (void)state;
    exits(0, 7, on(1, BLAME_MISMATCH));
    assert_int_equal(root_graph_end(&graph, 0), 1);
    for (int rank = 1; rank < 3; rank++)
        assert_true(root_graph_is_marked(&graph, rank));
}

static void of_two_roots_the_one_that_was_killed_counts(void **state)
{
    (void)state;
    exits(0, 7, on(2, BLAME_DIED));
    exits(2, 3, none);
    ends(5, CLD_KILLED, SIGSEGV, 0, none);
    expect_root(ROOT_KILLED, 5, 139, "rank 5 (pid 105) was killed by SIGSEGV");
}

static void of_two_roots_that_exited_the_earlier_note_counts(void **state)
{
    struct control_death death = { .how = CLD_EXITED, .code = 3 };

    (void)state;
    exits(0, 7, on(2, BLAME_DIED));
    death.rank = 2, death.noted_ns = 2000;
    root_graph_died(&graph, &death, 1);
    death.rank = 5, death.noted_ns = 1000, death.code = 4;
    root_graph_died(&graph, &death, 1);
    assert_int_equal(root_graph_find(&graph).rank, 5);
}

static void a_rank_that_ctrun_ended_is_no_root_unless_another_names_it(void **state)
{
    (void)state;
    exits(0, 7, on(2, BLAME_DIED));
    exits(2, 3, none);
    is_ended(1, none);
    ends(3, CLD_EXITED, 9, SIGTERM, none);
    assert_int_equal(root_graph_find(&graph).rank, 2);
}

static void the_chain_from_a_victim_ends_at_the_rank_that_may_still_speak(void **state)
{
    const struct control_blame blame = on(3, BLAME_LATE);

    (void)state;
    exits(0, 7, on(1, BLAME_LATE));
    root_graph_blames(&graph, 1, &blame);
    assert_int_equal(root_graph_end(&graph, 0), 3);
    assert_int_equal(root_graph_end(&graph, 3), 3);
    assert_int_equal(root_graph_end(&graph, -1), -1);
}

/* A rank that ctrun lets end by itself finds ranks dead that ctrun has ended. */
static void who_sees_a_rank_that_ctrun_ended_does_not_blame_it(void **state)
{
    (void)state;
    exits(0, 7, on(3, BLAME_LATE));
    is_ended(1, none);
    exits(3, 9, on(1, BLAME_DIED));
    assert_int_equal(root_graph_find(&graph).rank, 3);
}

/* A worker may write anything into its page. */
static void an_edge_to_no_rank_or_for_no_reason_is_none(void **state)
{
    (void)state;
    exits(0, 7, on(WORLD, BLAME_DIED));
    exits(1, 7, on(-1, BLAME_DIED));
    exits(2, 7, on(2, BLAME_DIED));
    exits(3, 7, on(0, BLAME_REASONS));
    exits(4, 7, on(0, (enum blame_reason) - 3));
    assert_int_equal(root_graph_find(&graph).kind, ROOT_NONE);
}

int main(void)
{
#define WITH_GRAPH(test) cmocka_unit_test_setup_teardown(test, begin, end)
    const struct CMUnitTest tests[] = {
        WITH_GRAPH(without_an_edge_there_is_no_root),
        WITH_GRAPH(a_victim_that_died_first_is_not_the_root),
        WITH_GRAPH(a_victim_that_aborts_or_crashes_is_not_the_root),
        WITH_GRAPH(a_rank_that_left_with_0_is_the_root_and_the_code_is_1),
        WITH_GRAPH(the_code_of_a_late_root_is_the_first_victims),
        WITH_GRAPH(a_rank_that_stands_still_in_the_call_is_not_said_to_have_not_come),
        WITH_GRAPH(ctrun_knows_for_whom_a_rank_waited_that_it_ended),
        WITH_GRAPH(of_the_ranks_that_are_behind_one_that_was_stopped_is_the_root),
        WITH_GRAPH(a_rank_that_was_stopped_in_the_call_is_the_root),
        WITH_GRAPH(ranks_that_ctrun_ended_may_form_a_chain),
        WITH_GRAPH(an_edge_that_says_more_than_late_is_not_followed_further),
        WITH_GRAPH(many_ranks_that_wait_for_one_that_hangs),
        WITH_GRAPH(a_late_rank_that_found_the_others_dead_is_the_root),
        WITH_GRAPH(a_stopped_rank_is_named_as_stopped),
        WITH_GRAPH(ranks_that_wait_for_each_other_are_one_root),
        WITH_GRAPH(a_ring_of_many_ranks_is_one_root),
        WITH_GRAPH(in_a_mismatch_the_minority_is_the_root),
        WITH_GRAPH(in_a_mismatch_of_two_both_are_named),
        WITH_GRAPH(in_a_mismatch_the_ranks_that_run_are_marked),
        WITH_GRAPH(a_mismatch_that_one_rank_has_told_marks_the_ranks_that_run),
        WITH_GRAPH(of_two_roots_the_one_that_was_killed_counts),
        WITH_GRAPH(of_two_roots_that_exited_the_earlier_note_counts),
        WITH_GRAPH(a_rank_that_ctrun_ended_is_no_root_unless_another_names_it),
        WITH_GRAPH(the_chain_from_a_victim_ends_at_the_rank_that_may_still_speak),
        WITH_GRAPH(who_sees_a_rank_that_ctrun_ended_does_not_blame_it),
        WITH_GRAPH(an_edge_to_no_rank_or_for_no_reason_is_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
