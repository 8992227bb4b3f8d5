/* SPDX-License-Identifier: Apache-2.0 */
/* test_trace_merge.c - clocks of several nodes on one, and their traces as one. */
#include "tests/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/trace/clock_align.h"
#include "launcher/trace/message_chains.h"
#include "launcher/trace/trace_merge.h"
#include "runtime/trace/trace_json.h"
#include "tests/json_check.h"

#define US 1000LL
#define MS 1000000LL
#define S 1000000000LL

/* ---- Clocks ------------------------------------------------------------------ */

enum { MOST_CLOCKS = 4, MOST_MESSAGES = 1000 };

/* Clock i shows offset[i] at the true time 0 and gains fast[i] ns a second. */
static struct scene {
    int64_t offset[MOST_CLOCKS], fast[MOST_CLOCKS];
    struct clock_line clocks[MOST_CLOCKS];
    struct clock_message messages[MOST_MESSAGES];
    int count, message_count;
    int64_t left;
} scene;

static int64_t shown(int clock, int64_t truth)
{
    return truth + scene.offset[clock] + truth / US * scene.fast[clock] / MS;
}

/* All traces last from the true time 0 to `end`; all wall clocks are right. */
static void begin_scene(int count, int64_t end, const int64_t *offset, const int64_t *fast)
{
    scene = (struct scene){ .count = count };
    for (int i = 0; i < count; i++) {
        scene.offset[i] = offset[i];
        scene.fast[i] = fast ? fast[i] : 0;
        scene.clocks[i] = (struct clock_line){ .first = shown(i, 0),
                                               .last = shown(i, end),
                                               .wall = 1700000000 * S - shown(i, 0),
                                               .has_wall = 1 };
    }
}

static void message(int from, int to, int64_t truth, int64_t delay)
{
    assert_true(scene.message_count < MOST_MESSAGES);
    scene.messages[scene.message_count++] =
        (struct clock_message){ shown(from, truth), shown(to, truth + delay), from, to };
}

/* There and back, every second until the end. */
static void talk(int a, int b, int64_t end, int64_t there, int64_t back)
{
    for (int64_t truth = 0; truth + there + back <= end; truth += S) {
        message(a, b, truth, there);
        message(b, a, truth + there, back);
    }
}

static void align(void)
{
    struct text all = { 0 };

    text_add(&all, (const char *)scene.messages,
             (size_t)scene.message_count * sizeof *scene.messages);
    message_chains_add(&all, scene.count);
    scene.left = clocks_align(scene.clocks, scene.count, (struct clock_message *)(void *)all.data,
                              all.used / sizeof(struct clock_message));
    free(all.data);
}

/* By how much the clock is wrong at that time, as clock 0 shows it. */
static int64_t error_at(int clock, int64_t truth)
{
    return clock_line_map(&scene.clocks[clock], shown(clock, truth)) - shown(0, truth);
}

static void expect_within(int64_t value, int64_t low, int64_t high)
{
    if (value < low || value > high)
        fail_msg("%lld is not in [%lld, %lld]", (long long)value, (long long)low, (long long)high);
}

static void expect_forward(void)
{
    assert_int_equal(scene.left, 0);
    for (int i = 0; i < scene.message_count; i++) {
        const struct clock_message *m = &scene.messages[i];

        assert_true(clock_line_map(&scene.clocks[m->from], m->sent)
                    <= clock_line_map(&scene.clocks[m->to], m->taken));
    }
}

/* Bounds are -10 us and +30 us from the truth at all times, so the middle is wrong by 10 us, and
 * half of the width is 20 us. */
static void two_clocks_differ_by_the_middle_of_what_messages_leave_open(void **state)
{
    static const int64_t offset[] = { 5 * S, 100000 * S };

    (void)state;
    begin_scene(2, 100 * S, offset, NULL);
    talk(0, 1, 100 * S, 10 * US, 30 * US);
    align();
    expect_forward();
    for (int64_t truth = 0; truth <= 100 * S; truth += 10 * S)
        expect_within(error_at(1, truth), 9900, 10100);
    expect_within(scene.clocks[1].error_ns, 20000, 20600); /* the last message is at 99 s */
    assert_int_equal(clock_line_map(&scene.clocks[0], 12345), 12345);
    assert_int_equal(scene.clocks[0].error_ns, 0);
}

static void a_clock_that_drifts_lies_on_a_line(void **state)
{
    static const int64_t offset[] = { 5 * S, -3 * S }, fast[] = { -20000, 30000 };

    (void)state;
    begin_scene(2, 200 * S, offset, fast); /* 50 ppm: apart by 10 ms at the end */
    talk(0, 1, 200 * S, 20 * US, 20 * US);
    align();
    expect_forward();
    for (int64_t truth = 0; truth <= 200 * S; truth += 10 * S)
        expect_within(error_at(1, truth), -200, 200);
    expect_within(scene.clocks[1].error_ns, 20000, 20500);
}

static void a_clock_that_is_being_corrected_may_run_faster_than_quartzes_do(void **state)
{
    static const int64_t offset[] = { 5 * S, 3 * S }, fast[] = { 0, 20000000 };

    (void)state;
    begin_scene(2, 20 * S, offset, fast);
    talk(0, 1, 20 * S, 20 * US, 20 * US);
    align();
    expect_forward();
    expect_within(error_at(1, 0), -1000, 1000);
    expect_within(error_at(1, 20 * S), -1000, 1000);
}

/* Messages in the first second tell little of the last one. */
static void far_from_all_messages_the_error_grows(void **state)
{
    static const int64_t offset[] = { 0, 7 * S };

    (void)state;
    begin_scene(2, 1000 * S, offset, NULL);
    talk(0, 1, S, 20 * US, 20 * US);
    align();
    expect_within(error_at(1, 0), -20000, 20000);
    expect_within(scene.clocks[1].error_ns, 100 * MS, 300 * MS);
}

static void clocks_are_linked_through_others_and_errors_add_up(void **state)
{
    static const int64_t offset[] = { 1 * S, 20 * S, 300 * S, 4000 * S };

    (void)state;
    begin_scene(4, 50 * S, offset, NULL);
    talk(0, 1, 50 * S, 10 * US, 10 * US);
    talk(1, 3, 50 * S, 5 * US, 5 * US);
    talk(3, 2, 50 * S, 20 * US, 20 * US);
    talk(0, 2, 50 * S, 100 * US, 500 * US); /* the long way is the better one */
    align();
    expect_forward();
    for (int i = 1; i < 4; i++)
        expect_within(error_at(i, 25 * S), -300, 300);
    expect_within(scene.clocks[1].error_ns, 10000, 10600);
    expect_within(scene.clocks[3].error_ns, 15000, 16000);
    expect_within(scene.clocks[2].error_ns, 35000, 37000);
}

/* 0-1 and 0-2 leave 12 us open and 1-2 leaves 14, so 1 and 2 are placed by 0: wrong by 5 us to
 * different sides, which is more than messages between them allow. */
static void lines_that_were_not_placed_by_each_other_agree_too(void **state)
{
    static const int64_t offset[] = { 1 * S, 20 * S, 300 * S };

    (void)state;
    begin_scene(3, 50 * S, offset, NULL);
    talk(0, 1, 50 * S, 1 * US, 11 * US);
    talk(0, 2, 50 * S, 11 * US, 1 * US);
    talk(1, 2, 50 * S, 7 * US, 7 * US);
    align();
    expect_forward();
    for (int i = 1; i < 3; i++)
        expect_within(error_at(i, 25 * S), -scene.clocks[i].error_ns, scene.clocks[i].error_ns);
}

/* Around it takes 4 x 10 us, so each clock is wrong by less than that. */
static void around_a_ring_messages_go_both_ways(void **state)
{
    static const int64_t offset[] = { 1 * S, 20 * S, 300 * S, 4000 * S };
    static const int64_t fast[] = { 0, 30000, -30000, 0 };

    (void)state;
    begin_scene(4, 50 * S, offset, fast);
    for (int64_t truth = 0; truth < 50 * S; truth += S)
        for (int i = 0; i < 8; i++)
            message(i % 4, (i + 1) % 4, truth + i * 10 * US, 9 * US);
    align();
    expect_forward();
    for (int i = 1; i < 4; i++) {
        expect_within(error_at(i, 0), -40 * US, 40 * US);
        expect_within(error_at(i, 49 * S), -40 * US, 40 * US);
        expect_within(scene.clocks[i].error_ns, 15 * US, 70 * US); /* added up */
    }
}

static void without_messages_both_ways_wall_clocks_count(void **state)
{
    static const int64_t offset[] = { 1 * S, 20 * S, 300 * S, 4000 * S };

    (void)state;
    begin_scene(4, 50 * S, offset, NULL);
    scene.clocks[1].wall -= 3 * MS; /* its wall clock is slow */
    message(1, 0, 10 * S, 50 * US); /* and by it this is sent 3 ms earlier: fine */
    scene.clocks[2].wall += 3 * MS;
    message(2, 0, 20 * S, 50 * US); /* this one later than it came */
    talk(2, 3, 50 * S, 10 * US, 10 * US);
    align();
    expect_forward();
    assert_int_equal(error_at(1, 10 * S), -3 * MS);
    expect_within(error_at(2, 20 * S), -3 * MS, 50 * US);
    expect_within(error_at(3, 20 * S) - error_at(2, 20 * S), -11 * US, 11 * US);
    for (int i = 1; i < 4; i++)
        assert_int_equal(scene.clocks[i].error_ns, -1);
}

/* Offsets 0, 1 ms and 0 at three times: the best line is 0.5 ms off all of them. */
static void where_no_line_fits_the_best_one_is_taken_and_what_is_left_said(void **state)
{
    static const int64_t offset[] = { 1 * S, 2 * S };

    (void)state;
    begin_scene(2, 20 * S, offset, NULL);
    for (int i = 0; i < 3; i++) {
        message(0, 1, i * 10 * S, 0);
        message(1, 0, i * 10 * S, 0);
    }
    scene.messages[2].taken += 1 * MS;
    scene.messages[3].sent += 1 * MS;
    align();
    expect_within(scene.left, 499 * US, 506 * US);
}

static void exact_messages_give_exact_clocks(void **state)
{
    static const int64_t offset[] = { 1 * S, 4000000 * S };

    (void)state;
    begin_scene(2, 20 * S, offset, NULL);
    for (int i = 0; i < 3; i++) {
        message(0, 1, i * 10 * S, 0);
        message(1, 0, i * 10 * S, 0);
    }
    align();
    expect_within(scene.left, 0, 1);
    expect_within(error_at(1, 5 * S), -1, 1);
    expect_within(scene.clocks[1].error_ns, 0, 2);
}

static void one_clock_and_clocks_without_times_are_no_trouble(void **state)
{
    struct clock_line clocks[2] = { { .first = 5, .last = 9 }, { .last = -1 } };

    (void)state;
    assert_int_equal(clocks_align(clocks, 1, NULL, 0), 0);
    assert_int_equal(clocks_align(clocks, 2, NULL, 0), 0);
    assert_int_equal(clock_line_map(&clocks[0], 7), 7);
    assert_int_equal(clocks[1].error_ns, -1);
}

/* Times that a broken file may have: sums of them must not leave 64 bits. */
static void clocks_that_lie_decades_apart_are_refused(void **state)
{
    const int64_t most = CLOCK_MOST_NS;
    struct clock_line clocks[3] = {
        { .first = 0, .last = most, .wall = -most / 2, .has_wall = 1 },
        { .first = most, .last = most, .wall = 2 * most, .has_wall = 1 },
        { .first = 0, .last = most }
    };
    struct clock_message contradict[] = { { 0, most, 0, 1 }, { most, 0, 1, 2 }, { most, 0, 2, 1 },
                                          { 0, most, 2, 0 }, { 0, most, 1, 0 }, { most, 0, 0, 2 } };

    (void)state;
    assert_int_equal(clocks_align(clocks, 2, NULL, 0), CLOCKS_FAR_APART);
    for (size_t i = 1; i <= sizeof contradict / sizeof *contradict; i++)
        assert_true(clocks_align(clocks, 3, contradict, i) >= CLOCKS_FAR_APART);
}

/* Each clock sends to the half of the others that follow it, in no order: so most messages end a
 * chain of some clock that gets none from their receiver. */
static void chains_take_no_more_than_four_times_the_memory_of_the_messages(void **state)
{
    enum { CLOCKS = 21, MESSAGES = 3000 };
    struct text all = { 0 };
    size_t before;
    unsigned draw = 1;

    (void)state;
    for (int i = 0; i < MESSAGES; i++) {
        const int from = (int)((draw = 1103515245 * draw + 12345) >> 16) % CLOCKS;
        const int by = 1 + (int)((draw = 1103515245 * draw + 12345) >> 16) % (CLOCKS / 2);
        const struct clock_message m = { 2 * i, 2 * i + 1, from, (from + by) % CLOCKS };

        text_add(&all, (const char *)&m, sizeof m);
    }
    before = all.used;
    assert_int_equal(message_chains_add(&all, CLOCKS), 1);
    assert_int_equal(all.used, CHAINS_GROWTH * before);
    free(all.data);
}

/* ---- Files ------------------------------------------------------------------- */

static char folder[200];

static const char *path_of(const char *name)
{
    static char paths[4][300];
    static int next;

    next = (next + 1) % 4;
    snprintf(paths[next], sizeof paths[next], "%s/%s", folder, name);
    return paths[next];
}

static char *slurp(const char *path, size_t *size)
{
    FILE *file = fopen(path, "re");
    char *text = calloc(1, 1 << 20);

    assert_non_null(file);
    *size = fread(text, 1, (1 << 20) - 1, file);
    fclose(file);
    return text;
}

static void spill(const char *path, const char *text, size_t size)
{
    FILE *file = fopen(path, "we");

    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, size, file), size);
    fclose(file);
}

static struct trace_event event(int kind, int peer, uint64_t id, int64_t begun, int64_t ended)
{
    return (struct trace_event){ .mark = 1,
                                 .begun_ns = (uint64_t)begun,
                                 .ended_ns = (uint64_t)ended,
                                 .id = id,
                                 .bytes = 4,
                                 .peer = peer,
                                 .thread = 7,
                                 .group = TRACE_GROUPS,
                                 .kind = (uint8_t)kind,
                                 .op = -1 };
}

/* A node's rank sends message 1000 + its node and takes the other's, both in 50 us by the clocks of
 * two nodes that differ by 1 s. */
static void write_node(const char *name, int node, const char *missing)
{
    const struct trace_about about = { node, 2, 0, 0, "host", "a1" };
    const struct trace_ring ring = { .rank = node, .pid = 42 };
    const int64_t zero = 5 * S + node * S;
    const struct trace_event sent =
        event(TRACE_SENT, 1 - node, 1000 + (uint64_t)node, zero, zero + 9);
    const struct trace_event took =
        event(TRACE_WAIT, 1 - node, 1001 - (uint64_t)node, zero, zero + 50 * US);
    struct trace_file file;
    struct trace_part part;

    assert_int_equal(trace_file_open(&file, path_of(name), NULL), CT_OK);
    trace_part_begin(&part, &file, &about);
    trace_part_ring(&part, &ring, 0);
    trace_part_event(&part, &sent);
    trace_part_event(&part, &took);
    trace_part_lost(&part, (uint64_t)node);
    trace_part_end(&part, missing);
    assert_int_equal(trace_file_settle(&file), CT_OK);
    trace_file_close(&file);
}

/* The merged trace; NULL: it was refused, and ct_last_error() says why. */
static char *merged(int count, char *const *paths, size_t *size)
{
    struct trace_merge merge;
    int is_merged = 0;
    FILE *out = fopen(path_of("merged.json"), "we");

    assert_non_null(out);
    if (trace_merge_read(&merge, paths, count) == CT_OK && trace_merge_write(&merge, out) == CT_OK)
        is_merged = 1;
    trace_merge_free(&merge);
    fclose(out);
    return is_merged ? slurp(path_of("merged.json"), size) : NULL;
}

static void open_folder(void)
{
    snprintf(folder, sizeof folder, "%s/mergeXXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    assert_non_null(mkdtemp(folder));
}

static void remove_folder(void)
{
    static const char *const names[] = { "0.json", "1.json", "merged.json", "again.json" };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unlink(path_of(names[i]));
    assert_int_equal(rmdir(folder), 0);
}

static void expect_in(const char *text, const char *words)
{
    if (!strstr(text, words))
        fail_msg("\"%s\" is not in:\n%s", words, text);
}

static void two_nodes_traces_are_one_on_the_clock_of_the_first(void **state)
{
    char *paths[2], *text;
    size_t size;

    (void)state;
    open_folder();
    write_node("0.json", 0, "");
    write_node("1.json", 1, "ctrun was killed");
    paths[0] = strdup(path_of("0.json"));
    paths[1] = strdup(path_of("1.json"));
    text = merged(2, paths, &size);
    assert_non_null(text);
    assert_true(is_json(text, size));
    /* Both were sent at 5 s, and taken 50 us later. */
    expect_in(text, "{\"ph\":\"s\",\"name\":\"message\",\"pid\":1,\"tid\":100,\"cat\":\"message\","
                    "\"ts\":5000000.000,\"id\":1000},\n");
    expect_in(text, "{\"ph\":\"s\",\"name\":\"message\",\"pid\":2,\"tid\":200,\"cat\":\"message\","
                    "\"ts\":5000000.000,\"id\":1001},\n");
    expect_in(text, "\"pid\":2,\"tid\":200,\"cat\":\"wait\",\"ts\":5000000.000,\"dur\":50.000,");
    expect_in(text, "\"pid\":2,\"tid\":200,\"cat\":\"message\",\"ts\":5000049.999,\"id\":1000,"
                    "\"bp\":\"e\"},\n");
    expect_in(text, "{\"labels\":\"1 events lost, ctrun was killed\"}");
    expect_in(text, "{\"labels\":\"clock +-50.0 us\"}");
    expect_in(text, "\"clock_offset_ns\":0,\"clock_error_ns\":0,\"missing\":null}}");
    expect_in(text, "\"clock_offset_ns\":-1000000000,\"clock_error_ns\":50");
    free(text);
    for (int i = 0; i < 2; i++)
        free(paths[i]);
    remove_folder();
}

static void expect_refused(int count, char *const *paths, const char *words)
{
    size_t size;
    char *text = merged(count, paths, &size);

    if (text)
        fail_msg("not refused: %s", words);
    expect_in(ct_last_error(), words);
}

static void what_is_no_trace_of_a_node_is_refused(void **state)
{
    char *paths[2];

    (void)state;
    open_folder();
    write_node("0.json", 0, "");
    write_node("1.json", 0, "");
    paths[0] = strdup(path_of("0.json"));
    paths[1] = strdup(path_of("1.json"));
    expect_refused(2, paths, "1.json are both of node 0 in the same round");
    expect_refused(1, (char *[]){ (char *)"/no/such/file" },
                   "/no/such/file: No such file or directory");
    expect_refused(1, (char *[]){ folder }, ": it is read twice, and is no regular file");
    write_node("1.json", 1, "");
    free(merged(2, paths, &(size_t){ 0 }));
    assert_int_equal(rename(path_of("merged.json"), path_of("again.json")), 0);
    free(paths[1]);
    paths[1] = strdup(path_of("again.json"));
    expect_refused(1, paths + 1, "again.json:8: this trace is merged already");
    for (int i = 0; i < 2; i++)
        free(paths[i]);
    remove_folder();
}

/* What is done to a sound file of eight lines, and what is said of it then. */
static const struct {
    const char *old, *new, *words;
} breaks[] = {
    { "{\"traceEvents\":[\n", "", "0.json:1: a trace of ctrun does not begin so" },
    { "\n],\"displayTimeUnit\":\"ns\"}\n", "", "0.json:8: this is not a whole line" },
    { "],\"displayTimeUnit\":\"ns\"}\n", "", "0.json:9: the file ends before the trace does" },
    { "\"ns\"}\n", "\"ns\"}\n\n", "0.json:9: the trace ends here, the file does not" },
    { ",\n{\"ph\":\"s\"", "\n{\"ph\":\"s\"", "0.json:5: a node's trace has no such line" },
    { "null}}\n", "null}},\n", "0.json:9: a node's trace has no such line" },
    { "\"to rank 1\"", "\"to rank \xff\"", "0.json:4: a node's trace has no such line" },
    { "\"to rank 1\"", "\"to rank \n\"", "0.json:4: a node's trace has no such line" },
    { "\"to rank 1\"", "\"to \\rank\"", "0.json:4: a node's trace has no such line" },
    { "\"tid\":100", "\"tid\":0100", "0.json:3: a node's trace has no such line" },
    { "\"ts\":5000000.000", "\"ts\":5000000.0", "0.json:4: a node's trace has no such line" },
    { "\"ts\":5000000.000", "\"ts\":-5000000.000", "0.json:4: a node's trace has no such line" },
    { "\"ts\":5000000.000", "\"ts\":9999999999999999999.000", "0.json:4: " },
    { "\"pid\":1,", "\"pid\":0,", "0.json:2: a node's trace has no such line" },
    { "\"name\":\"to rank 1\",\"pid\":1", "\"name\":\"to rank 1\",\"pid\":100001",
      "0.json:5: the round of this line had ended before" },
    { "\"bytes\":4,", "\"bytes\":four,", "0.json:4: a node's trace has no such line" },
    { "clock_realtime_ns", "clock_real_ns", "0.json:8: a node's trace has no such line" },
};

static void a_broken_file_is_refused_with_its_line(void **state)
{
    char *path, *text;
    size_t size;

    (void)state;
    open_folder();
    write_node("0.json", 0, "");
    path = strdup(path_of("0.json"));
    text = slurp(path, &size);
    for (size_t i = 0; i < sizeof breaks / sizeof *breaks; i++) {
        const char *at = strstr(text, breaks[i].old), *behind;
        FILE *file = fopen(path, "we");

        assert_non_null(at);
        behind = at + strlen(breaks[i].old);
        fwrite(text, 1, (size_t)(at - text), file);
        fwrite(breaks[i].new, 1, strlen(breaks[i].new), file);
        fwrite(behind, 1, size - (size_t)(behind - text), file);
        fclose(file);
        expect_refused(1, &path, breaks[i].words);
    }
    spill(path, text, 0);
    expect_refused(1, &path, "0.json:1: the file ends before the trace does");
    free(text);
    free(path);
    remove_folder();
}

/* Any byte may be any other: it is refused, or what comes of it is JSON. */
static void whatever_a_byte_becomes_no_other_json_comes_of_it(void **state)
{
    static const char other[] = { 0, '\n', '"', '\\', ',', '}', '9', '-', '.', 'x', (char)0xc3 };
    char *path, *text, *out;
    size_t size, bytes;

    (void)state;
    open_folder();
    write_node("0.json", 0, "");
    path = strdup(path_of("0.json"));
    text = slurp(path, &size);
    for (size_t i = 0; i < size; i++) {
        const char was = text[i];

        text[i] = other[i % sizeof other];
        spill(path, text, size);
        text[i] = was;
        if ((out = merged(1, &path, &bytes)))
            assert_true(is_json(out, bytes));
        free(out);
    }
    for (size_t i = 0; i < size; i++) {
        spill(path, text, i);
        assert_null(merged(1, &path, &bytes));
    }
    free(text);
    free(path);
    remove_folder();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_clocks_differ_by_the_middle_of_what_messages_leave_open),
        cmocka_unit_test(a_clock_that_drifts_lies_on_a_line),
        cmocka_unit_test(a_clock_that_is_being_corrected_may_run_faster_than_quartzes_do),
        cmocka_unit_test(far_from_all_messages_the_error_grows),
        cmocka_unit_test(clocks_are_linked_through_others_and_errors_add_up),
        cmocka_unit_test(lines_that_were_not_placed_by_each_other_agree_too),
        cmocka_unit_test(around_a_ring_messages_go_both_ways),
        cmocka_unit_test(without_messages_both_ways_wall_clocks_count),
        cmocka_unit_test(where_no_line_fits_the_best_one_is_taken_and_what_is_left_said),
        cmocka_unit_test(exact_messages_give_exact_clocks),
        cmocka_unit_test(one_clock_and_clocks_without_times_are_no_trouble),
        cmocka_unit_test(clocks_that_lie_decades_apart_are_refused),
        cmocka_unit_test(chains_take_no_more_than_four_times_the_memory_of_the_messages),
        cmocka_unit_test(two_nodes_traces_are_one_on_the_clock_of_the_first),
        cmocka_unit_test(what_is_no_trace_of_a_node_is_refused),
        cmocka_unit_test(a_broken_file_is_refused_with_its_line),
        cmocka_unit_test(whatever_a_byte_becomes_no_other_json_comes_of_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
