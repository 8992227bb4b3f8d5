/* SPDX-License-Identifier: Apache-2.0 */
/* test_fault.c - CT_FAULT: what it says, where it happens, what the others see of it. */
#include "tests/harness.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/fault/fault_injection.h"

/* ---- Words ------------------------------------------------------------------ */

static void the_words_of_a_fault_become_its_numbers(void **state)
{
    struct faults faults = { 0 };
    const struct fault *f;

    (void)state;
    assert_int_equal(
        faults_read(&faults, 3,
                    "rank:3,op:all_reduce,phase:1,kill;op:*,rank:*,seq:4294967297,stop;"
                    "call:7,phase:end,op:recv,every,delay:50ms;delay:300us;"
                    "op:init,phase:3,exit:255;abort;first_seq:9223372036854775807"),
        CT_OK);
    assert_int_equal(faults.count, 6);
    assert_true(faults.first_seq == INT64_MAX);
    f = faults.list;
    assert_true(f->rank == 3 && f->operation == OPERATION_ALL_REDUCE && f->phase == 1
                && f->action == FAULT_KILL && !f->seq && !f->call && !f->every);
    f++;
    assert_true(f->rank == FAULT_ANY && f->operation == FAULT_ANY && f->phase == 0
                && f->seq == 4294967297 && f->action == FAULT_STOP);
    f++;
    assert_true(f->call == 7 && f->phase == FAULT_END && f->operation == OPERATION_RECV && f->every
                && f->action == FAULT_DELAY && f->argument == 50000);
    f++;
    assert_true(f->argument == 300);
    f++;
    assert_true(f->operation == FAULT_INIT && f->action == FAULT_EXIT && f->argument == 255);
    f++;
    assert_true(f->action == FAULT_ABORT);
    free(faults.list);
}

static void a_fault_of_another_rank_is_none_of_ours(void **state)
{
    struct faults *faults;

    (void)state;
    setenv("CT_FAULT", "rank:3,kill", 1);
    assert_int_equal(faults_from_environment(2, &faults), CT_OK);
    assert_null(faults);
    assert_int_equal(faults_from_environment(3, &faults), CT_OK);
    assert_non_null(faults);
    faults_free(faults);
    setenv("CT_FAULT", "", 1);
    assert_int_equal(faults_from_environment(3, &faults), CT_OK);
    assert_null(faults);
    unsetenv("CT_FAULT");
}

static void what_cannot_be_meant_is_refused_by_its_part(void **state)
{
    static const struct {
        const char *text, *words;
    } wrong[] = {
        { "rank:x,kill", "\"rank:x\"" },
        { "rank:-1,kill", "\"rank:-1\"" },
        { "op:allreduce,kill", "\"op:allreduce\"|all_reduce" },
        { "phase:,kill", "\"phase:\"" },
        { "kill,seq:0", "\"seq:0\"" },
        { "kill,call:18446744073709551616", "\"call:18446744073709551616\"" },
        { "kill;rank:1,kil", "\"kil\"|not a word" },
        { "kill:9", "\"kill:9\"|no value" },
        { "rank,kill", "\"rank\"|wants" },
        { "kill,stop", "\"stop\"|one thing" },
        { "kill,kill", "\"kill\"|already" },
        { "rank:1,op:barrier", "does nothing" },
        { "delay:50", "\"delay:50\"|50ms" },
        { "delay:50min", "\"delay:50min\"" },
        { "delay:-5ms", "\"delay:-5ms\"" },
        { "delay:99999999999999999999ms", "\"delay:99999999999999999999ms\"" },
        { "exit:256", "\"exit:256\"" },
        { "op:send,seq:4,kill", "seq|call:|op:send" },
        { "op:store,abort", "abort|op:store" },
        { "op:init,abort", "abort|op:init" },
        { "op:init,phase:4,kill", "phase|op:init|0 to 3" },
        { "op:recv,phase:1,kill", "phase|op:recv" },
        { "op:store,phase:end,kill", "phase|op:store" },
        { "first_seq:0", "\"first_seq:0\"" },
        { "first_seq:9223372036854775808", "\"first_seq:9223372036854775808\"" },
        { "first_seq:5;first_seq:5", "first_seq|once" },
        { "first_seq:5,kill", "\"first_seq:5,kill\"" },
        { "hosts:", "\"hosts:\"" },
        { "hosts:1.x", "\"hosts:1.x\"" },
        { "hosts:1.", "\"hosts:1.\"" },
        { "hosts:1,0", "\"hosts:1,0\"" },
        { "hosts:0;hosts:0", "hosts|once" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct faults faults = { 0 };

        expect_status(faults_read(&faults, 0, wrong[i].text), CT_ERR_INVALID, wrong[i].words,
                      wrong[i].text, __FILE__, __LINE__);
        free(faults.list);
    }
}

static void init_refused(ct_group *group, void *arg)
{
    (void)group;
    (void)arg;
    EXPECT_ERROR(ct_init_process_group(NULL), CT_ERR_INVALID,
                 "ct_init_process_group|CT_FAULT|\"phase:x\"");
    EXPECT(!ct_is_initialized());
}

static void a_wrong_variable_is_refused_at_init(void **state)
{
    (void)state;
    setenv("CT_FAULT", "rank:1,op:barrier,phase:x,kill", 1);
    run_programs(1, init_refused, NULL);
    unsetenv("CT_FAULT");
}

/* ---- Places ------------------------------------------------------------------ */

static int times;

static ct_status count_one(ct_group *group)
{
    (void)group;
    times++;
    return CT_OK;
}

/* How often a fault happens in 9 all_reduce of one hand-over and, after each, a barrier. */
static int happened(const char *text)
{
    struct faults faults = { .abort = count_one };
    ct_group *const group = (ct_group *)(void *)&times; /* it is never dereferenced */

    times = 0;
    assert_int_equal(faults_read(&faults, 0, text), CT_OK);
    for (uint64_t seq = 1; seq <= 18; seq++) {
        fault_begin(&faults, group, seq % 2 ? OPERATION_ALL_REDUCE : OPERATION_BARRIER, seq);
        fault_pass(&faults);
        fault_end(&faults);
    }
    free(faults.list);
    return times;
}

static void a_fault_happens_at_its_place_and_once(void **state)
{
    (void)state;
    assert_int_equal(happened("abort"), 1);
    assert_int_equal(happened("every,abort"), 18);
    assert_int_equal(happened("op:barrier,every,abort"), 9);
    assert_int_equal(happened("op:barrier,phase:1,every,abort"), 9);
    assert_int_equal(happened("op:barrier,phase:2,every,abort"), 0);
    assert_int_equal(happened("op:barrier,phase:end,every,abort"), 9);
    assert_int_equal(happened("op:barrier,call:9,abort"), 1);
    assert_int_equal(happened("op:barrier,call:10,abort"), 0);
    assert_int_equal(happened("op:barrier,call:4,every,abort"), 2);
    assert_int_equal(happened("call:18,abort"), 1);
    assert_int_equal(happened("op:all_reduce,seq:17,abort"), 1);
    assert_int_equal(happened("op:all_reduce,seq:18,abort"), 0);
    assert_int_equal(happened("seq:18,every,abort;seq:3,abort"), 2);
    assert_int_equal(happened("op:send,every,abort"), 0);
}

/* ---- In a group -------------------------------------------------------------- */

static ct_status add_up(ct_group *group)
{
    const int p = ct_size(group);
    int64_t sum = ct_rank(group) + 1;
    const ct_status status = ct_all_reduce(group, &sum, &sum, 1, CT_I64, CT_SUM, NULL);

    if (status == CT_OK)
        EXPECT(sum == p * (p + 1) / 2);
    return status;
}

static void aborted_at_the_third(ct_group *group, void *arg)
{
    (void)arg;
    EXPECT_OK(add_up(group));
    EXPECT_OK(ct_barrier(group, NULL));
    if (ct_rank(group) == 1)
        EXPECT_ERROR(add_up(group), CT_ERR_ABORTED, "group created is broken|ct_abort");
    else
        EXPECT_STATUS(add_up(group), CT_ERR_PEER);
}

static void abort_breaks_the_group_in_that_call(void **state)
{
    (void)state;
    setenv("CT_FAULT", "rank:1,op:all_reduce,seq:3,abort", 1);
    run_ranks(3, aborted_at_the_third, NULL);
    unsetenv("CT_FAULT");
}

static void numbered(ct_group *group, void *arg)
{
    ct_group *half;
    ct_status status;

    for (int i = 0; i < 5; i++)
        EXPECT_OK(i % 2 ? ct_barrier(group, NULL) : add_up(group));
    EXPECT_OK(ct_split_group(group, ct_rank(group) % 2, 0, &half)); /* the sixth */
    for (int i = 0; i < 5; i++)
        EXPECT_OK(add_up(half));
    EXPECT_OK(ct_destroy_process_group(half));
    EXPECT_OK(add_up(group));
    status = ct_rank(group) == 0 ? ct_barrier(group, NULL) : add_up(group);
    EXPECT(status == CT_ERR_MISMATCH || status == CT_ERR_PEER); /* which says the eighth's number */
    EXPECT_ERROR(status, status, arg);
}

/* From four before on: the group's eighth call, on which the ranks differ, is three behind. */
static void numbers_go_through_two_to_the_32_and_63(void **state)
{
    static const uint64_t edges[] = { (uint64_t)1 << 32, (uint64_t)1 << 63 };

    (void)state;
    for (int i = 0; i < 2; i++) {
        char text[64], number[32];

        snprintf(text, sizeof text, "first_seq:%llu", (unsigned long long)(edges[i] - 4));
        snprintf(number, sizeof number, "#%llu", (unsigned long long)(edges[i] + 3));
        setenv("CT_FAULT", text, 1);
        run_ranks(3, numbered, number);
        run_ranks(2, numbered, number);
    }
    unsetenv("CT_FAULT");
}

static void delayed(ct_group *group, void *arg)
{
    const double start = now_ms();
    int32_t value = 0;
    ct_work *work;

    (void)arg;
    EXPECT_OK(add_up(group)); /* 20 ms */
    EXPECT_OK(add_up(group));
    EXPECT(now_ms() - start >= 20);
    if (ct_rank(group) == 0) { /* 30 ms each */
        EXPECT_OK(ct_isend(group, &value, 1, CT_I32, 1, 0, &work));
        EXPECT_OK(ct_wait(work));
        EXPECT_OK(ct_send(group, &value, 1, CT_I32, 1, 0));
        EXPECT(now_ms() - start >= 80);
    } else {
        EXPECT_OK(ct_recv(group, &value, 1, CT_I32, 0, 0, NULL));
        EXPECT_OK(ct_recv(group, &value, 1, CT_I32, 0, 0, NULL));
    }
}

static void a_delay_takes_its_time_and_spoils_nothing(void **state)
{
    (void)state;
    setenv("CT_FAULT", "op:all_reduce,call:2,phase:1,delay:20ms;op:send,phase:end,every,delay:30ms",
           1);
    run_ranks(2, delayed, NULL);
    unsetenv("CT_FAULT");
}

/* Rank 2 is on rank 0's host, so its 1 is lost in a hundred million before rank 1's comes. */
static void on_two_hosts(ct_group *group, void *arg)
{
    static const float given[] = { 1e8f, -1e8f, 1 };
    float sum;

    (void)arg;
    EXPECT_OK(ct_all_reduce(group, &given[ct_rank(group)], &sum, 1, CT_F32, CT_SUM, NULL));
    EXPECT(sum == 0);
}

static void hosts_are_what_the_variable_says(void **state)
{
    (void)state;
    setenv("CT_FAULT", "hosts:7.1.7", 1);
    run_ranks(3, on_two_hosts, NULL);
    unsetenv("CT_FAULT");
}

/* ---- Ends -------------------------------------------------------------------- */

/* The rest of a rank in a process of its own, which may die; its status as of waitpid(). */
static int in_a_process(void (*rest)(void *arg), void *arg, int stopped)
{
    const pid_t pid = fork();
    int status = -1;

    if (pid == 0) {
        rest(arg);
        _exit(0);
    }
    if (stopped) {
        EXPECT(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status));
        kill(pid, SIGCONT);
    }
    EXPECT(waitpid(pid, &status, 0) == pid);
    return status;
}

struct death {
    const char *fault;
    int wait_status; /* of the victim, rank 1 */
    int good;        /* calls that the others finish */
};

static ct_init_options soon(void)
{
    ct_init_options options = CT_INIT_OPTIONS_INIT;

    options.timeout_ms = GROUP_TIMEOUT_MS;
    return options;
}

static void five_calls(void *arg)
{
    const ct_init_options options = soon();

    (void)arg;
    EXPECT_OK(ct_init_process_group(&options));
    for (int i = 0; i < 5; i++)
        if (!EXPECT_OK(add_up(CT_WORLD)))
            return;
    EXPECT_OK(ct_destroy_process_group(CT_WORLD));
}

static void one_dies(ct_group *group, void *arg)
{
    const struct death *death = arg;
    const ct_init_options options = soon();

    (void)group;
    if (program_rank() == 1) {
        EXPECT(in_a_process(five_calls, NULL, 0) == death->wait_status);
        return;
    }
    EXPECT_OK(ct_init_process_group(&options));
    for (int i = 0; i < death->good; i++)
        EXPECT_OK(add_up(CT_WORLD));
    EXPECT_STATUS(add_up(CT_WORLD), CT_ERR_PEER);
    EXPECT_OK(ct_destroy_process_group(CT_WORLD));
}

/* What was handed over counts: behind its only hand-over the others need nothing of it. */
static void a_killed_rank_has_made_its_hand_overs(void **state)
{
    struct death deaths[] = {
        { "rank:1,op:all_reduce,call:3,kill", SIGKILL, 2 },
        { "rank:1,op:all_reduce,call:3,phase:1,kill", SIGKILL, 3 },
        { "rank:1,op:all_reduce,call:3,phase:end,exit:7", 7 << 8, 3 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof deaths / sizeof *deaths; i++) {
        setenv("CT_FAULT", deaths[i].fault, 1);
        run_programs(3, one_dies, &deaths[i]);
    }
    unsetenv("CT_FAULT");
}

static void one_is_killed_on_the_way(void *arg)
{
    const ct_init_options options = soon();

    (void)arg;
    ct_init_process_group(&options);
    ct_store_set(ct_store_default(), "key", "value", 5);
    ct_store_set(ct_store_default(), "key", "value", 5);
}

static void alone_in(ct_group *group, void *arg)
{
    (void)group;
    EXPECT(in_a_process(one_is_killed_on_the_way, NULL, 0) == *(const int *)arg);
}

static void init_and_the_store_are_places_too(void **state)
{
    static const char *const faults[] = { "op:init,exit:9",           "op:init,phase:1,exit:9",
                                          "op:init,phase:2,exit:9",   "op:init,phase:3,exit:9",
                                          "op:init,phase:end,exit:9", "op:store,call:2,exit:9" };
    int code = 9 << 8;

    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        setenv("CT_FAULT", faults[i], 1);
        run_programs(1, alone_in, &code);
    }
    setenv("CT_FAULT", "op:store,call:3,exit:9", 1);
    code = 0;
    run_programs(1, alone_in, &code);
    unsetenv("CT_FAULT");
}

static void one_stops(ct_group *group, void *arg)
{
    (void)group;
    if (program_rank() == 1)
        EXPECT(in_a_process(five_calls, NULL, 1) == 0);
    else
        five_calls(arg);
}

static void a_stopped_rank_goes_on_when_it_is_told(void **state)
{
    (void)state;
    setenv("CT_FAULT", "rank:1,op:all_reduce,call:2,phase:1,stop", 1);
    run_programs(3, one_stops, NULL);
    use_link("tcp");
    run_programs(3, one_stops, NULL);
    use_link(NULL);
    unsetenv("CT_FAULT");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_words_of_a_fault_become_its_numbers),
        cmocka_unit_test(a_fault_of_another_rank_is_none_of_ours),
        cmocka_unit_test(what_cannot_be_meant_is_refused_by_its_part),
        cmocka_unit_test(a_wrong_variable_is_refused_at_init),
        cmocka_unit_test(a_fault_happens_at_its_place_and_once),
        cmocka_unit_test(abort_breaks_the_group_in_that_call),
        cmocka_unit_test(numbers_go_through_two_to_the_32_and_63),
        cmocka_unit_test(hosts_are_what_the_variable_says),
        cmocka_unit_test(a_delay_takes_its_time_and_spoils_nothing),
        cmocka_unit_test(a_killed_rank_has_made_its_hand_overs),
        cmocka_unit_test(init_and_the_store_are_places_too),
        cmocka_unit_test(a_stopped_rank_goes_on_when_it_is_told),
    };

    unsetenv("CT_FAULT");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
