/* SPDX-License-Identifier: Apache-2.0 */
/* test_report.c - what is said of a failure: sentences, torchrun's layout, error.json,
 * the memory cgroup's word, core files; and who died first. */
#include "tests/harness.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/report/core_file.h"
#include "launcher/report/error_file.h"
#include "launcher/report/first_failure.h"
#include "launcher/report/report.h"
#include "runtime/util/json_writer.h"

static char folder[] = "/tmp/test_report_XXXXXX";

static const char *put(const char *name, const char *content)
{
    static char path[200];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_non_null(file = fopen(path, "w"));
    fputs(content, file);
    assert_int_equal(fclose(file), 0);
    return path;
}

static void make_folder(const char *name)
{
    char path[200];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(mkdir(path, 0700), 0);
}

/* ---- Sentences --------------------------------------------------------------- */

static int odd_or_large(const struct worker *worker)
{
    return worker->rank % 2 == 1 || worker->rank > 4;
}

static void sets_of_ranks_are_short(void **state)
{
    struct worker workers[8];
    char text[64];

    (void)state;
    for (int i = 0; i < 8; i++)
        workers[i] = (struct worker){ .rank = i };
    report_ranks(workers, 8, odd_or_large, text, sizeof text);
    assert_string_equal(text, "1,3,5-7");
}

static void causes_are_named(void **state)
{
    struct worker worker = { .how = CLD_EXITED, .code = 7 };
    char text[64];

    (void)state;
    report_cause(&worker, text, sizeof text);
    assert_string_equal(text, "exited with code 7");
    worker = (struct worker){ .how = CLD_DUMPED, .code = SIGSEGV };
    report_cause(&worker, text, sizeof text);
    assert_string_equal(text, "was killed by SIGSEGV (core dumped)");
}

/* ---- error.json -------------------------------------------------------------- */

static struct error_json of(const char *content)
{
    struct error_json error;

    error_json_read(&error, put("error.json", content));
    return error;
}

static void both_shapes_of_an_error_file_are_read(void **state)
{
    struct error_json error = of("{\"message\":\"hello\",\"timestamp\":\"100\"}");

    (void)state;
    assert_int_equal(error.state, ERROR_READ);
    assert_string_equal(error.text, "hello");
    assert_int_equal(error.structured, 0);
    assert_true(error.timestamp == 100);
    error_json_free(&error);
    error = of("{\"message\":{\"message\":\"E: x\",\"extraInfo\":"
               "{\"py_callstack\":\"Traceback\\n  f()\\nE: x\\n\",\"timestamp\":1700000000}}}");
    assert_string_equal(error.text, "Traceback\n  f()\nE: x\n");
    assert_int_equal(error.structured, 1);
    assert_true(error.timestamp == 1700000000);
    error_json_free(&error);
    error = of("{\"message\":{\"message\":\"x\",\"extraInfo\":{\"timestamp\":\"5\"}}}");
    assert_string_equal(error.text, "x");
    error_json_free(&error);
}

static void a_broken_error_file_is_said_to_be_broken(void **state)
{
    static const char *const broken[] = {
        "junk",    "{\"message\":", "[1,2]", "{\"timestamp\":1}", "{\"message\":\"\\u0000\"}",
        "\xff\xfe"
    };
    struct error_json error;

    (void)state;
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        error = of(broken[i]);
        assert_int_equal(error.state, ERROR_BROKEN);
        assert_true(*error.why);
        assert_null(error.text);
        error_json_free(&error);
    }
    error = of("");
    assert_int_equal(error.state, ERROR_ABSENT);
    error_json_free(&error);
    error_json_read(&error, "/no/such/file");
    assert_int_equal(error.state, ERROR_ABSENT);
    error_json_free(&error);
}

static void odd_timestamps_are_none(void **state)
{
    static const char *const odd[] = { "\"nan\"", "\"inf\"", "-5", "\"x\"", "null", "[]", "{}" };
    char text[100];

    (void)state;
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        struct error_json error;

        snprintf(text, sizeof text, "{\"message\":\"m\",\"timestamp\":%s}", odd[i]);
        error = of(text);
        assert_int_equal(error.state, ERROR_READ);
        assert_true(error.timestamp == 0);
        error_json_free(&error);
    }
}

static void a_huge_error_file_and_one_that_never_ends_are_not_read(void **state)
{
    char *huge = malloc((2 << 20) + 1), path[200];
    struct error_json error;

    (void)state;
    assert_non_null(huge);
    memset(huge, ' ', 2 << 20);
    huge[2 << 20] = '\0';
    error = of(huge);
    free(huge);
    assert_int_equal(error.state, ERROR_BROKEN);
    assert_string_equal(error.why, "it is larger than 1 MiB");
    error_json_free(&error);
    snprintf(path, sizeof path, "%s/fifo", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    error_json_read(&error, path);
    assert_int_equal(error.state, ERROR_ABSENT);
    error_json_free(&error);
    error_json_read(&error, "/dev/zero");
    assert_int_equal(error.state, ERROR_ABSENT);
    error_json_free(&error);
}

static void a_copy_of_a_structured_file_gets_the_exit_code(void **state)
{
    struct error_json error =
        of("{\"message\":{\"message\":\"x\",\"extraInfo\":{\"timestamp\":\"5\"}}}");
    char to[200];

    (void)state;
    snprintf(to, sizeof to, "%s/parent.json", folder);
    assert_int_equal(error_json_copy(&error, to, -9), 0);
    error_json_free(&error);
    error_json_read(&error, to);
    assert_int_equal(error.state, ERROR_READ);
    assert_non_null(strstr(error.bytes, "\"errorCode\": -9"));
    error_json_free(&error);
    error = of("{\"message\":\"flat\"}");
    assert_int_equal(error_json_copy(&error, to, 3), 0);
    error_json_free(&error);
    error_json_read(&error, to);
    assert_int_equal(error.size, strlen("{\"message\":\"flat\"}"));
    error_json_free(&error);
    assert_int_equal(error_json_copy(&error, "/no/such/folder/file", 3), -1);
}

static void what_we_write_ourselves_can_be_read(void **state)
{
    struct error_json error;
    char to[200];

    (void)state;
    snprintf(to, sizeof to, "%s/own.json", folder);
    assert_int_equal(error_json_write(to, "node \"0\"\n\xff did \x1b not come"), 0);
    error_json_read(&error, to);
    assert_int_equal(error.state, ERROR_READ);
    assert_int_equal(error.structured, 1);
    assert_true(error.timestamp > 1.7e9);
    assert_string_equal(error.text, "node \"0\"\n\xef\xbf\xbd did \x1b not come");
    error_json_free(&error);
}

/* ---- The layout -------------------------------------------------------------- */

static struct program program = { .path = "/bin/sh", .words = (char *[]){ "sh", NULL } };
static struct run_folder none;
static struct oom_watch unwatched = { .kills = -1 };

/* Rank 1 of `size` failed first, rank 2 failed after it, the others were stopped. */
static char *layout_of(int size)
{
    static struct worker workers[200];
    static char all[20000];
    const struct failed_round round = { workers,  size,  &workers[size > 1],
                                        &program, &none, &unwatched,
                                        0,        NULL };
    struct text out = { 0 };

    for (int i = 0; i < size; i++)
        workers[i] = (struct worker){ .rank = i,
                                      .local_rank = i,
                                      .pid = 100 + i,
                                      .how = CLD_KILLED,
                                      .code = SIGTERM,
                                      .asked = i == 2 ? 0 : SIGTERM };
    workers[size > 1] = (struct worker){ .rank = size > 1, .pid = 7, .how = CLD_EXITED, .code = 7 };
    workers[size > 1].first_failed = 1;
    report_add_blocks(&out, &round);
    snprintf(all, sizeof all, "%.*s", (int)out.used, out.data);
    free(out.data);
    return all;
}

static void the_layout_has_torchruns_lines_with_their_trailing_blanks(void **state)
{
    const char *text = layout_of(3), *cause, *others;

    (void)state;
    assert_non_null(strstr(text, "\nsh FAILED\n---"));
    assert_non_null(cause =
                        strstr(text, "Root Cause (first observed failure):\n[0]:\n  time      : "));
    assert_non_null(strstr(cause, "\n  rank      : 1 (local_rank: 0)\n  exitcode  : 7 (pid: 7) \n"
                                  "  error_file: <N/A>\n  traceback : <N/A>\n---"));
    assert_non_null(others = strstr(cause, "-\nFailures:\n[1]:\n"));
    assert_non_null(strstr(others, "  exitcode  : -15 (pid: 102)  (SIGTERM)\n"));
    assert_non_null(strstr(others, "traceback : Signal 15 (SIGTERM) received by PID 102\n"
                                   "  cause     : failed after rank 1 did\n[2]:\n"));
    assert_non_null(strstr(others, "  cause     : stopped by ctrun (SIGTERM)\n==="));
    assert_non_null(strstr(layout_of(1), "Failures:\n  <NO_OTHER_FAILURES>\n==="));
}

static void a_report_of_200_workers_stays_on_one_screen(void **state)
{
    int lines = 0;
    const char *text = layout_of(200);

    (void)state;
    for (const char *at = text; *at; at++)
        lines += *at == '\n';
    assert_in_range(lines, 30, 48);
    assert_non_null(strstr(text, "\n  and 196 more stopped by ctrun: ranks 4-199\n==="));
}

static void rules_are_as_wide_as_the_widest_line_and_60_at_most(void **state)
{
    static char longer[100];
    static char *long_words[] = { longer, NULL }, *odd_words[] = { "a\033]0;b\x7f", NULL },
                *short_words[] = { "sh", NULL }; /* the later tests use it */
    const char *text = layout_of(1);

    (void)state;
    assert_int_equal(strspn(text, "="), strlen("  time      : 2026-11-21_12:30:00"));
    memset(longer, 'x', 99);
    program.words = long_words;
    assert_int_equal(strspn(layout_of(1), "="), 60);
    program.words = odd_words;
    assert_non_null(strstr(layout_of(1), "a?]0;b? FAILED\n"));
    program.words = short_words;
}

static void what_a_terminal_would_obey_is_replaced(void **state)
{
    struct text out = { 0 };
    const char in[] = "a\033[2Jb\tc\r\b\xc2\x9b"
                      "d\xc3\xa9";

    (void)state;
    report_add_plain(&out, in, sizeof in - 1);
    text_add(&out, "", 1);
    assert_string_equal(out.data, "a?[2Jb\tc???d\xc3\xa9");
    free(out.data);
}

/* ---- Out of memory ------------------------------------------------------------ */

static void cgroup_v2_tells_an_oom_kill_and_whose_limit_it_was(void **state)
{
    struct oom_watch oom;
    char self[200], why[200];

    (void)state;
    make_folder("job");
    make_folder("job/step");
    snprintf(self, sizeof self, "%s", put("self", "0::/job/step\n"));
    put("job/memory.max", "34359738368\n");
    put("job/memory.peak", "34359734272\n");
    put("job/step/memory.max", "max\n");
    put("job/step/memory.events", "low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 9\n");
    oom_watch_open(&oom, folder, self);
    assert_int_equal(oom.kills, 2);
    assert_int_equal(oom_killed(&oom, why, sizeof why), 0);
    put("job/step/memory.events", "low 0\nhigh 0\nmax 12\noom 3\noom_kill 3\noom_group_kill 9\n");
    assert_int_equal(oom_killed(&oom, why, sizeof why), 1);
    assert_string_equal(why, "cgroup limit 32.0 GiB, peak 32.0 GiB");
    put("job/step/memory.max", "1048576\n");
    assert_int_equal(oom_killed(&oom, why, sizeof why), 1);
    assert_string_equal(why, "cgroup limit 1.0 MiB");
    oom_watch_reset(&oom);
    assert_int_equal(oom_killed(&oom, why, sizeof why), 0);
}

static void cgroup_v1_does_so_in_a_file_of_another_name(void **state)
{
    struct oom_watch oom;
    char self[200], why[200];

    (void)state;
    make_folder("memory");
    make_folder("memory/a");
    snprintf(self, sizeof self, "%s", put("self1", "9:name=systemd:/\n4:memory:/a\n0::/\n"));
    put("memory/a/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n");
    put("memory/a/memory.limit_in_bytes", "536870912\n");
    put("memory/a/memory.max_usage_in_bytes", "536870000\n");
    put("memory/memory.limit_in_bytes", "9223372036854771712\n");
    oom_watch_open(&oom, folder, self);
    assert_int_equal(oom.kills, 0);
    put("memory/a/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n");
    assert_int_equal(oom_killed(&oom, why, sizeof why), 1);
    assert_string_equal(why, "cgroup limit 512.0 MiB, peak 512.0 MiB");
}

static void without_a_counter_nothing_is_claimed(void **state)
{
    static const char *const odd[] = { "", "0::\n", "junk", "4:memory", "1:cpu:/\n0::/nowhere\n" };
    struct oom_watch oom;
    char self[200], why[200];

    (void)state;
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        snprintf(self, sizeof self, "%s", put("odd", odd[i]));
        oom_watch_open(&oom, "/no/such/mount", self);
        oom_watch_reset(&oom);
        assert_int_equal(oom_killed(&oom, why, sizeof why), 0);
    }
}

/* ---- Core files --------------------------------------------------------------- */

static void a_core_pattern_becomes_the_name_of_a_file(void **state)
{
    const struct worker worker = { .pid = 42, .how = CLD_DUMPED, .code = SIGSEGV };
    char name[200], tiny[4];

    (void)state;
    assert_int_equal(core_file_name("core", 0, &worker, "/bin/sh", name, sizeof name), 0);
    assert_string_equal(name, "core");
    core_file_name("core", 1, &worker, "/bin/sh", name, sizeof name);
    assert_string_equal(name, "core.42");
    core_file_name("/c/%e.%p.%s%%%", 1, &worker, "/bin/a_program_of_many_words", name, sizeof name);
    assert_string_equal(name, "/c/a_program_of_ma.42.11%");
    assert_int_equal(core_file_name("%t", 0, &worker, "x", name, sizeof name), -1);
    core_file_name("%e%e%e", 1, &worker, "abcdef", tiny, sizeof tiny);
    assert_string_equal(tiny, "abc");
}

/* ---- Who died first ------------------------------------------------------------ */

static void wait_until_dead(pid_t pid)
{
    siginfo_t info;

    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
}

static struct worker sleeper(int rank)
{
    struct worker worker = { .rank = rank, .local_rank = rank, .running = 1 };

    worker.pid = fork();
    if (worker.pid == 0) {
        pause();
        _exit(0);
    }
    return worker;
}

static void tell_nobody(void *arg, const struct worker *worker)
{
    (void)arg;
    (void)worker;
}

/* Many more than one epoll_wait() takes, in an order that is not that of the ranks. */
static void the_dead_come_in_the_order_of_their_deaths(void **state)
{
    enum { COUNT = 150, STRIDE = 77 };
    struct worker workers[COUNT];
    struct first_failure failures;

    (void)state;
    assert_int_equal(first_failure_open(&failures, workers, COUNT, tell_nobody, NULL), 0);
    for (int i = 0; i < COUNT; i++) {
        workers[i] = sleeper(i);
        first_failure_watch(&failures, &workers[i]);
        assert_true(failures.pidfds[i] >= 0);
    }
    assert_int_equal(first_failure_collect(&failures), 0);
    for (int i = 0; i < COUNT; i++) {
        kill(workers[i * STRIDE % COUNT].pid, SIGTERM);
        wait_until_dead(workers[i * STRIDE % COUNT].pid);
    }
    assert_int_equal(first_failure_collect(&failures), COUNT);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(failures.ended[i], i * STRIDE % COUNT);
        assert_int_equal(waitpid(workers[i].pid, NULL, 0), workers[i].pid);
    }
    assert_int_equal(first_failure_collect(&failures), 0);
    first_failure_close(&failures);
}

/* The order in which they end, and how: > 0: an exit code, < 0: a signal. */
static int first_of(int count, const int *ranks, const int *ends)
{
    struct worker workers[4] = { 0 };
    struct first_failure failures;
    int first;

    assert_int_equal(first_failure_open(&failures, workers, 4, tell_nobody, NULL), 0);
    for (int i = 0; i < count; i++) {
        struct worker *worker = &workers[ranks[i]];

        *worker = (struct worker){ .rank = ranks[i], .local_rank = ranks[i], .running = 1 };
        worker->pid = fork();
        if (worker->pid == 0) {
            if (ends[i] < 0)
                raise(-ends[i]);
            _exit(ends[i] & 255);
        }
        wait_until_dead(worker->pid);
        first_failure_watch(&failures, worker);
    }
    assert_int_equal(first_failure_collect(&failures), count);
    assert_int_equal(first_failure_to_front(&failures, count, &none), count);
    first = failures.ended[0];
    for (int i = 0; i < count; i++)
        waitpid(workers[i].pid, NULL, 0);
    first_failure_close(&failures);
    return first;
}

static void an_exit_gives_way_to_a_death_by_signal(void **state)
{
    static const int ranks[] = { 2, 0, 1 };

    (void)state;
    assert_int_equal(first_of(3, ranks, (const int[]){ 3, 4, 5 }), 2);
    assert_int_equal(first_of(3, ranks, (const int[]){ 0, 4, 5 }), 0);
    assert_int_equal(first_of(3, ranks, (const int[]){ 3, 4, -SIGKILL }), 1);
    assert_int_equal(first_of(3, ranks, (const int[]){ 3, -SIGTERM, -SIGKILL }), 0);
    assert_int_equal(first_of(3, ranks, (const int[]){ 3, -SIGABRT, -SIGPIPE }), 2);
}

static int setup(void **state)
{
    (void)state;
    setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
    return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
    char command[100];

    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sets_of_ranks_are_short),
        cmocka_unit_test(causes_are_named),
        cmocka_unit_test(both_shapes_of_an_error_file_are_read),
        cmocka_unit_test(a_broken_error_file_is_said_to_be_broken),
        cmocka_unit_test(odd_timestamps_are_none),
        cmocka_unit_test(a_huge_error_file_and_one_that_never_ends_are_not_read),
        cmocka_unit_test(a_copy_of_a_structured_file_gets_the_exit_code),
        cmocka_unit_test(what_we_write_ourselves_can_be_read),
        cmocka_unit_test(the_layout_has_torchruns_lines_with_their_trailing_blanks),
        cmocka_unit_test(a_report_of_200_workers_stays_on_one_screen),
        cmocka_unit_test(rules_are_as_wide_as_the_widest_line_and_60_at_most),
        cmocka_unit_test(what_a_terminal_would_obey_is_replaced),
        cmocka_unit_test(cgroup_v2_tells_an_oom_kill_and_whose_limit_it_was),
        cmocka_unit_test(cgroup_v1_does_so_in_a_file_of_another_name),
        cmocka_unit_test(without_a_counter_nothing_is_claimed),
        cmocka_unit_test(a_core_pattern_becomes_the_name_of_a_file),
        cmocka_unit_test(the_dead_come_in_the_order_of_their_deaths),
        cmocka_unit_test(an_exit_gives_way_to_a_death_by_signal),
    };

    return cmocka_run_group_tests(tests, setup, tear_down);
}
