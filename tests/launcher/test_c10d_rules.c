/* SPDX-License-Identifier: Apache-2.0 */
/* test_c10d_rules.c - how agents meet, rule by rule, and who is taken for dead.
 *
 * A state is drawn as a word: each letter a node, A to Z; "AB" participate, "AB|C" C
 * waits, "AB|C|D" D is a spare, and a "!" behind it all says that the round is complete.
 * All have beaten at BEAT; `me` is M. */
#include "tests/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/nodes/c10d/heartbeats.h"
#include "launcher/nodes/c10d/state_rules.h"

#define SECOND INT64_C(1000000)
#define BEAT (1000000 * SECOND)
#define DEADLINE (600 * SECOND) /* of the join, monotonic */

static const struct c10d_settings two_to_three = { .min = 2,
                                                   .max = 3,
                                                   .last_call_timeout = 30 * SECOND,
                                                   .keep_alive_interval = 5 * SECOND,
                                                   .keep_alive_max_attempt = 3 };
static const struct c10d_settings *settings = &two_to_three;
static struct c10d_state s;
static struct c10d_watch watch;
static struct c10d_now now;

static const char names[26][2] = {
    "A", "B", "C", "D", "E", "F", "G", "H", "I", "J", "K", "L", "M",
    "N", "O", "P", "Q", "R", "S", "T", "U", "V", "W", "X", "Y", "Z"
};

static struct c10d_node node(char letter)
{
    return (struct c10d_node){ names[letter - 'A'], 1, 0 };
}

static struct c10d_member *member(char letter)
{
    const struct c10d_node who = node(letter);

    return c10d_find(&s, &who);
}

static void draw(const char *word)
{
    unsigned role = C10D_PARTICIPANT;
    int64_t rank = 0;

    c10d_state_free(&s);
    for (; *word; word++) {
        const struct c10d_node who = node(*word >= 'A' && *word <= 'Z' ? *word : 'A');
        struct c10d_member *added;

        if (*word == '|') {
            role <<= 1;
        } else if (*word == '!') {
            s.complete = 1;
        } else {
            assert_non_null(added = c10d_member(&s, &who));
            added->roles = role | C10D_BEATS;
            added->heartbeat = BEAT;
            added->rank = role == C10D_PARTICIPANT ? rank++ : 0;
        }
    }
    now = (struct c10d_now){ .utc = BEAT, .monotonic = 0 };
}

/* The drawing of the state as it is; "-" behind who has no heartbeat. */
static const char *drawing(void)
{
    static char word[64];
    size_t n = 0;

    for (unsigned role = C10D_PARTICIPANT; role <= C10D_SPARE; role <<= 1) {
        for (size_t i = 0; i < s.count; i++) {
            if (!(s.members[i].roles & role))
                continue;
            word[n++] = s.members[i].node.addr[0];
            if (!(s.members[i].roles & C10D_BEATS))
                word[n++] = '-';
        }
        word[n++] = '|';
    }
    while (n > 0 && word[n - 1] == '|')
        n--;
    if (s.complete)
        word[n++] = '!';
    word[n] = 0;
    return word;
}

static void join_says(enum c10d_action expected)
{
    const struct c10d_node me = node('M');
    const enum c10d_action action = c10d_decide_join(&s, &me, now, DEADLINE, settings);

    if (action != expected)
        fail_msg("%s: %s instead of %s", drawing(), c10d_action_name(action),
                 c10d_action_name(expected));
}

static void does(enum c10d_action action, const char *expected)
{
    const struct c10d_node me = node('M');

    assert_int_equal(c10d_apply(&s, action, &me, now, settings, NULL), 0);
    assert_string_equal(drawing(), expected);
}

static int forget_all(void **state)
{
    (void)state;
    c10d_state_free(&s);
    s = (struct c10d_state){ 0 };
    c10d_watch_free(&watch);
    settings = &two_to_three;
    return 0;
}

/* ---- The rules of joining ------------------------------------------------------ */

static void rule_1_a_closed_job_takes_nobody(void **state)
{
    static const char *const words[] = { "", "M", "AM", "ABM!", "AB|M!", "ABC!" };

    (void)state;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        draw(words[i]);
        s.closed = 1;
        join_says(C10D_CLOSED_ERROR);
    }
}

static void rule_1_a_spare_of_a_closed_job_ends_well(void **state)
{
    (void)state;
    draw("ABC||M!");
    s.closed = 1;
    join_says(C10D_QUIT);
}

static void rule_2_a_spare_waits_while_all_places_are_taken(void **state)
{
    (void)state;
    draw("ABC||M!");
    join_says(C10D_SLEEP);
    now.utc = BEAT + 5 * SECOND - 1;
    join_says(C10D_SLEEP);
    now.utc = BEAT + 5 * SECOND;
    join_says(C10D_KEEP_ALIVE);
}

static void rule_2_a_spare_leaves_the_spares_when_a_place_is_free(void **state)
{
    (void)state;
    draw("AB||M!");
    join_says(C10D_LEAVE_SPARES);
    does(C10D_LEAVE_SPARES, "AB!");
    join_says(C10D_JOIN_WAIT_LIST);
    draw("||M");
    join_says(C10D_LEAVE_SPARES);
    does(C10D_LEAVE_SPARES, "");
    join_says(C10D_JOIN);
}

static void rule_2_more_participants_than_ours_leave_no_place(void **state)
{
    (void)state;
    draw("ABCD||M!");
    join_says(C10D_SLEEP);
}

static void rule_2_spares_have_no_deadline(void **state)
{
    (void)state;
    draw("ABC||M!");
    now.monotonic = DEADLINE + 1;
    join_says(C10D_SLEEP);
    now.monotonic = DEADLINE + 1000 * SECOND;
    join_says(C10D_SLEEP);
}

static void rule_3_a_complete_round_that_has_us_is_done(void **state)
{
    (void)state;
    draw("AM!");
    join_says(C10D_FINISH);
    draw("ABM!");
    join_says(C10D_FINISH);
    now.monotonic = DEADLINE + 1;
    join_says(C10D_FINISH);
}

static void rule_3_a_world_smaller_than_min_is_left(void **state)
{
    (void)state;
    draw("M!");
    join_says(C10D_LEAVE);
    does(C10D_LEAVE, "");
    assert_int_equal(s.round, 1);
    join_says(C10D_JOIN);
}

static void rule_3_a_world_that_lost_a_rank_is_left(void **state)
{
    (void)state;
    draw("ABM!");
    member('B')->rank = 3;
    join_says(C10D_LEAVE);
    member('B')->rank = 0;
    join_says(C10D_LEAVE);
    member('A')->rank = member('M')->rank = 0;
    join_says(C10D_LEAVE);
    member('A')->rank = 1;
    member('M')->rank = 2;
    join_says(C10D_FINISH);
}

static void rule_4_after_the_deadline_one_takes_oneself_out(void **state)
{
    (void)state;
    draw("M");
    now.monotonic = DEADLINE;
    join_says(C10D_SLEEP);
    now.monotonic = DEADLINE + 1;
    join_says(C10D_LEAVE);
    now.monotonic = DEADLINE + 5 * SECOND;
    join_says(C10D_LEAVE);
    draw("AB|M!");
    now.monotonic = DEADLINE;
    join_says(C10D_SLEEP);
    now.monotonic = DEADLINE + 1;
    join_says(C10D_LEAVE_WAIT_LIST);
    does(C10D_LEAVE_WAIT_LIST, "AB!");
    join_says(C10D_TIMEOUT_ERROR);
}

static void rule_4_after_five_more_seconds_it_is_an_error(void **state)
{
    (void)state;
    draw("M");
    now.monotonic = DEADLINE + 5 * SECOND + 1;
    join_says(C10D_TIMEOUT_ERROR);
    draw("AB|M!");
    now.monotonic = DEADLINE + 5 * SECOND + 1;
    join_says(C10D_TIMEOUT_ERROR);
}

static void rule_4_who_is_nowhere_times_out_at_once(void **state)
{
    (void)state;
    draw("A");
    now.monotonic = DEADLINE + 1;
    join_says(C10D_TIMEOUT_ERROR);
    draw("AB!");
    now.monotonic = DEADLINE + 1;
    join_says(C10D_TIMEOUT_ERROR);
}

static void rule_5_a_complete_round_with_places_is_waited_for(void **state)
{
    (void)state;
    draw("AB!");
    join_says(C10D_JOIN_WAIT_LIST);
    does(C10D_JOIN_WAIT_LIST, "AB|M!");
    join_says(C10D_SLEEP);
    now.utc = BEAT + 5 * SECOND;
    join_says(C10D_KEEP_ALIVE);
}

static void rule_6_a_full_round_takes_us_as_a_spare(void **state)
{
    (void)state;
    draw("ABC!");
    join_says(C10D_JOIN_SPARES);
    does(C10D_JOIN_SPARES, "ABC||M!");
    join_says(C10D_SLEEP);
    draw("ABCD!");
    join_says(C10D_JOIN_SPARES);
}

static void rule_6_who_waits_becomes_no_spare(void **state)
{
    (void)state;
    draw("ABC|M!");
    join_says(C10D_SLEEP);
}

static void rule_6_agents_that_know_no_spares_get_none(void **state)
{
    (void)state;
    draw("ABC!");
    s.no_spares = 1;
    join_says(C10D_SLEEP);
    now.monotonic = DEADLINE + 1;
    join_says(C10D_TIMEOUT_ERROR);
}

static void rule_7_the_round_is_complete_after_the_last_call(void **state)
{
    (void)state;
    draw("AM");
    s.has_deadline = 1;
    s.deadline = now.utc;
    join_says(C10D_SLEEP);
    now.utc++;
    join_says(C10D_COMPLETE);
    draw("ABM");
    s.has_deadline = 1;
    s.deadline = now.utc - 1;
    join_says(C10D_COMPLETE);
    does(C10D_COMPLETE, "ABM!");
    assert_false(s.has_deadline);
    join_says(C10D_FINISH);
}

static void rule_7_needs_a_deadline_and_a_number_between_min_and_max(void **state)
{
    static const char *const words[] = { "M", "ABCM" };

    (void)state;
    draw("AM");
    now.utc++;
    join_says(C10D_SLEEP); /* no deadline */
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        draw(words[i]);
        s.has_deadline = 1;
        s.deadline = now.utc - 1;
        join_says(C10D_SLEEP);
    }
}

static void rule_8_an_open_round_is_joined(void **state)
{
    (void)state;
    draw("");
    join_says(C10D_JOIN);
    draw("A|M");
    join_says(C10D_JOIN);
    does(C10D_JOIN, "AM");
    draw("ABC"); /* even beyond max, as PyTorch does */
    join_says(C10D_JOIN);
}

static void rule_9_a_heartbeat_is_due_at_its_interval(void **state)
{
    (void)state;
    draw("M");
    now.utc = BEAT + 5 * SECOND - 1;
    join_says(C10D_SLEEP);
    now.utc = BEAT + 5 * SECOND;
    join_says(C10D_KEEP_ALIVE);
    does(C10D_KEEP_ALIVE, "M");
    assert_true(member('M')->heartbeat == now.utc);
    join_says(C10D_SLEEP);
}

static void rule_10_else_one_sleeps(void **state)
{
    (void)state;
    draw("M");
    join_says(C10D_SLEEP);
    member('M')->roles = C10D_PARTICIPANT; /* without a heartbeat none is due */
    now.utc += 100 * SECOND;
    join_says(C10D_SLEEP);
}

/* ---- Leaving, closing, beating -------------------------------------------------- */

static void leaving_ends_when_one_is_no_participant(void **state)
{
    const struct c10d_node me = node('M');

    (void)state;
    draw("AM!");
    assert_int_equal(c10d_decide_leave(&s, &me, now, 0), C10D_LEAVE);
    now.monotonic = 1;
    assert_int_equal(c10d_decide_leave(&s, &me, now, 0), C10D_TIMEOUT_ERROR);
    draw("AB|M!");
    now.monotonic = 1;
    assert_int_equal(c10d_decide_leave(&s, &me, now, 0), C10D_FINISH);
}

static void closing_ends_when_the_job_is_closed(void **state)
{
    (void)state;
    draw("AM!");
    assert_int_equal(c10d_decide_close(&s, now, 0), C10D_CLOSE);
    now.monotonic = 1;
    assert_int_equal(c10d_decide_close(&s, now, 0), C10D_TIMEOUT_ERROR);
    does(C10D_CLOSE, "AM!");
    assert_int_equal(s.closed, 1);
    assert_int_equal(c10d_decide_close(&s, now, 0), C10D_FINISH);
}

static void beating_ends_when_no_heartbeat_is_due(void **state)
{
    const struct c10d_node me = node('M'), stranger = node('X');

    (void)state;
    draw("AM!");
    assert_int_equal(c10d_decide_keep_alive(&s, &me, now, 0, settings), C10D_FINISH);
    now.utc += 5 * SECOND;
    assert_int_equal(c10d_decide_keep_alive(&s, &me, now, 0, settings), C10D_KEEP_ALIVE);
    now.monotonic = 1;
    assert_int_equal(c10d_decide_keep_alive(&s, &me, now, 0, settings), C10D_TIMEOUT_ERROR);
    assert_int_equal(c10d_decide_keep_alive(&s, &stranger, now, 0, settings), C10D_FINISH);
}

/* ---- Effects -------------------------------------------------------------------- */

static void the_last_call_begins_with_exactly_min_participants(void **state)
{
    static const struct c10d_settings wide = { 2, 9, 30 * SECOND, 5 * SECOND, 3 };

    (void)state;
    settings = &wide;
    draw("");
    does(C10D_JOIN, "M");
    assert_false(s.has_deadline);
    draw("A");
    now.utc += 7;
    does(C10D_JOIN, "AM");
    assert_true(s.has_deadline && s.deadline == now.utc + 30 * SECOND);
    assert_true(member('M')->heartbeat == now.utc);
    assert_int_equal(member('M')->rank, 0);
    draw("AB");
    s.has_deadline = 1;
    s.deadline = 5;
    does(C10D_JOIN, "ABM");
    assert_true(s.deadline == 5); /* it is not prolonged */
}

static void the_round_is_complete_with_exactly_max_participants(void **state)
{
    (void)state;
    draw("AB");
    does(C10D_JOIN, "ABM!");
    assert_false(s.has_deadline);
    assert_int_equal(member('A')->rank, 0);
    assert_int_equal(member('B')->rank, 1);
    assert_int_equal(member('M')->rank, 2);
    draw("ABC");
    does(C10D_JOIN, "ABCM"); /* beyond max nobody completes it, as in PyTorch */
}

static void min_equal_to_max_completes_without_a_last_call(void **state)
{
    static const struct c10d_settings one = { 1, 1, 30 * SECOND, 5 * SECOND, 3 };

    (void)state;
    settings = &one;
    draw("");
    does(C10D_JOIN, "M!");
    assert_false(s.has_deadline);
}

static void joining_leaves_the_wait_list_and_waiting_the_spares(void **state)
{
    (void)state;
    draw("|M");
    does(C10D_JOIN, "M");
    draw("AB||M!");
    does(C10D_JOIN_WAIT_LIST, "AB|M!");
}

static void a_spare_makes_the_list_of_spares(void **state)
{
    (void)state;
    draw("ABC!");
    s.no_spares = 1;
    does(C10D_JOIN_SPARES, "ABC||M!");
    assert_int_equal(s.no_spares, 0);
}

static void the_last_to_leave_a_complete_round_opens_the_next(void **state)
{
    (void)state;
    draw("AM|B!");
    s.round = 4;
    does(C10D_LEAVE, "A|B!");
    assert_int_equal(s.round, 4);
    draw("M|B!");
    s.round = 4;
    does(C10D_LEAVE, "|B");
    assert_int_equal(s.round, 5);
}

static void fewer_than_min_have_no_last_call(void **state)
{
    (void)state;
    draw("ABM");
    s.has_deadline = 1;
    does(C10D_LEAVE, "AB");
    assert_true(s.has_deadline);
    draw("AM");
    s.has_deadline = 1;
    does(C10D_LEAVE, "A");
    assert_false(s.has_deadline);
    assert_int_equal(s.round, 0);
    draw("M"); /* open and empty: the same round */
    does(C10D_LEAVE, "");
    assert_int_equal(s.round, 0);
}

static void what_changes_nothing_changes_nothing(void **state)
{
    (void)state;
    draw("ABM|C|D!");
    does(C10D_FINISH, "ABM|C|D!");
    does(C10D_SLEEP, "ABM|C|D!");
    does(C10D_CLOSED_ERROR, "ABM|C|D!");
    does(C10D_TIMEOUT_ERROR, "ABM|C|D!");
    does(C10D_QUIT, "ABM|C|D!");
    draw("AB!");
    does(C10D_LEAVE, "AB!"); /* who is not there cannot leave */
}

/* ---- Ranks ---------------------------------------------------------------------- */

static void participate(const char *addr)
{
    const struct c10d_node who = { addr, 1, 0 };

    assert_int_equal(c10d_add_participant(&s, &who, now, settings, NULL), 0);
}

static int64_t rank_of(const char *addr)
{
    const struct c10d_node who = { addr, 1, 0 };

    assert_non_null(c10d_find(&s, &who));
    return c10d_find(&s, &who)->rank;
}

static void ranks_follow_the_natural_order(void **state)
{
    static const struct c10d_settings wide = { 9, 99, 30 * SECOND, 5 * SECOND, 3 };

    (void)state;
    settings = &wide;
    participate("node10");
    participate("node9");
    participate("node100");
    assert_int_equal(c10d_complete(&s, NULL), 0);
    assert_int_equal(rank_of("node9"), 0);
    assert_int_equal(rank_of("node10"), 1);
    assert_int_equal(rank_of("node100"), 2);
}

static void ranks_stay_and_newcomers_come_last(void **state)
{
    struct c10d_ranks previous = { 0 };

    (void)state;
    draw("CDM!");
    member('C')->rank = 1;
    member('D')->rank = 2;
    member('M')->rank = 0;
    assert_int_equal(c10d_ranks_take(&previous, &s), 0);
    assert_int_equal(previous.count, 3);
    assert_string_equal(previous.nodes[0].addr, "M");
    draw("ABDM"); /* C is gone, A and B are new */
    assert_int_equal(c10d_complete(&s, &previous), 0);
    assert_int_equal(member('M')->rank, 0);
    assert_int_equal(member('D')->rank, 1);
    assert_int_equal(member('A')->rank, 2);
    assert_int_equal(member('B')->rank, 3);
    assert_true(c10d_world_is_whole(&s, settings));
    draw("AB|M"); /* who was in it and only waits gets none */
    assert_int_equal(c10d_complete(&s, &previous), 0);
    assert_int_equal(member('A')->rank, 0);
    assert_int_equal(member('B')->rank, 1);
    assert_int_equal(member('M')->rank, 0);
    c10d_ranks_free(&previous);
}

static void a_thousand_ranks_are_whole(void **state)
{
    static const struct c10d_settings wide = { 1000, 9999, 30 * SECOND, 5 * SECOND, 3 };
    char addr[16];

    (void)state;
    settings = &wide;
    for (int i = 0; i < 1000; i++) {
        assert_false(c10d_world_is_whole(&s, settings));
        snprintf(addr, sizeof addr, "n%d", i);
        participate(addr);
    }
    assert_false(c10d_world_is_whole(&s, settings));
    assert_int_equal(c10d_complete(&s, NULL), 0);
    assert_true(c10d_world_is_whole(&s, settings));
    assert_int_equal(rank_of("n999"), 999);
    s.members[7].rank = s.members[8].rank;
    assert_false(c10d_world_is_whole(&s, settings));
}

/* ---- The dead ------------------------------------------------------------------- */

/* The store's state at that second; `beating` have beaten since the last look. */
static int look_at(const char *word, const char *beating, int64_t second)
{
    const struct c10d_node me = node('M');
    int dropped;

    draw(word);
    for (; *beating; beating++)
        member(*beating)->heartbeat = BEAT + second;
    dropped = c10d_drop_dead(&s, &watch, &me, second * SECOND, settings);
    assert_true(dropped >= 0);
    return dropped;
}

static void who_stands_still_for_three_intervals_is_dead(void **state)
{
    (void)state;
    for (int second = 100; second <= 115; second++)
        assert_int_equal(look_at("ABM!", "AM", second), 0);
    assert_int_equal(look_at("ABM!", "AM", 116), 1);
    assert_string_equal(drawing(), "AM!");
    assert_null(c10d_find(&s, &(struct c10d_node){ "B", 1, 0 }));
}

static void the_dead_leave_every_list(void **state)
{
    (void)state;
    for (int second = 100; second <= 115; second++)
        assert_int_equal(look_at("AM|B|C!", "AM", second), 0);
    assert_int_equal(look_at("AM|B|C!", "AM", 116), 2);
    assert_string_equal(drawing(), "AM!");
}

static void a_clock_that_is_wrong_by_hours_kills_nobody(void **state)
{
    (void)state;
    for (int second = 100; second <= 200; second++) {
        const struct c10d_node me = node('M');

        draw("ABM!");
        member('A')->heartbeat -= 7200 * SECOND - second / 5 * 5;
        member('B')->heartbeat += 7200 * SECOND + second / 5 * 5;
        assert_int_equal(c10d_drop_dead(&s, &watch, &me, second * SECOND, settings), 0);
    }
}

static void one_is_never_dead_oneself(void **state)
{
    (void)state;
    for (int second = 100; second <= 200; second++)
        assert_int_equal(look_at("AM!", "A", second), 0);
}

static void who_was_stopped_himself_kills_nobody(void **state)
{
    (void)state;
    assert_int_equal(look_at("ABM!", "", 100), 0);
    assert_int_equal(look_at("ABM!", "", 1000), 0); /* 5 s are counted */
    assert_int_equal(look_at("ABM!", "", 2000), 0);
    assert_int_equal(look_at("ABM!", "A", 3000), 0);
    assert_int_equal(look_at("ABM!", "", 4000), 1);
    assert_string_equal(drawing(), "AM!");
}

/* Until we write something, each reading brings them back. */
static void the_dead_stay_dead_when_the_store_still_has_them(void **state)
{
    (void)state;
    for (int second = 100; second <= 115; second++)
        look_at("AM!", "M", second);
    for (int second = 116; second <= 150; second++) {
        assert_int_equal(look_at("AM!", "M", second), 1);
        assert_string_equal(drawing(), "M!");
    }
    assert_int_equal(look_at("M!", "M", 151), 0);
    assert_int_equal(look_at("AM!", "M", 152), 1); /* a slow agent's write */
    assert_int_equal(look_at("AM!", "AM", 153), 0);
}

static void who_was_long_gone_comes_as_new(void **state)
{
    (void)state;
    for (int second = 100; second <= 116; second++)
        look_at("AM!", "M", second);
    for (int second = 117; second <= 140; second++)
        look_at("M!", "M", second);
    assert_int_equal(watch.count, 1);
    assert_int_equal(look_at("AM!", "M", 141), 0);
}

static void a_death_is_news_once(void **state)
{
    const struct c10d_node *dead;

    (void)state;
    for (int second = 100; second <= 115; second++)
        look_at("ABM!", "M", second);
    assert_null(c10d_next_dead(&watch));
    for (int second = 116; second <= 120; second++)
        look_at("ABM!", "M", second);
    assert_non_null(dead = c10d_next_dead(&watch));
    assert_string_equal(dead->addr, "A");
    assert_non_null(dead = c10d_next_dead(&watch));
    assert_string_equal(dead->addr, "B");
    assert_null(c10d_next_dead(&watch));
    look_at("ABM!", "AM", 121); /* A was only slow */
    for (int second = 122; second <= 138; second++)
        look_at("ABM!", "M", second);
    assert_non_null(dead = c10d_next_dead(&watch));
    assert_string_equal(dead->addr, "A");
    assert_null(c10d_next_dead(&watch));
}

static void who_never_beats_dies(void **state)
{
    const struct c10d_node me = node('M');

    (void)state;
    for (int second = 100; second <= 116; second++) {
        draw("AM!");
        member('A')->roles = C10D_PARTICIPANT;
        assert_int_equal(c10d_drop_dead(&s, &watch, &me, second * SECOND, settings), second == 116);
    }
}

static void the_dead_leave_as_the_living_do(void **state)
{
    (void)state;
    for (int second = 100; second <= 115; second++)
        look_at("AB||M!", "M", second);
    assert_int_equal(look_at("AB||M!", "M", 116), 2);
    assert_string_equal(drawing(), "||M"); /* nobody is left of it */
    assert_int_equal(s.round, 1);
    join_says(C10D_LEAVE_SPARES);
    does(C10D_LEAVE_SPARES, "");
    join_says(C10D_JOIN);
    does(C10D_JOIN, "M");
}

static void a_world_smaller_than_min_is_never_completed(void **state)
{
    const struct c10d_node me = node('M');

    (void)state;
    for (int second = 100; second <= 116; second++) {
        draw("AM");
        s.has_deadline = 1;
        s.deadline = 1;
        member('M')->heartbeat = second;
        c10d_drop_dead(&s, &watch, &me, second * SECOND, settings);
    }
    assert_string_equal(drawing(), "M");
    assert_false(s.has_deadline);
    now.utc = BEAT + SECOND;
    member('M')->heartbeat = BEAT;
    join_says(C10D_SLEEP);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, forget_all)
    const struct CMUnitTest tests[] = {
        TEST(rule_1_a_closed_job_takes_nobody),
        TEST(rule_1_a_spare_of_a_closed_job_ends_well),
        TEST(rule_2_a_spare_waits_while_all_places_are_taken),
        TEST(rule_2_a_spare_leaves_the_spares_when_a_place_is_free),
        TEST(rule_2_more_participants_than_ours_leave_no_place),
        TEST(rule_2_spares_have_no_deadline),
        TEST(rule_3_a_complete_round_that_has_us_is_done),
        TEST(rule_3_a_world_smaller_than_min_is_left),
        TEST(rule_3_a_world_that_lost_a_rank_is_left),
        TEST(rule_4_after_the_deadline_one_takes_oneself_out),
        TEST(rule_4_after_five_more_seconds_it_is_an_error),
        TEST(rule_4_who_is_nowhere_times_out_at_once),
        TEST(rule_5_a_complete_round_with_places_is_waited_for),
        TEST(rule_6_a_full_round_takes_us_as_a_spare),
        TEST(rule_6_who_waits_becomes_no_spare),
        TEST(rule_6_agents_that_know_no_spares_get_none),
        TEST(rule_7_the_round_is_complete_after_the_last_call),
        TEST(rule_7_needs_a_deadline_and_a_number_between_min_and_max),
        TEST(rule_8_an_open_round_is_joined),
        TEST(rule_9_a_heartbeat_is_due_at_its_interval),
        TEST(rule_10_else_one_sleeps),
        TEST(leaving_ends_when_one_is_no_participant),
        TEST(closing_ends_when_the_job_is_closed),
        TEST(beating_ends_when_no_heartbeat_is_due),
        TEST(the_last_call_begins_with_exactly_min_participants),
        TEST(the_round_is_complete_with_exactly_max_participants),
        TEST(min_equal_to_max_completes_without_a_last_call),
        TEST(joining_leaves_the_wait_list_and_waiting_the_spares),
        TEST(a_spare_makes_the_list_of_spares),
        TEST(the_last_to_leave_a_complete_round_opens_the_next),
        TEST(fewer_than_min_have_no_last_call),
        TEST(what_changes_nothing_changes_nothing),
        TEST(ranks_follow_the_natural_order),
        TEST(ranks_stay_and_newcomers_come_last),
        TEST(a_thousand_ranks_are_whole),
        TEST(who_stands_still_for_three_intervals_is_dead),
        TEST(the_dead_leave_every_list),
        TEST(a_clock_that_is_wrong_by_hours_kills_nobody),
        TEST(one_is_never_dead_oneself),
        TEST(who_was_stopped_himself_kills_nobody),
        TEST(the_dead_stay_dead_when_the_store_still_has_them),
        TEST(who_was_long_gone_comes_as_new),
        TEST(a_death_is_news_once),
        TEST(who_never_beats_dies),
        TEST(the_dead_leave_as_the_living_do),
        TEST(a_world_smaller_than_min_is_never_completed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
