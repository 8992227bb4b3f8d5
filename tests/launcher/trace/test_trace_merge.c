/* SPDX-License-Identifier: Apache-2.0 */
/* test_trace_merge.c - traces of several nodes as one. */
#include "tests/harness.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/trace/trace_merge.h"
#include "runtime/trace/trace_json.h"
#include "tests/json_check.h"

#define US 1000LL
#define S 1000000000LL

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

/* In that round a node's rank sends message 1000 + its node and takes the other's, both in 50 us
 * from 5 s on by that clock; by its own 1 s later.  "": by its own. */
static void write_part(struct trace_file *file, int node, int round, const char *clock,
                       const char *missing)
{
    struct trace_about about = {
        .node = node, .nodes = 2, .round = round, .host = "host", .generation = "a1"
    };
    const struct trace_ring ring = { .rank = node, .pid = 42 };
    const int64_t zero = 5 * S + (*clock ? node * S : 0);
    const struct trace_event sent =
        event(TRACE_SENT, 1 - node, 1000 + (uint64_t)node, zero, zero + 9);
    const struct trace_event took =
        event(TRACE_WAIT, 1 - node, 1001 - (uint64_t)node, zero, zero + 50 * US);
    struct trace_part part;

    snprintf(about.clock.name, sizeof about.clock.name, "%s", clock);
    if (node > 0 && *clock)
        about.clock.offset_ns = -S, about.clock.error_ns = 50 * US;
    trace_part_begin(&part, file, &about);
    trace_part_ring(&part, &ring, 0);
    trace_part_event(&part, &sent);
    trace_part_event(&part, &took);
    trace_part_lost(&part, (uint64_t)node);
    trace_part_end(&part, missing);
    assert_int_equal(trace_file_settle(file), CT_OK);
}

static void write_node(const char *name, int node, const char *clock, const char *missing)
{
    struct trace_file file;

    assert_int_equal(trace_file_open(&file, path_of(name), NULL), CT_OK);
    write_part(&file, node, 0, clock, missing);
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

static char *merge_two(size_t *size, int *shifts)
{
    char *paths[2] = { strdup(path_of("0.json")), strdup(path_of("1.json")) }, *text;
    struct trace_merge merge;

    assert_int_equal(trace_merge_read(&merge, paths, 2), CT_OK);
    assert_int_equal(trace_merge_shifts(&merge, 0), 0);
    *shifts = trace_merge_shifts(&merge, 1);
    trace_merge_free(&merge);
    text = merged(2, paths, size);
    assert_non_null(text);
    assert_true(is_json(text, *size));
    for (int i = 0; i < 2; i++)
        free(paths[i]);
    return text;
}

static void traces_on_one_clock_are_put_together_as_they_are(void **state)
{
    char *text;
    size_t size;
    int shifts;

    (void)state;
    open_folder();
    write_node("0.json", 0, "node 0 (h0)", "");
    write_node("1.json", 1, "node 0 (h0)", "ctrun was killed");
    text = merge_two(&size, &shifts);
    assert_int_equal(shifts, 0);
    /* Both were sent at 5 s, and taken 50 us later. */
    expect_in(text, "{\"ph\":\"s\",\"name\":\"message\",\"pid\":1,\"tid\":100,\"cat\":\"message\","
                    "\"ts\":5000000.000,\"id\":1000},\n");
    expect_in(text, "{\"ph\":\"s\",\"name\":\"message\",\"pid\":2,\"tid\":200,\"cat\":\"message\","
                    "\"ts\":5000000.000,\"id\":1001},\n");
    expect_in(text, "\"pid\":2,\"tid\":200,\"cat\":\"wait\",\"ts\":5000000.000,\"dur\":50.000,");
    expect_in(text, "\"pid\":2,\"tid\":200,\"cat\":\"message\",\"ts\":5000049.999,\"id\":1000,"
                    "\"bp\":\"e\"},\n");
    expect_in(text, "{\"labels\":\"clock +-50.0 us, 1 events lost, ctrun was killed\"}");
    expect_in(text, "\"clock\":\"node 0 (h0)\",\"clock_shift_ns\":0,\"clock_offset_ns\":0,"
                    "\"clock_error_ns\":0,\"missing\":null}}");
    expect_in(text,
              "\"clock\":\"node 0 (h0)\",\"clock_shift_ns\":0,\"clock_offset_ns\":-1000000000,"
              "\"clock_error_ns\":50000,\"missing\":\"ctrun was killed\"}}");
    free(text);
    remove_folder();
}

/* What stands behind `key` in that part's end. */
static long long number_in(const char *text, const char *part, const char *key)
{
    const char *at = strstr(text, part);

    assert_non_null(at);
    at = strstr(at, key);
    assert_non_null(at);
    return strtoll(at + strlen(key), NULL, 10);
}

/* No ctrun compared this node's clock, so the part is moved by what both clocks of each file showed
 * at its end.  On one host that is little. */
static void a_trace_on_another_clock_is_moved_by_the_wall_clocks(void **state)
{
    static const char *const parts[] = { "\"ctrun_part\",\"pid\":1,", "\"ctrun_part\",\"pid\":2," };
    long long wall[2], shift;
    char *text, sent[64];
    size_t size;
    int shifts;

    (void)state;
    open_folder();
    write_node("0.json", 0, "node 0 (h0)", "");
    write_node("1.json", 1, "", "");
    text = merge_two(&size, &shifts);
    for (int i = 0; i < 2; i++)
        wall[i] = number_in(text, parts[i], "\"clock_realtime_ns\":")
                  - number_in(text, parts[i], "\"clock_monotonic_ns\":");
    shift = wall[1] - wall[0];
    assert_int_equal(number_in(text, parts[1], "\"clock_shift_ns\":"), shift);
    assert_int_equal(shifts, shift != 0);
    snprintf(sent, sizeof sent, "\"ts\":%lld.%03lld,\"id\":1001},\n", (5 * S + shift) / 1000,
             (5 * S + shift) % 1000);
    expect_in(text, sent);
    expect_in(text, "\"dur\":50.000,");
    expect_in(text, "{\"labels\":\"clock compared with no other node's, 1 events lost\"}");
    expect_in(text, "\"clock\":null,");
    free(text);
    remove_folder();
}

/* What the clock of part `number` of node 1 says of itself when it was merged. */
static const char *clock_of_part(const char *text, int number)
{
    while (number-- > 0) {
        text = strstr(text, "\"ctrun_part\",\"pid\":");
        assert_non_null(text);
        text++;
    }
    return strstr(text, "\"clock\":");
}

static void expect_begins(const char *text, const char *words)
{
    if (strncmp(text, words, strlen(words)) != 0)
        fail_msg("\"%s\" is not at: %.200s", words, text);
}

/* Two rounds on the clock of a coordinator that the first file does not know: what the wall clocks
 * showed at their ends differs, but they belong together. */
static void parts_on_one_foreign_clock_move_together(void **state)
{
    struct trace_file file;
    char *text, words[64];
    long long shift;
    size_t size;
    int shifts;

    (void)state;
    open_folder();
    write_node("0.json", 0, "boot0/7", "");
    assert_int_equal(trace_file_open(&file, path_of("1.json"), NULL), CT_OK);
    write_part(&file, 1, 1, "boot1/7", "");
    usleep(2000);
    write_part(&file, 1, 2, "boot1/7", "");
    trace_file_close(&file);
    text = merge_two(&size, &shifts);
    assert_int_equal(shifts, 1);
    shift = number_in(text, "\"ctrun_part\",\"pid\":100002,", "\"clock_shift_ns\":");
    assert_true(shift != 0);
    assert_int_equal(number_in(text, "\"ctrun_part\",\"pid\":200002,", "\"clock_shift_ns\":"),
                     shift);
    snprintf(words, sizeof words, "\"ts\":%lld.%03lld,\"id\":1001},\n", (5 * S + shift) / 1000,
             (5 * S + shift) % 1000);
    expect_in(strstr(text, "\"pid\":200002"), words);
    free(text);
    remove_folder();
}

static void the_error_of_a_part_that_was_moved_is_not_known(void **state)
{
    char *text;
    size_t size;
    int shifts;

    (void)state;
    open_folder();
    write_node("0.json", 0, "boot0/7", "");
    write_node("1.json", 1, "boot1/7", "");
    text = merge_two(&size, &shifts);
    assert_int_equal(shifts, 1);
    expect_in(clock_of_part(text, 2), "\"clock_error_ns\":null,\"missing\":null}}");
    expect_in(text,
              "{\"labels\":\"placed by wall clocks, its own clock +-50.0 us, 1 events lost\"}");
    free(text);
    remove_folder();
}

/* The successor of a coordinator counts rounds from 0 on. */
static void rounds_of_the_same_number_in_one_file_have_their_own_clocks(void **state)
{
    struct trace_file file;
    char *text;
    size_t size;
    int shifts;

    (void)state;
    open_folder();
    write_node("0.json", 0, "boot0/7", "");
    assert_int_equal(trace_file_open(&file, path_of("1.json"), NULL), CT_OK);
    write_part(&file, 1, 1, "boot0/7", "");
    write_part(&file, 1, 1, "boot1/7", "");
    write_part(&file, 1, 0, "boot0/7", "");
    trace_file_close(&file);
    text = merge_two(&size, &shifts);
    assert_int_equal(shifts, 1);
    expect_begins(clock_of_part(text, 2), "\"clock\":\"boot0/7\",\"clock_shift_ns\":0,");
    expect_begins(clock_of_part(text, 4), "\"clock\":\"boot0/7\",\"clock_shift_ns\":0,");
    expect_in(clock_of_part(text, 3), "\"clock_error_ns\":null");
    expect_in(strstr(text, "\"pid\":100002,"), "\"ts\":5000000.000,\"id\":1001},\n");
    free(text);
    remove_folder();
}

/* errno is all that tells ctctl, however many lines there are behind what could not be written. */
static void a_disk_that_is_full_is_named(void **state)
{
    char *path, buffer[4096];
    struct trace_merge merge;
    struct trace_file file;
    FILE *out = fopen("/dev/full", "we");

    (void)state;
    open_folder();
    path = strdup(path_of("0.json"));
    assert_int_equal(trace_file_open(&file, path, NULL), CT_OK);
    for (int round = 0; round < 7; round++)
        write_part(&file, 0, round, "boot0/7", "");
    trace_file_close(&file);
    assert_non_null(out);
    setvbuf(out, buffer, _IOFBF, sizeof buffer);
    assert_int_equal(trace_merge_read(&merge, &path, 1), CT_OK);
    errno = 0;
    trace_merge_write(&merge, out);
    assert_true(ferror(out));
    assert_int_equal(errno, ENOSPC);
    fclose(out);
    trace_merge_free(&merge);
    free(path);
    remove_folder();
}

/* Its ctrun and the guard were killed while they wrote it. */
static void a_part_that_does_not_tell_its_clock_stays_where_it_is(void **state)
{
    char *text, *end, *tail;
    size_t size;
    int shifts;

    (void)state;
    open_folder();
    write_node("0.json", 0, "node 0 (h0)", "");
    write_node("1.json", 1, "node 0 (h0)", "");
    text = slurp(path_of("1.json"), &size);
    end = strstr(text, ",\n{\"ph\":\"M\",\"name\":\"ctrun_part\"");
    tail = strstr(text, "\n],");
    assert_true(end && tail);
    memmove(end, tail, strlen(tail) + 1);
    spill(path_of("1.json"), text, strlen(text));
    free(text);
    text = merge_two(&size, &shifts);
    assert_int_equal(shifts, 0);
    expect_in(text, "\"ts\":5000000.000,\"id\":1001},\n");
    free(text);
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
    write_node("0.json", 0, "node 0 (h0)", "");
    write_node("1.json", 0, "node 0 (h0)", "");
    paths[0] = strdup(path_of("0.json"));
    paths[1] = strdup(path_of("1.json"));
    expect_refused(2, paths, "1.json are both of node 0 in the same round");
    expect_refused(1, (char *[]){ (char *)"/no/such/file" },
                   "/no/such/file: No such file or directory");
    expect_refused(1, (char *[]){ folder },
                   " is not a regular file; ctctl must read a trace twice");
    write_node("1.json", 1, "node 0 (h0)", "");
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
    { "{\"traceEvents\":[\n", "", "0.json:1: a trace of ctrun does not begin with this line" },
    { "\n],\"displayTimeUnit\":\"ns\"}\n", "", "0.json:8: this is not a whole line" },
    { "],\"displayTimeUnit\":\"ns\"}\n", "", "0.json:9: the file ends before the trace does" },
    { "\"ns\"}\n", "\"ns\"}\n\n", "0.json:9: the trace ends here, but the file does not" },
    { ",\n{\"ph\":\"s\"", "\n{\"ph\":\"s\"", "0.json:5: a node's trace has no such line" },
    { "null}}\n", "null}},\n", "0.json:9: a node's trace has no such line" },
    { "\"to rank 1\"", "\"to rank \xff\"", "0.json:4: a node's trace has no such line" },
    { "\"to rank 1\"", "\"to rank \n\"", "0.json:4: a node's trace has no such line" },
    { "\"to rank 1\"", "\"to \\rank\"", "0.json:4: a node's trace has no such line" },
    { "\"tid\":100", "\"tid\":0100", "0.json:3: a node's trace has no such line" },
    { "\"ts\":5000000.000", "\"ts\":5000000.0", "0.json:4: a node's trace has no such line" },
    { "\"ts\":5000000.000", "\"ts\":-5000000.000", "0.json:4: a node's trace has no such line" },
    { "\"ts\":5000000.000", "\"ts\":9999999999999999999.000", "0.json:4: " },
    { "\"ts\":5000000.000", "\"ts\":\"x.ab\"", "0.json:4: a node's trace has no such line" },
    { "\"pid\":1,", "\"pid\":0,", "0.json:2: a node's trace has no such line" },
    { "\"name\":\"to rank 1\",\"pid\":1", "\"name\":\"to rank 1\",\"pid\":100001",
      "0.json:5: the round of this line had ended before" },
    { "\"bytes\":4,", "\"bytes\":four,", "0.json:4: a node's trace has no such line" },
    { "\"bytes\":4,", "\"bytes\":,", "0.json:4: a node's trace has no such line" },
    { "clock_realtime_ns", "clock_real_ns", "0.json:8: this trace is of another version of ctrun" },
    { "\"clock\":\"node 0 (h0)\",", "", "0.json:8: this trace is of another version of ctrun" },
    { ",\"clock\":\"node 0 (h0)\",\"clock_offset_ns\":0,\"clock_error_ns\":0", "",
      "0.json:8: this trace is of another version of ctrun" },
    { "\"missing\":", "\"clock\":\"c\",\"missing\":",
      "0.json:8: this trace is of another version of ctrun" },
};

static void a_broken_file_is_refused_with_its_line(void **state)
{
    char *path, *text;
    size_t size;

    (void)state;
    open_folder();
    write_node("0.json", 0, "node 0 (h0)", "");
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
    write_node("0.json", 0, "node 0 (h0)", "");
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
        cmocka_unit_test(traces_on_one_clock_are_put_together_as_they_are),
        cmocka_unit_test(a_trace_on_another_clock_is_moved_by_the_wall_clocks),
        cmocka_unit_test(parts_on_one_foreign_clock_move_together),
        cmocka_unit_test(the_error_of_a_part_that_was_moved_is_not_known),
        cmocka_unit_test(rounds_of_the_same_number_in_one_file_have_their_own_clocks),
        cmocka_unit_test(a_disk_that_is_full_is_named),
        cmocka_unit_test(a_part_that_does_not_tell_its_clock_stays_where_it_is),
        cmocka_unit_test(what_is_no_trace_of_a_node_is_refused),
        cmocka_unit_test(a_broken_file_is_refused_with_its_line),
        cmocka_unit_test(whatever_a_byte_becomes_no_other_json_comes_of_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
