/* SPDX-License-Identifier: Apache-2.0 */
/* test_trace.c - the ring of a rank, and the file that is made of it. */
#include "tests/harness.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/trace/trace.h"
#include "runtime/trace/trace_json.h"
#include "tests/json_check.h"

enum { SMALL = 64, THREADS = 4, EACH = 20000 };

/* A ring in plain memory. */
static struct trace make_ring(void *memory, uint64_t events)
{
    struct trace_ring *ring = trace_ring_at(memory, 0, events);

    return (struct trace){ .ring = ring, .events = trace_events_of(ring), .mask = events - 1 };
}

static void *ring_memory(uint64_t events)
{
    void *memory = aligned_alloc(4096, trace_bytes(1, events));

    assert_non_null(memory);
    return memset(memory, 0, trace_bytes(1, events));
}

static uint64_t begin(struct trace *trace, uint64_t id)
{
    return trace_begin_now(
        trace, &(struct trace_what){
                   .kind = TRACE_SENT, .id = id, .bytes = 7 * id, .peer = (int)(id % 1000) });
}

static struct trace_walk walk_of(void *memory, uint64_t events)
{
    struct trace_walk walk;

    trace_walk_begin(&walk, memory, 1, events);
    assert_int_equal(trace_walk_ring(&walk), 1);
    return walk;
}

static void the_newest_events_overwrite_the_oldest(void **state)
{
    void *memory = ring_memory(SMALL);
    struct trace trace = make_ring(memory, SMALL);
    struct trace_event events[SMALL + 1];
    struct trace_walk walk;

    (void)state;
    for (uint64_t id = 1; id <= 3 * SMALL + 5; id++)
        trace_end(&trace, begin(&trace, id), CT_OK);
    walk = walk_of(memory, SMALL);
    assert_int_equal(trace_walk_events(&walk, events, SMALL + 1), SMALL);
    assert_int_equal(walk.lost, 2 * SMALL + 5);
    for (uint64_t i = 0; i < SMALL; i++)
        assert_int_equal(atomic_load(&events[i].id), 2 * SMALL + 6 + i);
    assert_int_equal(trace_walk_events(&walk, events, SMALL), 0);
    assert_int_equal(trace_walk_ring(&walk), 0);
    free(memory);
}

static void a_half_written_event_is_passed_over(void **state)
{
    void *memory = ring_memory(SMALL);
    struct trace trace = make_ring(memory, SMALL);
    struct trace_event events[SMALL];
    struct trace_walk walk;

    (void)state;
    for (uint64_t id = 1; id <= 3; id++)
        begin(&trace, id);
    atomic_store(&trace.events[1].mark, TRACE_HALF); /* killed in the middle */
    atomic_fetch_add(&trace.ring->next, 1);          /* killed before the beginning */
    walk = walk_of(memory, SMALL);
    assert_int_equal(trace_walk_events(&walk, events, SMALL), 2);
    assert_int_equal(atomic_load(&events[0].id), 1);
    assert_int_equal(atomic_load(&events[1].id), 3);
    assert_int_equal(walk.lost, 2);
    /* A writer that comes to that slot a ring later leaves it: another one may be writing. */
    for (uint64_t id = 4; id < SMALL + 1; id++)
        begin(&trace, id);
    assert_int_equal(begin(&trace, 1000), 0);
    assert_int_not_equal(begin(&trace, 1001), 0);
    free(memory);
}

static void the_end_of_an_event_that_is_overwritten_goes_nowhere(void **state)
{
    void *memory = ring_memory(SMALL);
    struct trace trace = make_ring(memory, SMALL);
    const uint64_t old = begin(&trace, 1);

    (void)state;
    for (uint64_t id = 2; id <= SMALL + 1; id++)
        begin(&trace, id);
    trace_end(&trace, old, CT_ERR_PEER);
    trace_received(&trace, old, CT_OK, 3, 4);
    for (int i = 0; i < SMALL; i++) {
        assert_int_equal(atomic_load(&trace.events[i].ended_ns), 0);
        assert_int_equal(atomic_load(&trace.events[i].status), 0);
    }
    free(memory);
}

static void *write_many(void *arg)
{
    for (uint64_t i = 0; i < EACH; i++)
        trace_end(arg, begin(arg, i), CT_OK);
    return NULL;
}

/* bytes is 7 id and peer id % 1000: an event of two writers would not be so. */
static void threads_write_together_and_no_event_is_mixed(void **state)
{
    enum { EVENTS = 4096 };
    void *memory = ring_memory(EVENTS);
    struct trace trace = make_ring(memory, EVENTS);
    pthread_t threads[THREADS];
    struct trace_event *events = calloc(EVENTS, sizeof *events);
    struct trace_walk walk;
    size_t count;

    (void)state;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_many, &trace), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    walk = walk_of(memory, EVENTS);
    count = trace_walk_events(&walk, events, EVENTS);
    assert_int_equal(count + walk.lost, THREADS * EACH);
    assert_true(count > EVENTS / 2); /* but for those that were overtaken by a whole ring */
    for (size_t i = 0; i < count; i++) {
        const uint64_t id = atomic_load(&events[i].id);

        assert_int_equal(events[i].bytes, 7 * id);
        assert_int_equal(atomic_load(&events[i].peer), id % 1000);
    }
    free(events);
    free(memory);
}

/* ---- The file -------------------------------------------------------------- */

static char *slurp(const char *path, size_t *size)
{
    FILE *file = fopen(path, "re");
    char *text = calloc(1, 8 << 20);

    assert_non_null(file);
    *size = fread(text, 1, (8 << 20) - 1, file);
    fclose(file);
    return text;
}

static int count_of(const char *text, const char *word)
{
    int count = 0;

    for (const char *at = text; (at = strstr(at, word)); at++)
        count++;
    return count;
}

static void temporary(char *path, size_t size)
{
    int fd;

    snprintf(path, size, "%s/traceXXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
}

static void what_never_ended_stands_there_without_an_end(void **state)
{
    const struct signature call = { .seq = 12,
                                    .count = 4,
                                    .operation = OPERATION_ALL_REDUCE,
                                    .dtype = CT_F32,
                                    .op = CT_SUM,
                                    .root = -1,
                                    .algorithm = 2 };
    void *memory = ring_memory(SMALL);
    struct trace trace = make_ring(memory, SMALL);
    const uint16_t group = trace_group(&trace, "gr\"\xff", 0, 2);
    char path[200], *text;
    size_t size;

    (void)state;
    temporary(path, sizeof path);
    for (int i = 0; i < 2; i++) {
        const uint64_t event = trace_begin_now(&trace, &(struct trace_what){ .kind = TRACE_CALL,
                                                                             .id = 12,
                                                                             .bytes = 16,
                                                                             .peer = -1,
                                                                             .signature = &call,
                                                                             .algorithm = "ring",
                                                                             .group = group });
        if (i == 0)
            trace_end(&trace, event, CT_ERR_PEER);
    }
    assert_int_equal(trace_write_ring(path, memory, SMALL), CT_OK);
    text = slurp(path, &size);
    assert_true(is_json(text, size));
    assert_int_equal(count_of(text, "\"ph\":\"X\",\"name\":\"all_reduce\""), 1);
    assert_int_equal(count_of(text, "\"ph\":\"B\",\"name\":\"all_reduce\""), 1);
    assert_int_equal(count_of(text, "\"args\":{\"seq\":12,\"bytes\":16,\"dtype\":\"f32\",\"op\":"
                                    "\"sum\",\"algorithm\":\"ring\",\"group\":\"gr\\\"\\ufffd\""),
                     2);
    assert_int_equal(count_of(text, "\"failed\":\"a peer is gone\""), 1);
    unlink(path);
    free(text);
    free(memory);
}

/* A program may have scribbled over its ring before it died. */
static void whatever_lies_in_a_ring_the_file_is_json(void **state)
{
    uint64_t random = 88172645463325252u;
    char path[200], *text;
    size_t size;

    (void)state;
    temporary(path, sizeof path);
    for (int turn = 0; turn < 50; turn++) {
        unsigned char *memory = ring_memory(SMALL);
        struct trace trace = make_ring(memory, SMALL);

        for (size_t i = TRACE_HEAD_BYTES; i < trace_bytes(1, SMALL); i++) {
            random ^= random << 13, random ^= random >> 7, random ^= random << 17;
            memory[i] = (unsigned char)(turn % 2 && random % 3 ? 0 : random >> 32);
        }
        atomic_store(&trace.ring->next, turn % 5 ? SMALL + 9 : random);
        for (int i = 0; i < SMALL; i++) {
            const uint64_t next = atomic_load(&trace.ring->next);
            const uint64_t number = next - SMALL + (((uint64_t)i - next) & (SMALL - 1));

            trace.events[i].kind = (uint8_t)(i % (TRACE_KINDS + 1));
            trace.events[i].begun_ns &= INT64_MAX >> 4; /* else it is none */
            atomic_fetch_and(&trace.events[i].ended_ns, INT64_MAX >> 4);
            atomic_store(&trace.events[number & (SMALL - 1)].mark, number + 1);
        }
        assert_int_equal(trace_write_ring(path, memory, SMALL), CT_OK);
        text = slurp(path, &size);
        assert_true(is_json(text, size));
        assert_true(count_of(text, "\n") > SMALL / 2);
        free(text);
        free(memory);
    }
    unlink(path);
}

static void the_file_is_whole_after_every_settling_and_another_can_go_on(void **state)
{
    _Atomic int64_t body = 0;
    struct trace_file file;
    char path[200], *text;
    size_t size;

    (void)state;
    temporary(path, sizeof path);
    assert_int_equal(trace_file_open(&file, path, &body), CT_OK);
    for (int turn = 0; turn < 4; turn++) {
        text = slurp(path, &size);
        assert_true(is_json(text, size));
        assert_int_equal(count_of(text, "{\"a\":1}"), turn);
        free(text);
        if (turn == 2) { /* killed, in the middle of a line */
            text_add(trace_file_line(&file), "{\"a", 3);
            trace_file_close(&file);
            assert_int_equal(trace_file_resume(&file, path, &body), CT_OK);
        }
        text_add(trace_file_line(&file), "{\"a\":1}", 7);
        assert_int_equal(trace_file_settle(&file), CT_OK);
    }
    trace_file_close(&file);
    unlink(path);
}

static void a_full_disk_is_said_once(void **state)
{
    struct trace_file file;

    (void)state;
    assert_int_equal(trace_file_open(&file, "/dev/full", NULL), CT_ERR_SYSTEM);
    assert_non_null(strstr(ct_last_error(), "/dev/full: No space left on device"));
    text_add(trace_file_line(&file), "1", 1);
    assert_int_equal(trace_file_settle(&file), CT_OK);
    trace_file_close(&file);
}

static void one_of_several_files_has_its_part_before_the_ending(void **state)
{
    char path[32];

    (void)state;
    assert_int_equal(trace_file_name(path, sizeof path, "run.json", "node1"), 14);
    assert_string_equal(path, "run.node1.json");
    trace_file_name(path, sizeof path, "a.b/run", "rank12");
    assert_string_equal(path, "a.b/run.rank12");
    trace_file_name(path, sizeof path, ".run", "node0.round2");
    assert_string_equal(path, ".run.node0.round2");
    trace_file_name(path, sizeof path, "run.json", "");
    assert_string_equal(path, "run.json");
    assert_int_equal(trace_file_name(path, 14, "run.json", "node1"), -1);
}

/* ---- A rank by itself ------------------------------------------------------ */

static void sum_and_pass_on(ct_group *group, void *arg)
{
    const int me = program_rank(), p = program_size();
    int32_t values[4] = { me, me, me, me }, other = 0;
    char path[300], *text;
    size_t size;

    (void)group, (void)arg;
    snprintf(path, sizeof path, "%s/run.json", scratch());
    setenv("CT_TRACE", path, 1);
    for (int again = 0; again < 2; again++) { /* both are in its file */
        EXPECT_OK(ct_init_process_group(NULL));
        EXPECT_OK(ct_all_reduce(CT_WORLD, values, values, 4, CT_I32, CT_SUM, NULL));
        if (me == 0)
            EXPECT_OK(ct_send(CT_WORLD, &me, 1, CT_I32, 1, 5));
        if (me == 1)
            EXPECT_OK(ct_recv(CT_WORLD, &other, 1, CT_I32, CT_ANY_SOURCE, 5, NULL));
        EXPECT_OK(ct_barrier(CT_WORLD, NULL));
        EXPECT_OK(ct_destroy_process_group(CT_WORLD));
    }
    snprintf(path, sizeof path, "%s/run.rank%d.json", scratch(), me);
    text = slurp(path, &size);
    EXPECT(is_json(text, size));
    EXPECT(count_of(text, "\"ph\":\"X\",\"name\":\"init\"") >= 2); /* one may be a try */
    EXPECT(count_of(text, "\"ph\":\"X\",\"name\":\"all_reduce\"") == 2);
    EXPECT(count_of(text, "\"seq\":1,\"bytes\":16,\"dtype\":\"i32\",\"op\":\"sum\"") == 2);
    EXPECT(count_of(text, "\"ph\":\"X\",\"name\":\"send\"") == 2 * (me == 0));
    EXPECT(count_of(text, "\"ph\":\"X\",\"name\":\"recv\"") == 2 * (me == 1));
    EXPECT(count_of(text, "\"name\":\"waits for rank 0\"") >= 2 * (me == 1));
    EXPECT(count_of(text, "\"peer\":1,\"bytes\":4,\"tag\":5") >= 2 * (me == 0));
    EXPECT(count_of(text, "\"ph\":\"B\"") == 0);
    EXPECT(p > 1);
    free(text);
}

static void without_a_launcher_each_rank_writes_its_file(void **state)
{
    (void)state;
    run_programs(3, sum_and_pass_on, NULL);
}

static void first_arrow(const char *path, const char *phase, char *id, size_t size)
{
    char begin_of[64], *text, *at;
    size_t bytes;

    text = slurp(path, &bytes);
    snprintf(begin_of, sizeof begin_of, "{\"ph\":\"%s\",\"name\":\"message\"", phase);
    at = strstr(text, begin_of);
    at = at ? strstr(at, "\"id\":") : NULL;
    snprintf(id, size, "%.*s", at ? (int)strspn(at + 5, "0123456789") : 0, at ? at + 5 : "");
    free(text);
}

/* Rank 0 sends one message over TCP before anything else could: the arrow that begins there
 * ends at rank 1. */
static void send_one(ct_group *group, void *arg)
{
    const int me = program_rank();
    char path[300], from[32], to[32];
    int32_t value = 5;

    (void)group, (void)arg;
    setenv("CT_LINK", "tcp", 1);
    snprintf(path, sizeof path, "%s/%%r.json", scratch());
    setenv("CT_TRACE", path, 1);
    EXPECT_OK(ct_init_process_group(NULL));
    if (me == 0)
        EXPECT_OK(ct_send(CT_WORLD, &value, 1, CT_I32, 1, 0));
    else
        EXPECT_OK(ct_recv(CT_WORLD, &value, 1, CT_I32, 0, 0, NULL));
    EXPECT_OK(ct_barrier(CT_WORLD, NULL));
    EXPECT_OK(ct_destroy_process_group(CT_WORLD));
    snprintf(path, sizeof path, "%s/done", scratch());
    if (me == 1) {
        fclose(fopen(path, "we"));
        return;
    }
    while (access(path, F_OK) != 0) /* the run has a deadline */
        nap(1);
    snprintf(path, sizeof path, "%s/0.json", scratch());
    first_arrow(path, "s", from, sizeof from);
    snprintf(path, sizeof path, "%s/1.json", scratch());
    first_arrow(path, "f", to, sizeof to);
    EXPECT(*from && !strcmp(from, to));
}

static void both_sides_of_a_message_know_its_arrow(void **state)
{
    (void)state;
    run_programs(2, send_one, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_newest_events_overwrite_the_oldest),
        cmocka_unit_test(a_half_written_event_is_passed_over),
        cmocka_unit_test(the_end_of_an_event_that_is_overwritten_goes_nowhere),
        cmocka_unit_test(threads_write_together_and_no_event_is_mixed),
        cmocka_unit_test(what_never_ended_stands_there_without_an_end),
        cmocka_unit_test(whatever_lies_in_a_ring_the_file_is_json),
        cmocka_unit_test(the_file_is_whole_after_every_settling_and_another_can_go_on),
        cmocka_unit_test(a_full_disk_is_said_once),
        cmocka_unit_test(one_of_several_files_has_its_part_before_the_ending),
        cmocka_unit_test(without_a_launcher_each_rank_writes_its_file),
        cmocka_unit_test(both_sides_of_a_message_know_its_arrow),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
