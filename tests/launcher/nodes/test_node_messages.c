/* SPDX-License-Identifier: Apache-2.0 */
/* test_node_messages.c - what ctruns say to each other, read strictly. */
#include "tests/harness.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "launcher/nodes/node_messages.h"
#include "runtime/trace/trace_json.h"

static void a_death_comes_through_whole(void **state)
{
    struct node_death dead = { .generation = "0123456789abcdef", .count = 1 }, read;
    char text[NODE_TEXT];

    (void)state;
    dead.death = (struct control_death){
        .rank = WORLD_MOST - 1,
        .how = CLD_KILLED,
        .code = 9,
        .pid = 4711,
        .asked = 15,
        .tombs = CONTROL_TOMBS,
        .stopped = 1,
        .noted_ns = INT64_MAX,
        .blame = { .on = { WORLD_MOST, BLAME_LATE },
                   .group = UINT64_MAX,
                   .call = { .seq = UINT64_MAX, .begun_ns = UINT64_MAX, .operation = UINT8_MAX } },
        .host = "node-7.example.org"
    };
    for (int i = 0; i < CONTROL_TOMBS; i++)
        dead.death.tomb[i] = (struct control_tomb){ UINT64_MAX - (uint64_t)i, UINT64_MAX,
                                                    UINT64_MAX - 1, UINT32_MAX };
    node_death_print(&dead, text);
    assert_true(strlen(text) < NODE_TEXT - 1);
    assert_int_equal(node_death_read(text, &read), 0);
    assert_string_equal(read.generation, dead.generation);
    assert_memory_equal(&read.death, &dead.death, sizeof read.death);
}

static void a_host_without_a_name_is_one_word_too(void **state)
{
    struct node_death dead = node_host_lost("g", 4, 2, "", CONTROL_CLOSED), read;
    char text[NODE_TEXT];

    (void)state;
    node_death_print(&dead, text);
    assert_string_equal(text, "g 4 2 100 1 0 0 - 0 0 0 0 0 0 0 0 0 0");
    assert_int_equal(node_death_read(text, &read), 0);
    assert_string_equal(read.death.host, "");
    assert_int_equal(read.count, 2);
    dead = node_host_lost("g", 4, 2, "two words", CONTROL_SILENT);
    node_death_print(&dead, text);
    assert_int_equal(node_death_read(text, &read), 0);
    assert_string_equal(read.death.host, "two_words");
}

/* kill -9 of a ctrun closes its connection; only a host that says nothing gives no sign of life. */
static void a_lost_ctrun_is_silent_or_closed(void **state)
{
    const struct node_death closed = node_host_lost("g", 4, 2, "h", CONTROL_CLOSED),
                            silent = node_host_lost("g", 4, 2, "h", CONTROL_SILENT);
    char text[160];

    (void)state;
    control_death_words(&closed.death, text, sizeof text);
    assert_string_equal(
        text, "is lost: its ctrun ended, or was cut off (the connection to it was closed)");
    control_death_words(&silent.death, text, sizeof text);
    assert_string_equal(text, "is lost with its host, which gives no sign of life");
}

#define BLAMES_NONE " 0 0 0 0 0 0 0 0 0"

static void what_is_not_quite_a_death_is_none(void **state)
{
    static const char *const wrong[] = {
        "",
        "g",
        "g 4 1 2 9 1 0 h" BLAMES_NONE,          /* no number of tombs */
        "g 4 1 2 9 1 0 h 2 0 0 0 0 0 0 0 0 0",  /* neither stopped nor not */
        "g 4 1 2 9 1 0 h 0 0 7 0 0 0 0 0 0 0",  /* no such reason */
        "g 4 1 2 9 1 0 h 0 0 1 -1 0 0 0 0 0 0", /* no such rank to blame */
        "g 4 1 2 9 1 0 h 0 8000000000000000 0 0 0 0 0 0 0 0",
        "g 4 1 2 9 1 0 h" BLAMES_NONE " 0 ",          /* something behind it */
        "g 4 1 2 9 1 0 h" BLAMES_NONE " 1 1 1",       /* half a tomb */
        "g 4 1 2 9 1 0 h" BLAMES_NONE " 9 1 1 1",     /* more tombs than there can be */
        "g 4 1 2 9 1 0 h" BLAMES_NONE " 1 1 1 1 1 1", /* a tomb too many */
        "g 4 1 2 9 1 0 h" BLAMES_NONE " 1 1 1 1  -1",
        "g 4 1 2 9 1 0 h" BLAMES_NONE " 1 1 1 10000000000000000 1", /* beyond 64 bits */
        "g 4 1 2 9 1 0 h" BLAMES_NONE " 1 1 1 1 100000000",         /* beyond 32 bits */
        "g -1 1 2 9 1 0 h" BLAMES_NONE " 0",                        /* no such rank */
        "g 4 0 2 9 1 0 h" BLAMES_NONE " 0",                         /* no worker */
        "g 4 2 2 9 1 0 h" BLAMES_NONE " 0",                         /* a signal kills one */
        "g 4 1 4 9 1 0 h" BLAMES_NONE " 0",                         /* CLD_TRAPPED is not an end */
        "g 4 1 2 256 1 0 h" BLAMES_NONE " 0",
        "g 4 1 2 9 1 65 h" BLAMES_NONE " 0",
        "g 4 1 2 9 99999999999 0 h" BLAMES_NONE " 0",
        "g 4x 1 2 9 1 0 h" BLAMES_NONE " 0",
        "g  4 1 2 9 1 0 h" BLAMES_NONE " 0",
        "0123456789012345678901234567890123456789 4 1 2 9 1 0 h" BLAMES_NONE " 0",
    };
    struct node_death dead;

    (void)state;
    assert_int_equal(node_death_read("g 4 1 2 9 1 0 h" BLAMES_NONE " 0", &dead), 0);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (node_death_read(wrong[i], &dead) == 0)
            fail_msg("\"%s\" was taken for a death", wrong[i]);
}

static void what_is_not_quite_a_clock_is_none(void **state)
{
    static const char *const wrong[] = {
        "", "g", "-1", "de0b6b3a7640001", "1 ", "1 g clock", "1 de0b6b3a7640001 clock", "1  2 clock"
    };
    struct clock_reading reading;

    (void)state;
    assert_int_equal(clock_reading_read("1f", &reading), 0);
    assert_true(reading.asked_ns == 0x1f && !*reading.clock);
    assert_int_equal(clock_reading_read("1f de0b6b3a7640000 node h0 (pid 7)", &reading), 0);
    assert_int_equal(reading.shown_ns, TRACE_MOST_NS);
    assert_string_equal(reading.clock, "node h0 (pid 7)");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (clock_reading_read(wrong[i], &reading) == 0)
            fail_msg("\"%s\" was taken for a clock", wrong[i]);
}

static void a_role_may_have_spaces_and_a_job_too(void **state)
{
    struct node_join join;

    (void)state;
    assert_int_equal(node_join_read("1 2 2 8 0.1.0 h1 77 9 the train my job", &join), 0);
    assert_int_equal(join.workers, 8);
    assert_int_equal(join.pid, 77);
    assert_string_equal(join.host, "h1");
    assert_string_equal(join.role, "the train");
    assert_string_equal(join.job, "my job");
    assert_int_equal(node_join_read("-1 2 4 8 0.1.0 - 1 0  j", &join), 0);
    assert_int_equal(join.node, -1);
    assert_int_equal(join.max, 4);
    assert_string_equal(join.host, "");
    assert_string_equal(join.role, "");
    assert_int_equal(node_join_read("-2 2 2 8 0.1.0 h1 1 1 r j", &join), -1); /* no such node */
    assert_int_equal(node_join_read("1 3 2 8 0.1.0 h1 1 1 r j", &join), -1);  /* 3 to 2 nodes */
    assert_int_equal(node_join_read("1 2 2 0 0.1.0 h1 1 1 r j", &join), -1);
    assert_int_equal(node_join_read("1 2 2 8 0.1.0 h1 1 9 short", &join), -1);
    assert_int_equal(node_join_read("1 2 2 8 0.1.0 h1 1 256 r j", &join), -1);
    assert_int_equal(node_join_read("1 2 2 8 0.1.0 h1 1 -1 r j", &join), -1);
}

static void a_failure_keeps_its_words(void **state)
{
    struct failure failure;

    (void)state;
    assert_int_equal(node_failure("-1 -1 143 0 node 3: it was told to stop", &failure), 0);
    assert_int_equal(failure.rank, -1);
    assert_string_equal(failure.what, "node 3: it was told to stop");
    for (int flags = 0; flags < 4; flags++) {
        const struct failure said = { 3,         5, 137, flags & 1, "rank 3 was killed by SIGKILL",
                                      flags >> 1 };
        char text[NODE_TEXT];

        node_failure_print(&said, text);
        assert_int_equal(node_failure(text, &failure), 0);
        assert_int_equal(failure.culprit, 5);
        assert_int_equal(failure.may_restart, said.may_restart);
        assert_int_equal(failure.is_cause, said.is_cause);
        assert_string_equal(failure.what, said.what);
    }
    assert_int_equal(node_failure("3 -1 0 0 no failure", &failure), -1);
    assert_int_equal(node_failure("3 -1 256 0 no code", &failure), -1);
    assert_int_equal(node_failure("3 -1 1 4 neither", &failure), -1);
    assert_int_equal(node_failure("3 -2 1 0 no culprit", &failure), -1);
}

static void a_join_comes_through_whole(void **state)
{
    struct node_join join = { .node = -1,
                              .min = 2,
                              .max = 4,
                              .workers = 8,
                              .version = "0.1.0",
                              .host = "a host",
                              .pid = 4711,
                              .role = "the train",
                              .job = "my job" };
    struct node_join read;
    char text[NODE_TEXT];

    (void)state;
    node_join_print(&join, text);
    assert_int_equal(node_join_read(text, &read), 0);
    assert_string_equal(read.host, "a_host");
    assert_string_equal(read.job, join.job);
    read.job = join.job;
    memcpy(read.host, join.host, sizeof read.host);
    assert_memory_equal(&read, &join, sizeof read);
}

static void no_rank_of_a_round_lies_outside_of_the_world(void **state)
{
    static const char *const wrong[] = {
        "",
        "2 4 2 4 1 2 5 0 29500",       /* no generation */
        "2 4 2 4 1 2 5 0 29500 g - x", /* something behind it */
        "3 4 2 4 1 2 5 0 29500 g -",   /* rank 4 of 4 */
        "2 4 3 4 1 2 5 0 29500 g -",   /* of its role */
        "-1 4 2 4 1 2 5 0 29500 g -",
        "2 4194305 2 4 1 2 5 0 1 g -", /* more ranks than a job can have */
        "2 4 2 4 -1 2 5 0 29500 g -",
        "2 4 2 4 2 2 5 0 29500 g -", /* node 2 of 2 */
        "2 4 2 4 1 2 5 -1 29500 g -",
        "2 4 2 4 1 2 5 0 65536 g -",
        "2 4 2 4 1 2 5 0 29500 g", /* no mapping */
    };
    struct plan plan = { .base = 2,
                         .world = 4,
                         .role_base = 2,
                         .role_world = 4,
                         .node = 1,
                         .nodes = 2,
                         .round = 5,
                         .restarts = 3,
                         .generation = "0123",
                         .mapping = "(vector,(0,2,2))",
                         .port = 29500 };
    char text[NODE_TEXT], generation[NODE_GENERATION], mapping[NODE_MAPPING];
    struct plan read = { .base = 0 };

    (void)state;
    node_round_print(&plan, text);
    assert_int_equal(node_round_read(text, 2, &read, generation, mapping), 0);
    assert_string_equal(generation, "0123");
    read.generation = plan.generation;
    assert_string_equal(mapping, plan.mapping);
    read.mapping = plan.mapping;
    assert_memory_equal(&read, &plan, sizeof read);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(node_round_read(wrong[i], 2, &read, generation, mapping), -1);
}

static void the_end_of_a_round_is_two_numbers(void **state)
{
    static const char *const wrong[] = { "", "0", "0 2", "-2 0", "256 1", "0 1 ", "0 1 1", "0  1" };
    struct round_end end, read;
    char text[NODE_TEXT];

    (void)state;
    for (int code = -1; code < 2; code++) {
        end = (struct round_end){ code, code != 0 };
        round_end_print(&end, text);
        assert_int_equal(round_end_read(text, &read), 0);
        assert_memory_equal(&read, &end, sizeof read);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(round_end_read(wrong[i], &read), -1);
}

static void shares_of_time_are_per_cent(void **state)
{
    struct node_shares shares = { .generation = "g", .shares = { 3, 5, 60, 70, 9 } }, read;
    char text[NODE_TEXT];

    (void)state;
    node_shares_print(&shares, text);
    assert_string_equal(text, "g 3 5 60 70 9");
    assert_int_equal(node_shares_read(text, &read), 0);
    assert_memory_equal(&read.shares, &shares.shares, sizeof read.shares);
    assert_string_equal(read.generation, "g");
    assert_int_equal(node_shares_read("g 3 5 60 101 9", &read), -1);
    assert_int_equal(node_shares_read("g 3 -1 60 70 9", &read), -1);
    assert_int_equal(node_shares_read("g 3 5 60 70", &read), -1);
    assert_int_equal(node_shares_read("g 3 5 60 70 9 1", &read), -1);
}

struct pieces {
    char text[3 * NODE_PIECE];
    size_t used;
    int count;
};

static void take_piece(void *arg, const char *data, size_t bytes)
{
    struct pieces *pieces = arg;
    unsigned look;
    const char *const rows = node_rows_read(data, bytes, &look);

    assert_true(bytes <= NODE_PIECE);
    assert_non_null(rows);
    assert_int_equal(look, 12);
    assert_int_equal(data[bytes - 1], '\n'); /* whole lines */
    memcpy(pieces->text + pieces->used, rows, bytes - (size_t)(rows - data));
    pieces->used += bytes - (size_t)(rows - data);
    pieces->count++;
}

static void rows_stand_behind_the_number_of_their_look(void **state)
{
    struct pieces pieces = { .used = 0 };
    char text[5 * NODE_PIECE / 2];
    size_t used = 0;
    unsigned look;

    (void)state;
    while (used + 100 < sizeof text)
        used += (size_t)snprintf(text + used, sizeof text - used, "a line of %zu\n", used);
    node_pieces("12", text, used, take_piece, &pieces);
    assert_int_equal(pieces.count, 3);
    assert_int_equal(pieces.used, used);
    assert_memory_equal(pieces.text, text, used);
    snprintf(text, sizeof text, "7\n");
    assert_ptr_equal(node_rows_read(text, 2, &look), text + 2);
    assert_int_equal(look, 7);
    assert_null(node_rows_read("7", 1, &look));
    assert_null(node_rows_read("x\n", 2, &look));
    assert_null(node_rows_read("-1\n", 3, &look));
    assert_null(node_rows_read("99999999999\n", 12, &look));
    assert_null(node_rows_read("", 0, &look));
}

static void a_stop_request_names_its_round(void **state)
{
    struct stop_request request;

    (void)state;
    assert_int_equal(stop_request_read("g 1", &request), 0);
    assert_string_equal(request.generation, "g");
    assert_int_equal(request.for_good, 1);
    assert_int_equal(stop_request_read("g", &request), -1);
    assert_int_equal(stop_request_read("g 3", &request), -1);
}

static void a_number_is_alone_and_within_its_bounds(void **state)
{
    static const char *const wrong[] = { "",    " ",    "0",   "65",        "-1",
                                         "15 ", "15 x", "15x", "4294967311" };
    int number;

    (void)state;
    assert_int_equal(node_number_read("15", 1, 64, &number), 0);
    assert_int_equal(number, 15);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(node_number_read(wrong[i], 1, 64, &number), -1);
}

static void the_end_of_a_job_is_its_code_the_rank_and_why(void **state)
{
    static const char *const wrong[] = { "",      "256 0 why", "-1 0 why", "why",
                                         "0 why", "0 -2 why",  "0",        "4294967296 0 why" };
    const char *why;
    int code, rank;

    (void)state;
    assert_int_equal(node_code_read("137 3 node 2: rank 3 was killed", &code, &rank, &why), 0);
    assert_int_equal(code, 137);
    assert_int_equal(rank, 3);
    assert_string_equal(why, "node 2: rank 3 was killed");
    assert_int_equal(node_code_read("0 -1 ", &code, &rank, &why), 0);
    assert_string_equal(why, "");
    assert_int_equal(node_code_read("0 -1", &code, &rank, &why), 0);
    assert_string_equal(why, "");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(node_code_read(wrong[i], &code, &rank, &why), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_death_comes_through_whole),
        cmocka_unit_test(a_host_without_a_name_is_one_word_too),
        cmocka_unit_test(a_lost_ctrun_is_silent_or_closed),
        cmocka_unit_test(what_is_not_quite_a_death_is_none),
        cmocka_unit_test(what_is_not_quite_a_clock_is_none),
        cmocka_unit_test(a_role_may_have_spaces_and_a_job_too),
        cmocka_unit_test(a_failure_keeps_its_words),
        cmocka_unit_test(a_join_comes_through_whole),
        cmocka_unit_test(no_rank_of_a_round_lies_outside_of_the_world),
        cmocka_unit_test(the_end_of_a_round_is_two_numbers),
        cmocka_unit_test(a_stop_request_names_its_round),
        cmocka_unit_test(shares_of_time_are_per_cent),
        cmocka_unit_test(rows_stand_behind_the_number_of_their_look),
        cmocka_unit_test(a_number_is_alone_and_within_its_bounds),
        cmocka_unit_test(the_end_of_a_job_is_its_code_the_rank_and_why),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
