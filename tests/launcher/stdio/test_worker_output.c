/* SPDX-License-Identifier: Apache-2.0 */
/* test_worker_output.c - the pure parts of the workers' output: lines, prefixes, words to
 * filter by, equal lines of many workers, routes. */
#include "tests/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/stdio/line_dedup.h"
#include "launcher/stdio/output.h"
#include "launcher/stdio/line_prefix.h"
#include "launcher/stdio/worker_stream.h"
#include "runtime/util/text.h"

/* ---- Lines ---------------------------------------------------------------- */

static struct text got; /* "(line)" and "{bar}" in the order in which they came */

static void got_line(void *arg, const char *text, size_t size)
{
    (void)arg;
    text_add(&got, "(", 1);
    text_add(&got, text, size);
    text_add(&got, ")", 1);
}

static void got_bar(void *arg, const char *text, size_t size)
{
    (void)arg;
    text_add(&got, "{", 1);
    text_add(&got, text, size);
    text_add(&got, "}", 1);
}

static const char *taken(int split, int end, const char *const *pieces)
{
    static char all[1024];
    const struct line_taker taker = { got_line, got_bar, NULL };
    struct lines lines = { .split = split };

    got.used = 0;
    for (; *pieces; pieces++)
        lines_feed(&lines, *pieces, strlen(*pieces), &taker);
    if (end)
        lines_end(&lines, &taker);
    free(lines.held.data);
    snprintf(all, sizeof all, "%.*s", (int)got.used, got.data ? got.data : "");
    return all;
}
#define TAKEN(split, end, ...) taken(split, end, (const char *const[]){ __VA_ARGS__, NULL })

static void a_line_is_taken_whole_and_once(void **state)
{
    (void)state;
    for (int split = 0; split < 2; split++) {
        assert_string_equal(TAKEN(split, 0, "ab", "c\nde"), "(abc)");
        assert_string_equal(TAKEN(split, 1, "ab", "c\nde"), "(abc)(de)");
        assert_string_equal(TAKEN(split, 0, "\n\n"), "()()");
        assert_string_equal(TAKEN(split, 0, "a\r\nb\r\n"), "(a)(b)");
        assert_string_equal(TAKEN(split, 0, "a\r", "\nb\r", "\n"),
                            split ? "(a)(b)" : "{a}(a){b}(b)");
    }
    assert_string_equal(TAKEN(0, 0, "a\r\r\nb\n"), "(a)(b)");
}

static void a_return_is_a_bar_or_an_end(void **state)
{
    (void)state;
    assert_string_equal(TAKEN(0, 0, "\r10%"), "{10%}");
    assert_string_equal(TAKEN(0, 0, "\r10%", "\r20%\n"), "{10%}(20%)");
    assert_string_equal(TAKEN(0, 0, "10%\r"), "{10%}");
    assert_string_equal(TAKEN(0, 0, "a\rb\n"), "(b)");
    assert_string_equal(TAKEN(1, 0, "a\rb\n"), "(a)(b)");
    assert_string_equal(TAKEN(1, 0, "10%\r", "20%\r"), "(10%)(20%)");
    assert_string_equal(TAKEN(1, 1, "a\r\rb"), "(a)()(b)");
    assert_string_equal(TAKEN(0, 1, "\r10%", "\r   \r"), "{10%}{}"); /* taken away */
    assert_string_equal(TAKEN(0, 1, "\r10%", "\r   \r", "a\n"), "{10%}{}(a)");
    assert_string_equal(TAKEN(0, 1, "\r10%", "\r   \r\n"), "{10%}(   )");
}

static const char *replaced(const char *text)
{
    static char all[256];

    got.used = 0;
    text_add_utf8(&got, text, strlen(text));
    snprintf(all, sizeof all, "%.*s", (int)got.used, got.data ? got.data : "");
    return all;
}
#define NONE "\xEF\xBF\xBD" /* U+FFFD */

/* The answers are Python's: bytes.decode(errors="replace"). */
static void what_is_no_utf8_is_replaced_as_python_does(void **state)
{
    (void)state;
    assert_string_equal(replaced("gr\xC3\xBC\xC3\x9F \xF0\x9F\x98\x80"),
                        "gr\xC3\xBC\xC3\x9F \xF0\x9F\x98\x80");
    assert_string_equal(replaced("\xFF\xFE"), NONE NONE);
    assert_string_equal(replaced("a\xE2\x82z"), "a" NONE "z");
    assert_string_equal(replaced("\xE2\x82"), NONE);
    assert_string_equal(replaced("\xF0\x9F\x98"), NONE);
    assert_string_equal(replaced("\xC0\xAF"), NONE NONE);
    assert_string_equal(replaced("\xED\xA0\x80"), NONE NONE NONE);
    assert_string_equal(replaced("\xF4\x90\x80\x80"), NONE NONE NONE NONE);
}

/* ---- Prefixes and filters ------------------------------------------------- */

static void expands_to(const char *template, const char *wanted)
{
    const struct prefix_words words = { "trainer", "node7", 12, 3 };
    char *made = prefix_expand(template, &words);

    assert_non_null(made);
    assert_string_equal(made, wanted);
    free(made);
}

static void a_template_is_filled_in_as_pythons(void **state)
{
    (void)state;
    expands_to("[${role_name}${local_rank}]:", "[trainer3]:");
    expands_to("$rank@$hostname ", "12@node7 ");
    expands_to("${rank}0$rank.", "12012.");
    expands_to("$$rank $$$$", "$rank $$");
    expands_to("${foo} $foo $rankx ${rank", "${foo} $foo $rankx ${rank");
    expands_to("$", "$");
    expands_to("$9 ${} $-", "$9 ${} $-");
    expands_to("", "");
}

static const char *ranks(int base, int size, const char *members, int coloured)
{
    static char text[160];
    unsigned char set[64] = { 0 };

    for (int i = 0; members[i]; i++)
        if (members[i] == 'x')
            set[i / 8] |= (unsigned char)(1 << i % 8);
    prefix_ranks(set, size, base, coloured, text, sizeof text);
    return text;
}

static void ranks_are_named_as_ranges(void **state)
{
    char every_second[401];

    (void)state;
    assert_string_equal(ranks(3, 1, "x", 0), "[3] ");
    assert_string_equal(ranks(0, 8, "xxxxxxxx", 0), "[0-7] ");
    assert_string_equal(ranks(8, 10, "x.xx.....x", 0), "[8,10-11,17] ");
    assert_string_equal(ranks(4, 2, "xx", 1), "\033[1m[4-5]\033[0m ");
    assert_string_equal(ranks(4, 2, ".x", 1), "\033[32m[5]\033[0m ");
    for (int i = 0; i < 400; i++)
        every_second[i] = i % 2 ? '.' : 'x';
    every_second[400] = '\0';
    assert_non_null(strstr(ranks(100000, 400, every_second, 0), ",...] "));
}

static int matches(const char *list, const char *line)
{
    return filters_match(list, line, strlen(line));
}

static void a_filter_is_a_list_of_words(void **state)
{
    (void)state;
    assert_true(matches("apple,pear", "a pear!"));
    assert_true(matches("apple,pear", "apple"));
    assert_false(matches("apple,pear", "Apple, pea r"));
    assert_true(matches("pear,,", "pear, cut"));
    assert_false(matches("pear,,", "pear"));
    assert_true(matches("a,,b", "xa,by"));
    assert_false(matches("a,,b", "a"));
    assert_true(matches("", "anything"));
    assert_true(matches("zzz,", ""));
    assert_false(matches("zzz", ""));
}

/* ---- Folding -------------------------------------------------------------- */

static char merged[4096];
static int lines_counted;

static void got_merged(void *arg, int to, const unsigned char *workers, const char *text,
                       size_t size)
{
    const struct line_dedup *dedup = arg;
    char prefix[160];
    const size_t used = strlen(merged);

    prefix_ranks(workers, dedup->size, 0, 0, prefix, sizeof prefix);
    snprintf(merged + used, sizeof merged - used, "%d%s%.*s;", to, prefix, (int)size, text);
}

static void start_dedup(struct line_dedup *dedup, int size)
{
    *merged = '\0';
    assert_int_equal(line_dedup_start(dedup, size, got_merged, dedup), 0);
    for (int i = 0; i < size; i++)
        line_dedup_opened(dedup, i);
}

static void say(struct line_dedup *dedup, int worker, const char *text, int64_t now)
{
    line_dedup_add(dedup, worker, 1, text, strlen(text), now);
}

static void an_equal_line_of_all_is_shown_once_and_at_once(void **state)
{
    struct line_dedup dedup;

    (void)state;
    start_dedup(&dedup, 3);
    say(&dedup, 1, "loading", 10);
    say(&dedup, 0, "loading", 20);
    assert_string_equal(merged, "");
    say(&dedup, 2, "loading", 30);
    assert_string_equal(merged, "1[0-2] loading;");
    assert_int_equal(line_dedup_due(&dedup), -1);
    line_dedup_free(&dedup);
}

static void a_line_waits_50_ms_and_no_longer(void **state)
{
    struct line_dedup dedup;

    (void)state;
    start_dedup(&dedup, 3);
    say(&dedup, 0, "a", 100);
    say(&dedup, 2, "a", 120);
    assert_int_equal(line_dedup_due(&dedup), 150);
    line_dedup_expire(&dedup, 149);
    assert_string_equal(merged, "");
    line_dedup_expire(&dedup, 150);
    assert_string_equal(merged, "1[0,2] a;");
    line_dedup_free(&dedup);
}

static void who_can_write_alone_never_waits(void **state)
{
    struct line_dedup dedup;

    (void)state;
    start_dedup(&dedup, 2);
    say(&dedup, 0, "a", 0);
    assert_string_equal(merged, "");
    line_dedup_closed(&dedup, 1);
    assert_string_equal(merged, "1[0] a;");
    say(&dedup, 0, "b", 1);
    assert_string_equal(merged, "1[0] a;1[0] b;");
    line_dedup_free(&dedup);
}

/* A worker can't join a line that is older than its last one. */
static void what_a_worker_wrote_stays_in_order(void **state)
{
    struct line_dedup dedup;

    (void)state;
    start_dedup(&dedup, 2);
    say(&dedup, 0, "a", 0);
    say(&dedup, 0, "b", 0);
    say(&dedup, 1, "b", 0);
    assert_string_equal(merged, "1[0] a;1[0-1] b;");
    say(&dedup, 1, "a", 0);
    line_dedup_flush(&dedup);
    assert_string_equal(merged, "1[0] a;1[0-1] b;1[1] a;");
    line_dedup_free(&dedup);
}

static void a_repetition_and_another_stream_are_no_copies(void **state)
{
    struct line_dedup dedup;

    (void)state;
    start_dedup(&dedup, 2);
    say(&dedup, 0, "x", 0);
    say(&dedup, 0, "x", 0);
    line_dedup_add(&dedup, 1, 2, "x", 1, 0);
    line_dedup_flush(&dedup);
    assert_string_equal(merged, "1[0] x;1[0] x;2[1] x;");
    line_dedup_free(&dedup);
}

static void two_workers_out_of_step_still_fold(void **state)
{
    struct line_dedup dedup;

    (void)state;
    start_dedup(&dedup, 2);
    say(&dedup, 0, "a", 0);
    say(&dedup, 0, "b", 0);
    say(&dedup, 0, "c", 0);
    say(&dedup, 1, "a", 5);
    say(&dedup, 1, "b", 5);
    say(&dedup, 1, "c", 5);
    assert_string_equal(merged, "1[0-1] a;1[0-1] b;1[0-1] c;");
    line_dedup_free(&dedup);
}

static void count_shown(void *arg, int to, const unsigned char *workers, const char *text,
                        size_t size)
{
    char wanted[32];

    (void)arg;
    (void)workers;
    lines_counted++;
    snprintf(wanted, sizeof wanted, "line %d", lines_counted);
    assert_int_equal(to, 1);
    assert_int_equal(size, strlen(wanted));
    assert_memory_equal(text, wanted, size);
}

static void much_more_than_can_be_held_loses_nothing(void **state)
{
    struct line_dedup dedup;
    char line[32];

    (void)state;
    lines_counted = 0;
    assert_int_equal(line_dedup_start(&dedup, 2, count_shown, &dedup), 0);
    line_dedup_opened(&dedup, 0);
    line_dedup_opened(&dedup, 1);
    for (int i = 1; i <= 5000; i++) {
        snprintf(line, sizeof line, "line %d", i);
        say(&dedup, 0, line, 0);
    }
    assert_in_range(dedup.held, 1, 4999);
    line_dedup_free(&dedup);
    assert_int_equal(lines_counted, 5000);
}

/* ---- Routes --------------------------------------------------------------- */

static struct route route(const struct options *options, int rank, int to, int terminal)
{
    const struct origin origin = { rank, rank, 4, to, terminal, 1 };

    return route_of(options, &origin);
}

static void without_a_flag_a_pipe_is_inherited_and_a_terminal_prefixed(void **state)
{
    const struct options options = { .prefix = "auto" };
    const struct origin alone = { 0, 0, 1, 1, 1, 0 };

    (void)state;
    assert_false(route(&options, 0, 1, 0).through);
    assert_true(route(&options, 0, 1, 1).through);
    assert_true(route(&options, 0, 1, 1).by_rank);
    assert_false(route_of(&options, &alone).through);
}

static void tee_and_redirect_are_decided_per_rank_and_stream(void **state)
{
    struct options options = { .prefix = "auto" };

    (void)state;
    options.tee.ranks[0] = 1;
    options.redirects.ranks[1] = 3;
    assert_true(route(&options, 0, 1, 0).tee && route(&options, 0, 1, 0).file);
    assert_string_equal(route(&options, 0, 1, 0).prefix, "[${role_name}${local_rank}]:");
    assert_false(route(&options, 0, 2, 0).file || route(&options, 0, 2, 0).through);
    assert_true(route(&options, 1, 1, 0).file && !route(&options, 1, 1, 0).through);
    assert_true(route(&options, 1, 2, 0).file && !route(&options, 1, 2, 0).through);
}

static void who_is_not_listed_is_not_shown(void **state)
{
    const struct options filter = { .prefix = "auto", .local_ranks_filter = "1" };
    struct options show = { .prefix = "auto", .show = "0,@last" };

    (void)state;
    assert_true(route(&filter, 0, 1, 0).nowhere);
    assert_true(route(&filter, 0, 2, 0).through && !route(&filter, 0, 2, 0).shown);
    assert_false(route(&filter, 1, 1, 0).nowhere);
    assert_true(route(&show, 1, 1, 1).nowhere);
    assert_true(route(&show, 3, 1, 1).shown);
    show.tee.ranks[1] = 1;
    assert_true(route(&show, 1, 1, 1).file && !route(&show, 1, 1, 1).shown);
}

static void a_prefix_of_the_users_is_for_pipes_too(void **state)
{
    struct options options = { .prefix = "$rank " };

    (void)state;
    assert_string_equal(route(&options, 0, 1, 0).prefix, "$rank ");
    options.tee.ranks[0] = 1;
    assert_string_equal(route(&options, 0, 1, 0).prefix, "$rank ");
    options.log_line_prefix_template = "T:";
    assert_string_equal(route(&options, 0, 1, 0).prefix, "T:");
    options.log_line_prefix_template = NULL;
    options.prefix = "none";
    assert_string_equal(route(&options, 0, 1, 0).prefix, "");
    assert_false(route(&options, 1, 1, 1).through);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_is_taken_whole_and_once),
        cmocka_unit_test(a_return_is_a_bar_or_an_end),
        cmocka_unit_test(what_is_no_utf8_is_replaced_as_python_does),
        cmocka_unit_test(a_template_is_filled_in_as_pythons),
        cmocka_unit_test(ranks_are_named_as_ranges),
        cmocka_unit_test(a_filter_is_a_list_of_words),
        cmocka_unit_test(an_equal_line_of_all_is_shown_once_and_at_once),
        cmocka_unit_test(a_line_waits_50_ms_and_no_longer),
        cmocka_unit_test(who_can_write_alone_never_waits),
        cmocka_unit_test(what_a_worker_wrote_stays_in_order),
        cmocka_unit_test(a_repetition_and_another_stream_are_no_copies),
        cmocka_unit_test(two_workers_out_of_step_still_fold),
        cmocka_unit_test(much_more_than_can_be_held_loses_nothing),
        cmocka_unit_test(without_a_flag_a_pipe_is_inherited_and_a_terminal_prefixed),
        cmocka_unit_test(tee_and_redirect_are_decided_per_rank_and_stream),
        cmocka_unit_test(who_is_not_listed_is_not_shown),
        cmocka_unit_test(a_prefix_of_the_users_is_for_pipes_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
