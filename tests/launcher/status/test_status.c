/* SPDX-License-Identifier: Apache-2.0 */
/* test_status.c - the rows of the status page: to text and back, and the page's two forms. */
#include "tests/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/status/board.h"
#include "launcher/status/page.h"
#include "launcher/status/rank_row.h"

static const struct rank_row row = { .rank = 3,
                                     .local_rank = 1,
                                     .pid = 4310,
                                     .process = 'S',
                                     .stage = STAGE_WAITS,
                                     .calls = 12,
                                     .bytes = 4800,
                                     .in_calls_ms = 1500,
                                     .cpu_ms = 20,
                                     .now = "barrier #2 on group \"w\\orld\"",
                                     .out = "one\x1etwo",
                                     .err = "" };

static const struct job_facts facts = { .job = "j\"1",
                                        .program = "./app",
                                        .state = "running",
                                        .version = "9.9",
                                        .world = 2,
                                        .restarts = 1,
                                        .started_s = 1000.5,
                                        .said = &(struct text){ .data = NULL } };

#define REPORT "====\n./app FAILED\n====\n"

static const char *ended(struct text *text)
{
    text_add(text, "", 1);
    text->used--;
    return text->data;
}

static void a_row_comes_back_as_it_was(void **state)
{
    struct text text = { 0 };
    struct status_line line;

    (void)state;
    status_print_rank(&text, &row);
    assert_int_equal(text.data[text.used - 1], '\n');
    text.data[text.used - 1] = '\0';
    assert_int_equal(status_line_read(text.data, &line), 0);
    assert_int_equal(line.kind, LINE_RANK);
    assert_int_equal(line.row.rank, 3);
    assert_int_equal(line.row.pid, 4310);
    assert_int_equal(line.row.process, 'S');
    assert_int_equal(line.row.stage, STAGE_WAITS);
    assert_int_equal(line.row.bytes, 4800);
    assert_int_equal(line.row.in_calls_ms, 1500);
    assert_string_equal(line.row.now, row.now);
    assert_string_equal(line.row.out, row.out);
    assert_string_equal(line.row.err, "");
    free(text.data);
}

static void half_a_row_and_nonsense_are_refused(void **state)
{
    static const char *const wrong[] = {
        "",
        "rank",
        "rank\t1\t0\t5\tS\t1\t1\t1\t1\t1\tnow\tout",            /* no stderr */
        "rank\t1\t0\t5\tS\t1\t1\t1\t1\t1\tnow\tout\terr\tmore", /* a field too many */
        "rank\t-1\t0\t5\tS\t1\t1\t1\t1\t1\tnow\tout\terr",
        "rank\t1\t0\t5\tSS\t1\t1\t1\t1\t1\tnow\tout\terr",
        "rank\t1\t0\t5\tS\t9\t1\t1\t1\t1\tnow\tout\terr", /* no such stage */
        "rank\t1\t0\t5\tS\t1\t99999999999999999999\t1\t1\t1\tnow\tout\terr",
        "rank\t1\t0\t5000000000\tS\t1\t1\t1\t1\t1\tnow\tout\terr",
        "node\t1\t1",
        "node\t1\tx\thost",
        "stuck",
        "other\ttext",
    };
    char copy[200];
    struct status_line line;

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        snprintf(copy, sizeof copy, "%s", wrong[i]);
        if (status_line_read(copy, &line) == 0)
            fail_msg("taken: %s", wrong[i]);
    }
}

static void what_a_terminal_obeys_is_left_out_of_output(void **state)
{
    static const struct {
        const char *given, *plain;
    } cases[] = {
        { "\033[1;31mred\033[0m", "red" },
        { "a\tb", "a b" },
        { "\033]0;title\atext", "text" },
        { "bell\a, back\b, \x7f", "bell, back, " },
        { "\033[31", "" },
        { "\033", "" },
        { "\033(Bx", "Bx" },
        { "\xc3\xa9", "\xc3\xa9" },
        { "bad \xff", "bad \xef\xbf\xbd" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct text text = { 0 };

        status_add_plain(&text, cases[i].given, strlen(cases[i].given));
        assert_string_equal(ended(&text), cases[i].plain);
        free(text.data);
    }
}

static void ctruns_sentences_are_shown_without_the_report(void **state)
{
    struct board board = { .nodes = 0 };
    struct job_facts talks = facts;
    struct text said = { 0 }, json = { 0 };

    (void)state;
    for (int i = 0; i < 30; i++)
        text_print(&said, "ctrun: line %d\n" REPORT, i);
    text_print(&said, "    | oh\n");
    talks.said = &said;
    board_json(&board, &talks, &json);
    ended(&json);
    assert_null(strstr(json.data, "FAILED"));
    assert_null(strstr(json.data, "\"ctrun: line 10\""));
    assert_non_null(strstr(json.data, "\"said\":[\"ctrun: line 11\",\"ctrun: line 12\","));
    assert_non_null(
        strstr(json.data, "\"ctrun: line 29\",\"    | oh\"],\"verdicts\":[],\"nodes\":[]}"));
    free(said.data);
    free(json.data);
}

/* A board with one node that has answered, and one that has not. */
static struct board a_board(void)
{
    struct board board = { .nodes = 0, .look = 7 };
    struct text text = { 0 };

    assert_int_equal(board_set_nodes(&board, 2), 0);
    status_print_node(&text, "hosta", 99, 1);
    status_print_stuck(&text, "rank 3 waits",
                       &(struct stuck_row){ "", "", "", "", "", "rank 2 sleeps", 0, 0 });
    status_print_rank(&text, &row);
    assert_int_equal(board_take(&board, 0, 7, 0, text.data, 10), 0); /* in two pieces */
    assert_int_equal(board_answers(&board), 0);
    assert_int_equal(board_take(&board, 0, 7, 0, text.data + 10, text.used - 10), 0);
    assert_int_equal(board_take(&board, 0, 7, 1, "", 0), 0);
    assert_int_equal(board_answers(&board), 1);
    free(text.data);
    return board;
}

static void the_page_shows_what_nodes_have_sent(void **state)
{
    struct board board = a_board();
    struct text json = { 0 };
    const char *nodes;

    (void)state;
    board_json(&board, &facts, &json);
    ended(&json);
    assert_true(!strncmp(json.data,
                         "{\"job\":\"j\\\"1\",\"program\":\"./app\",\"state\":\"running\","
                         "\"version\":\"9.9\",\"world\":2,\"restarts\":1,\"started\":1000.500,"
                         "\"time\":",
                         strlen("{\"job\":\"j\\\"1\",\"program\":\"./app\",\"state\":\"running\","
                                "\"version\":\"9.9\",\"world\":2,\"restarts\":1,"
                                "\"started\":1000.500,\"time\":")));
    nodes = strstr(json.data, "\"host\"");
    assert_non_null(nodes);
    assert_string_equal(
        nodes, "\"host\":\"hosta\",\"pid\":99,\"restarts\":1,\"ranks\":[{"
               "\"rank\":3,\"local_rank\":1,\"pid\":4310,\"state\":\"waiting\",\"process\":\"S\","
               "\"calls\":12,\"bytes\":4800,\"in_calls_s\":1.500,\"cpu_s\":0.020,"
               "\"now\":\"barrier #2 on group \\\"w\\\\orld\\\"\",\"stdout\":[\"one\",\"two\"],"
               "\"stderr\":[]}]},"
               "{\"node\":1,\"answered_s_ago\":null,\"ranks\":[]}]}");
    free(json.data);
    board_free(&board);
}

static void prometheus_gets_each_metric_in_one_place(void **state)
{
    struct board board = a_board();
    struct text text = { 0 };

    (void)state;
    board_judge(&board);
    board_metrics(&board, &facts, &text);
    ended(&text);
    assert_non_null(strstr(text.data, "\nctrun_job_info{job=\"j\\\"1\",program=\"./app\","
                                      "version=\"9.9\"} 1\n"));
    assert_non_null(strstr(text.data, "\nctrun_restarts_total 1\n"));
    assert_non_null(strstr(text.data, "\nctrun_stuck 1\n"));
    assert_non_null(strstr(text.data, "\nctrun_rank_state{rank=\"3\",node=\"0\",host=\"hosta\","
                                      "state=\"waiting\"} 1\n"));
    assert_non_null(strstr(text.data, "# TYPE ctrun_rank_bytes_total counter\n"
                                      "ctrun_rank_bytes_total{rank=\"3\",node=\"0\","
                                      "host=\"hosta\"} 4800\n"));
    assert_non_null(strstr(text.data, "\nctrun_rank_in_calls_seconds_total{rank=\"3\","
                                      "node=\"0\",host=\"hosta\"} 1.5\n"));
    free(text.data);
    board_free(&board);
}

static void an_answer_that_cannot_be_read_leaves_the_last_one(void **state)
{
    static const char *const wrong[] = {
        "rank\tx\n",
        "stuck\ta",                       /* a line without its end */
        "stuck\ta\n",                     /* no line of the node */
        "node\t1\t1\th\nnode\t1\t1\th\n", /* two */
        "node\t1\t1\th\nrank\t3\t1\t4310\tS\t2\t12\t4800\t1500\t20\tnow\tone\t\nstuck\ta\n",
        "",
    };
    struct board board = a_board();
    (void)state;
    board.look = 8;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(board_take(&board, 0, 8, 0, wrong[i], strlen(wrong[i])), 0);
        if (board_take(&board, 0, 8, 1, "", 0) != -1)
            fail_msg("taken: %s", wrong[i]);
    }
    assert_int_equal(board_take(&board, 0, 8, 0, "node\t1\t1\t\0\n", 12), 0);
    assert_int_equal(board_take(&board, 0, 8, 1, "", 0), -1);
    assert_int_equal(board.node[0].lines, 3);
    assert_string_equal(board.node[0].line[1].text, "rank 3 waits");
    assert_int_equal(board_answers(&board), 0);
    assert_int_equal(board_take(&board, 2, 8, 1, "", 0), 0); /* there is no such node any more */
    assert_int_equal(board_set_nodes(&board, 1), 0);
    assert_int_equal(board.nodes, 1);
    board_free(&board);
}

static void the_rest_of_an_answer_that_was_cut_is_not_waited_for(void **state)
{
    struct board board = a_board();

    (void)state;
    board.look = 9;
    assert_int_equal(board_take(&board, 0, 8, 0, "node\t1\t1\thalf\nstuck\ta\n", 23), 0);
    assert_int_equal(board_take(&board, 0, 9, 0, "node\t2\t0\twhole\n", 15), 0);
    assert_int_equal(board_take(&board, 0, 9, 1, "", 0), 0);
    assert_int_equal(board.node[0].lines, 1);
    assert_string_equal(board.node[0].line[0].text, "whole");
    assert_int_equal(board_answers(&board), 1);
    board_free(&board);
}

static void the_page_has_the_words_glyphs_and_order_of_ctctl(void **state)
{
    const char *at = strstr(status_page, "const STATES = {");

    (void)state;
    for (int order = 0; order < STAGES; order++)
        for (int stage = 0; stage < STAGES; stage++) {
            char entry[40];

            if (rank_stage_order((enum rank_stage)stage) != order)
                continue;
            snprintf(entry, sizeof entry, "\n  %s: [\"%c\", \"",
                     rank_stage_name((enum rank_stage)stage),
                     rank_stage_glyph((enum rank_stage)stage));
            assert_non_null(at);
            at = strstr(at, entry);
        }
    assert_non_null(at);
}

/* ---- One verdict over all nodes ------------------------------------------------------- */

static const struct stuck_row barrier = { .key = "1#8",
                                          .call = "barrier #8",
                                          .where = "a.c:3 (main)",
                                          .waited_ms = 6000,
                                          .waiting = "",
                                          .awaited = "",
                                          .culprits = "" };

/* The answer of a node: ranks first..last, in a stage, which show `now`; `stuck` unless NULL. */
static void answer(struct board *board, int node, int first, int last, enum rank_stage stage,
                   const char *now, const struct stuck_row *stuck)
{
    struct text text = { 0 };
    char host[] = "h0";

    host[1] += (char)node;
    status_print_node(&text, host, 99, 1);
    if (stuck)
        status_print_stuck(&text, "as the node says", stuck);
    for (int rank = first; rank <= last; rank++) {
        struct rank_row its = row;

        its.rank = rank;
        its.pid = 100 + rank;
        its.stage = stage;
        its.now = now;
        status_print_rank(&text, &its);
    }
    assert_int_equal(board_set_nodes(board, board->nodes > node + 1 ? board->nodes : node + 1), 0);
    assert_int_equal(board_take(board, node, 1, 0, text.data, text.used), 0);
    assert_int_equal(board_take(board, node, 1, 1, "", 0), 0);
    free(text.data);
}

/* The board's only verdict; frees the board. */
static void judged(struct board *board, int is_stuck, const char *sentence)
{
    board_judge(board);
    assert_int_equal(board->verdicts, 1);
    assert_string_equal(ended(&board->verdict[0].text), sentence);
    assert_int_equal(board->verdict[0].is_stuck, is_stuck);
    board_free(board);
}

#define WAITED ". Ranks 0-2 have waited 7.0 s in barrier #8 at a.c:3 (main)"

static void what_nodes_say_of_a_call_becomes_one_sentence(void **state)
{
    struct board board = { .nodes = 0 };
    struct stuck_row here = barrier, there = barrier;

    (void)state;
    here.waiting = "0-1";
    here.awaited = "2-3";
    there.waiting = "2";
    there.awaited = "0-1";
    there.waited_ms = 7000;
    there.culprits = "rank 3 (pid 103 on h1, sleeping) has not joined barrier #8";
    answer(&board, 0, 0, 1, STAGE_WAITS, "barrier #8 on group world at a.c:3 (main)", &here);
    answer(&board, 1, 2, 3, STAGE_BLOCKS, "(sleep)", &there);
    judged(&board, 1, "rank 3 (pid 103 on h1, sleeping) has not joined barrier #8" WAITED);
}

static void a_node_that_does_not_wait_is_found_by_its_rows(void **state)
{
    struct board board = { .nodes = 0 };
    struct stuck_row here = barrier;
    struct text text = { 0 };

    (void)state;
    here.waiting = "0-2";
    here.awaited = "3-5";
    here.waited_ms = 7000;
    answer(&board, 0, 0, 2, STAGE_WAITS, "barrier #8 on group world at a.c:3 (main)", &here);
    answer(&board, 1, 3, 4, STAGE_RUNS, "all_reduce #2 on group tp", NULL);
    answer(&board, 2, 5, 5, STAGE_RUNS, "(sleep)", NULL);
    board_judge(&board);
    board_metrics(&board, &facts, &text);
    assert_non_null(strstr(ended(&text), "rank=\"5\",node=\"2\",host=\"h2\",state=\"blocking\""));
    free(text.data);
    answer(&board, 1, 3, 4, STAGE_RUNS, "all_reduce #2 on group tp", NULL);
    answer(&board, 2, 5, 5, STAGE_RUNS, "(sleep)", NULL);
    judged(&board, 1,
           "ranks 3-4 (on h1: all_reduce #2 on group tp) have not joined barrier #8; rank 5 (pid "
           "105 on h2) has not joined barrier #8" WAITED);
}

static void a_node_that_has_not_answered_is_named_by_its_ranks(void **state)
{
    struct board board = { .nodes = 0 };
    struct stuck_row here = barrier;

    (void)state;
    here.waiting = "0-2";
    here.awaited = "3-4";
    here.waited_ms = 7000;
    answer(&board, 0, 0, 2, STAGE_WAITS, "barrier #8 on group world at a.c:3 (main)", &here);
    judged(&board, 1, "the node of ranks 3-4 has not answered" WAITED);
}

static void when_all_nodes_are_in_the_call_no_rank_is_missing(void **state)
{
    struct board board = { .nodes = 0 };
    struct stuck_row here = barrier, there = barrier;

    (void)state;
    here.waiting = "0";
    here.awaited = "1-2";
    there.waiting = "1";
    there.awaited = "0,2";
    answer(&board, 0, 0, 0, STAGE_WAITS, "barrier #8 on group world at a.c:3 (main)", &here);
    answer(&board, 1, 1, 1, STAGE_WAITS, "barrier #8 on group world at a.c:3 (main)", &there);
    answer(&board, 2, 2, 2, STAGE_RUNS, "barrier #8 on group world at a.c:3 (main)", NULL);
    judged(&board, 0,
           "no rank is missing: ranks 0-2 have been for 6.0 s in barrier #8 at a.c:3 (main)");
}

static void what_one_node_knows_is_shown_as_it_says_it(void **state)
{
    struct board board = { .nodes = 0 };
    struct stuck_row here = barrier;

    (void)state;
    here.waiting = "0";
    here.culprits = "rank 1 sleeps";
    answer(&board, 0, 0, 1, STAGE_WAITS, "", &here);
    judged(&board, 1, "as the node says");
}

static void ranks_that_two_calls_wait_for_are_named_for_both(void **state)
{
    struct board board = { .nodes = 0 };
    struct stuck_row here = barrier, there = barrier;

    (void)state;
    here.waiting = "0";
    here.awaited = "2-3";
    there.key = "2#4";
    there.call = "all_reduce #4 of group tp";
    there.waiting = "1";
    there.awaited = "2-3";
    answer(&board, 0, 0, 0, STAGE_WAITS, "barrier #8 on group world at a.c:3 (main)", &here);
    answer(&board, 1, 1, 1, STAGE_WAITS, "all_reduce #4 on group tp", &there);
    answer(&board, 2, 2, 2, STAGE_RUNS, "computing", NULL);
    answer(&board, 3, 3, 3, STAGE_RUNS, "(read)", NULL);
    board_judge(&board);
    board_judge(&board); /* with the answers of before, as if no node had answered since */
    assert_int_equal(board.verdicts, 2);
    assert_string_equal(ended(&board.verdict[0].text),
                        "rank 2 (pid 102 on h2: computing) has not joined barrier #8; rank 3 (pid "
                        "103 on h3) has not joined barrier #8. Rank 0 has waited 6.0 s in barrier "
                        "#8 at a.c:3 (main)");
    assert_non_null(strstr(ended(&board.verdict[1].text), "rank 2 (pid 102 on h2: computing) has"));
    assert_non_null(strstr(ended(&board.verdict[1].text), "; rank 3 (pid 103 on h3) has not"));
    board_free(&board);
}

static void a_rank_that_has_ended_on_another_node_has_left(void **state)
{
    struct board board = { .nodes = 0 };
    struct stuck_row here = barrier;
    struct text text = { 0 };

    (void)state;
    here.waiting = "0-2";
    here.awaited = "3";
    here.waited_ms = 7000;
    answer(&board, 0, 0, 2, STAGE_WAITS, "barrier #8 on group world at a.c:3 (main)", &here);
    answer(&board, 1, 3, 3, STAGE_DONE, "exited with code 0", NULL);
    board_judge(&board);
    board_metrics(&board, &facts, &text);
    assert_non_null(strstr(ended(&text), "rank=\"3\",node=\"1\",host=\"h1\",state=\"left\""));
    free(text.data);
    judged(&board, 1,
           "rank 3 (pid 103 on h1: exited with code 0) has not joined barrier #8" WAITED);
}

static void of_many_clauses_a_sentence_has_the_first(void **state)
{
    struct board board = { .nodes = 0 };
    struct stuck_row here = barrier;
    struct text metrics = { 0 };

    (void)state;
    here.waiting = "0-2";
    here.awaited = "3-9";
    here.waited_ms = 7000;
    answer(&board, 0, 0, 2, STAGE_WAITS, "barrier #8 on group world at a.c:3 (main)", &here);
    for (int i = 1; i < 7; i++)
        answer(&board, i, 2 + i, 2 + i, STAGE_RUNS, "(read)", NULL);
    board_judge(&board);
    board_metrics(&board, &facts, &metrics);
    assert_non_null(
        strstr(ended(&metrics), "rank=\"8\",node=\"6\",host=\"h6\",state=\"blocking\""));
    free(metrics.data);
    judged(&board, 1,
           "rank 3 (pid 103 on h1) has not joined barrier #8; rank 4 (pid 104 on h2) has not "
           "joined barrier #8; rank 5 (pid 105 on h3) has not joined barrier #8; rank 6 (pid 106 "
           "on h4) has not joined barrier #8; 2 more like these; the node of rank 9 has not "
           "answered" WAITED);
}

static void a_node_cannot_make_the_others_count_for_ever(void **state)
{
    static const char all[] = "0-65535,";
    struct board board = { .nodes = 0 };
    struct stuck_row here = barrier;
    struct text list = { 0 }, lines = { 0 };

    (void)state;
    for (int i = 0; i < 2000000; i++)
        text_add(&list, all, strlen(all));
    here.waiting = "0-2";
    here.awaited = ended(&list);
    here.waited_ms = 7000;
    answer(&board, 0, 0, 2, STAGE_WAITS, "barrier #8 on group world at a.c:3 (main)", &here);
    free(list.data);
    board_judge(&board);
    assert_int_equal(board.verdicts, 1);
    status_print_node(&lines, "h0", 99, 1);
    for (int i = 0; i < 1000000; i++)
        text_add(&lines, "stuck\t\n", 7);
    assert_int_equal(board_take(&board, 0, 2, 1, lines.data, lines.used), -1);
    free(lines.data);
    board_free(&board);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_comes_back_as_it_was),
        cmocka_unit_test(half_a_row_and_nonsense_are_refused),
        cmocka_unit_test(what_a_terminal_obeys_is_left_out_of_output),
        cmocka_unit_test(ctruns_sentences_are_shown_without_the_report),
        cmocka_unit_test(the_page_shows_what_nodes_have_sent),
        cmocka_unit_test(prometheus_gets_each_metric_in_one_place),
        cmocka_unit_test(the_rest_of_an_answer_that_was_cut_is_not_waited_for),
        cmocka_unit_test(an_answer_that_cannot_be_read_leaves_the_last_one),
        cmocka_unit_test(the_page_has_the_words_glyphs_and_order_of_ctctl),
        cmocka_unit_test(what_nodes_say_of_a_call_becomes_one_sentence),
        cmocka_unit_test(a_node_that_does_not_wait_is_found_by_its_rows),
        cmocka_unit_test(a_node_that_has_not_answered_is_named_by_its_ranks),
        cmocka_unit_test(when_all_nodes_are_in_the_call_no_rank_is_missing),
        cmocka_unit_test(what_one_node_knows_is_shown_as_it_says_it),
        cmocka_unit_test(ranks_that_two_calls_wait_for_are_named_for_both),
        cmocka_unit_test(a_rank_that_has_ended_on_another_node_has_left),
        cmocka_unit_test(of_many_clauses_a_sentence_has_the_first),
        cmocka_unit_test(a_node_cannot_make_the_others_count_for_ever),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
