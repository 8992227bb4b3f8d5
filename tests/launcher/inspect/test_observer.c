/* SPDX-License-Identifier: Apache-2.0 */
/* test_observer.c - observers that show the calls of other libraries on a control page, readers
 * that ask them, and the rank that is to blame for such a call. */
#include "tests/launcher/inspect/page.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "launcher/inspect/ask.h"
#include "launcher/inspect/find_jobs.h"
#include "launcher/inspect/observed_blame.h"
#include "launcher/inspect/page_reader.h"
#include "launcher/inspect/proc_info.h"
#include "launcher/inspect/verdict_text.h"
#include "runtime/types/call_signature.h"
#include "runtime/util/clock.h"

#define SECOND 1000000000ull
#define LIMIT deadline_after(20000) /* of an answer that comes */

/* ---- The observer of a rank --------------------------------------------------- */

static ct_observer *observer_of(const struct page *page, int rank)
{
    ct_observer *observer;
    char words[64];

    snprintf(words, sizeof words, "%d:-1:%d", page->fd, rank);
    setenv("CT_CONTROL", words, 1);
    assert_int_equal(ct_observer_open(rank, &observer), CT_OK);
    return observer;
}

static struct ct_observed_call all_reduce(unsigned long long number, enum ct_observed_state state,
                                          unsigned long long age_ns)
{
    return (struct ct_observed_call){ .operation = "all_reduce",
                                      .number = number,
                                      .count = 4,
                                      .dtype = CT_F32,
                                      .peer = -1,
                                      .state = state,
                                      .age_ns = age_ns,
                                      .place = "train.py:5 (step)" };
}

/* Answers that the rank made the calls on the world, and is at `place`. */
static void answer(ct_observer *observer, int rank, int size, const char *place,
                   const struct ct_observed_call *calls, int count)
{
    const struct ct_observed_group world = {
        .name = "world", .id = 7, .rank = rank, .size = size, .call_count = count, .calls = calls
    };
    const struct ct_observation seen = { .size = sizeof seen,
                                         .phase = CT_OBSERVED_READY,
                                         .place = place,
                                         .stacks_fd = -1,
                                         .group_count = 1,
                                         .groups = &world };

    assert_int_equal(ct_observer_answer(observer, &seen), CT_OK);
}

static void leave(ct_observer *observer)
{
    const struct ct_observation seen = {
        .size = sizeof seen, .phase = CT_OBSERVED_LEFT, .place = "train.py:99", .stacks_fd = -1
    };

    assert_int_equal(ct_observer_answer(observer, &seen), CT_OK);
}

/* ---- Questions ---------------------------------------------------------------- */

static void *answer_once(void *arg)
{
    const struct ct_observed_call call = all_reduce(3, CT_OBSERVED_RUNS, SECOND);

    assert_int_equal(ct_observer_wait(arg, -1), CT_OK);
    answer(arg, 0, 2, "train.py:5 (step)", &call, 1);
    return NULL;
}

static void an_observer_waits_until_a_reader_asks_and_its_answer_is_on_the_page(void **state)
{
    struct page page = make_page(2, 2);
    ct_observer *observer = observer_of(&page, 0);
    const struct group_snapshot *group;
    struct job_snapshot job;
    pthread_t thread;

    (void)state;
    assert_int_equal(ct_observer_wait(observer, 1), CT_ERR_TIMEOUT);
    assert_int_equal(pthread_create(&thread, NULL, answer_once, observer), 0);
    assert_int_equal(ask_and_read(page.fd, LIMIT, &job), 0);
    pthread_join(thread, NULL);
    group = &job.rank[0].group[0];
    assert_int_equal(job.rank[0].observer, OBSERVER_ANSWERED);
    assert_int_equal(job.rank[1].observer, OBSERVER_NONE);
    assert_string_equal(job.rank[0].main_place, "train.py:5 (step)");
    assert_int_equal(job.rank[0].state, CONTROL_READY);
    assert_int_equal(job.rank[0].pid, getpid());
    assert_string_equal(group->name, "world");
    assert_string_equal(group->where, "train.py:5 (step)");
    assert_int_equal(group->begun, 3);
    assert_int_equal(group->done, 2);
    assert_int_equal(group->now.phase, CONTROL_IN);
    assert_true(snapshot_age(&job, group->now.begun_ns) >= SECOND - SECOND / 10);
    snapshot_free(&job);
    assert_int_equal(ct_observer_close(observer), CT_OK);
    free_page(&page);
}

static void ask_and_answer(const struct page *page, ct_observer *observer)
{
    const struct ct_observed_call call = all_reduce(3, CT_OBSERVED_RUNS, SECOND);

    ask_observers(page->fd);
    assert_int_equal(ct_observer_wait(observer, -1), CT_OK);
    answer(observer, 0, 1, "train.py:5", &call, 1);
}

static void an_answer_to_an_earlier_question_counts_for_nothing(void **state)
{
    struct page page = make_page(1, 1);
    ct_observer *observer = observer_of(&page, 0);
    struct job_snapshot job;

    (void)state;
    ask_and_answer(&page, observer);
    ask_observers(page.fd);
    page.head->asked_ns -= SECOND;
    assert_int_equal(page_read(page.fd, &job), 0);
    assert_int_equal(job.rank[0].observer, OBSERVER_SILENT);
    assert_string_equal(job.rank[0].main_place, "");
    assert_int_equal(job.rank[0].group[0].now.phase, CONTROL_IDLE);
    snapshot_free(&job);
    ct_observer_close(observer);
    free_page(&page);
}

/* Readers ask at the same time, for example ctctl top and ctrun. */
static void an_answer_stays_valid_for_a_moment_after_the_next_question(void **state)
{
    struct page page = make_page(1, 1);
    ct_observer *observer = observer_of(&page, 0);
    struct job_snapshot job;

    (void)state;
    ask_observers(page.fd);
    assert_int_equal(page_read(page.fd, &job), 0);
    assert_int_equal(job.rank[0].observer, OBSERVER_SILENT); /* it has never answered */
    snapshot_free(&job);
    ask_and_answer(&page, observer);
    for (int unanswered = 1; unanswered <= 2; unanswered++) {
        ask_observers(page.fd);
        page.head->asked_ns += 100 * SECOND; /* whatever the speed of this machine */
        assert_int_equal(page_read(page.fd, &job), 0);
        assert_int_equal(job.rank[0].observer, unanswered == 1 ? OBSERVER_ASKED : OBSERVER_SILENT);
        assert_int_equal(job.rank[0].group[0].now.phase,
                         unanswered == 1 ? CONTROL_IN : CONTROL_IDLE);
        assert_true(ask_is_open(&job));
        snapshot_free(&job);
    }
    ct_observer_close(observer);
    free_page(&page);
}

static void the_last_answer_of_a_process_stays_valid(void **state)
{
    struct page page = make_page(1, 1);
    ct_observer *observer = observer_of(&page, 0);
    const struct ct_observation last = {
        .size = sizeof last, .is_last = 1, .place = "train.py:99", .stacks_fd = -1
    };
    struct job_snapshot job;

    (void)state;
    assert_int_equal(ct_observer_answer(observer, &last), CT_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ask_and_read(page.fd, LIMIT, &job), 0);
        assert_int_equal(job.rank[0].observer, OBSERVER_ANSWERED);
        assert_string_equal(job.rank[0].main_place, "train.py:99");
        snapshot_free(&job);
        answer(observer, 0, 1, "train.py:5", NULL, 0); /* by a thread that was late */
    }
    ct_observer_close(observer);
    free_page(&page);
}

/* ctrun subtracts this time from what the job has worked. */
static void the_processor_time_of_an_answer_is_counted(void **state)
{
    struct page page = make_page(1, 1);
    ct_observer *observer = observer_of(&page, 0);
    _Atomic uint64_t *answers_ns = &control_rank_at(page.head, 0)->answers_ns;
    uint64_t counted;
    clock_t began;

    (void)state;
    ask_and_answer(&page, observer);
    assert_int_equal(*answers_ns, 0); /* the thread has not slept yet */
    for (began = clock(); clock() - began < CLOCKS_PER_SEC / 50;)
        ;
    assert_int_equal(ct_observer_wait(observer, 0), CT_ERR_TIMEOUT);
    counted = *answers_ns;
    assert_true(counted >= SECOND / 100);
    for (began = clock(); clock() - began < CLOCKS_PER_SEC / 50;)
        ; /* no answer, but the program's work */
    assert_int_equal(ct_observer_wait(observer, 0), CT_ERR_TIMEOUT);
    assert_int_equal(*answers_ns, counted);
    ct_observer_close(observer);
    free_page(&page);
}

/* Starts a process that has its own page, as a rank without ctrun has.  It answers each
 * question with a call that has the question's number, unless it is mute. */
static pid_t start_rank(int is_mute)
{
    ct_observer *observer;
    int ready[2];
    char byte;
    pid_t pid;

    assert_int_equal(pipe(ready), 0);
    if ((pid = fork()) == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        unsetenv("CT_CONTROL");
        assert_int_equal(ct_observer_open(0, &observer), CT_OK);
        assert_int_equal(write(ready[1], "", 1), 1);
        for (unsigned long long i = 1; ct_observer_wait(observer, -1) == CT_OK; i++) {
            const struct ct_observed_call call = all_reduce(i, CT_OBSERVED_RUNS, SECOND);

            if (!is_mute)
                answer(observer, 0, 1, "", &call, 1);
        }
        _exit(1);
    }
    assert_true(pid > 0);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return pid;
}

static const struct rank_snapshot *rank_of(const struct job_list *jobs, pid_t pid)
{
    for (int i = 0; i < jobs->count; i++)
        for (int j = 0; j < jobs->job[i].ranks; j++)
            if (jobs->job[i].rank[j].pid == pid)
                return &jobs->job[i].rank[j];
    fail_msg("no job has pid %d", (int)pid);
    return NULL;
}

/* ctctl reads the pages in the order of the pids, and waits long for the first one. */
static void a_page_whose_answer_became_old_is_asked_again(void **state)
{
    const pid_t mute = start_rank(1), other = start_rank(0);
    struct job_list jobs;

    (void)state;
    assert_int_equal(job_list_find(&jobs), 0);
    assert_int_equal(rank_of(&jobs, mute)->observer, OBSERVER_SILENT);
    assert_int_equal(rank_of(&jobs, other)->observer, OBSERVER_ANSWERED);
    if (other > mute)
        assert_true(rank_of(&jobs, other)->group[0].now.seq >= 2);
    job_list_free(&jobs);
    for (int i = 0; i < 2; i++) {
        kill(i ? mute : other, SIGKILL);
        waitpid(i ? mute : other, NULL, 0);
    }
}

static void a_line_shows_the_oldest_call_that_is_not_done(void **state)
{
    const struct ct_observed_call calls[] = { all_reduce(1, CT_OBSERVED_DONE, 5 * SECOND),
                                              all_reduce(2, CT_OBSERVED_RUNS, 4 * SECOND),
                                              all_reduce(3, CT_OBSERVED_DONE, 3 * SECOND),
                                              all_reduce(4, CT_OBSERVED_RUNS, 2 * SECOND) };
    struct page page = make_page(1, 1);
    ct_observer *observer = observer_of(&page, 0);
    struct job_snapshot job;

    (void)state;
    answer(observer, 0, 1, "", calls, 4);
    assert_int_equal(page_read(page.fd, &job), 0);
    assert_int_equal(job.rank[0].group[0].now.seq, 2);
    assert_int_equal(job.rank[0].group[0].done, 1);
    assert_int_equal(job.rank[0].ring_used, 4);
    snapshot_free(&job);
    answer(observer, 0, 1, "", calls, 1); /* and what was noted is not noted again */
    assert_int_equal(page_read(page.fd, &job), 0);
    assert_int_equal(job.rank[0].ring_used, 4);
    snapshot_free(&job);
    leave(observer);
    assert_int_equal(page_read(page.fd, &job), 0);
    assert_int_equal(job.rank[0].group[0].was, 7);
    assert_int_equal(job.rank[0].state, CONTROL_LEFT);
    snapshot_free(&job);
    ct_observer_close(observer);
    free_page(&page);
}

static void a_message_that_is_over_is_not_shown_any_more(void **state)
{
    const struct ct_observed_call message = {
        .operation = "recv", .count = 1, .dtype = CT_F32, .peer = 1, .age_ns = SECOND
    };
    struct page page = make_page(2, 2);
    ct_observer *observer = observer_of(&page, 0);
    struct job_snapshot job;

    (void)state;
    answer(observer, 0, 2, "", &message, 1);
    assert_int_equal(page_read(page.fd, &job), 0);
    assert_int_equal(job.rank[0].group[0].now.operation, OPERATION_RECV);
    assert_int_equal(job.rank[0].group[0].now.phase, CONTROL_IN);
    snapshot_free(&job);
    answer(observer, 0, 2, "", NULL, 0);
    assert_int_equal(page_read(page.fd, &job), 0);
    assert_int_equal(job.rank[0].group[0].now.phase, CONTROL_IDLE);
    snapshot_free(&job);
    ct_observer_close(observer);
    free_page(&page);
}

/* The child is a data loader's process: it has an observer, but no groups. */
static void a_process_without_groups_does_not_answer_for_one_that_has_them(void **state)
{
    const struct ct_observed_call call = all_reduce(3, CT_OBSERVED_RUNS, SECOND);
    const struct ct_observation none = { .size = sizeof none,
                                         .place = "load.py:1",
                                         .stacks_fd = -1 };
    struct page page = make_page(1, 1);
    ct_observer *observer = observer_of(&page, 0);
    struct job_snapshot job;
    pid_t child;
    int status;

    (void)state;
    answer(observer, 0, 1, "train.py:5", &call, 1);
    if ((child = fork()) == 0) {
        ct_observer *other;

        _exit(ct_observer_open(0, &other) != CT_OK || ct_observer_answer(other, &none) != CT_OK);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(page_read(page.fd, &job), 0);
    assert_string_equal(job.rank[0].main_place, "train.py:5");
    assert_int_equal(job.rank[0].observer_pid, getpid());
    snapshot_free(&job);
    ct_observer_close(observer);
    free_page(&page);
}

static void what_is_no_answer_is_refused(void **state)
{
    const struct ct_observation wrong_size = { .size = 1 },
                                wrong_phase = { .size = sizeof wrong_phase, .phase = 9 };
    struct page page = make_page(1, 1);
    ct_observer *observer = observer_of(&page, 0);

    (void)state;
    assert_int_equal(ct_observer_open(0, NULL), CT_ERR_INVALID);
    assert_int_equal(ct_observer_wait(NULL, 0), CT_ERR_INVALID);
    assert_int_equal(ct_observer_answer(NULL, &wrong_size), CT_ERR_INVALID);
    assert_int_equal(ct_observer_answer(observer, NULL), CT_ERR_INVALID);
    assert_int_equal(ct_observer_answer(observer, &wrong_size), CT_ERR_INVALID);
    assert_int_equal(ct_observer_answer(observer, &wrong_phase), CT_ERR_INVALID);
    ct_observer_close(observer);
    assert_int_equal(ct_observer_close(NULL), CT_ERR_INVALID);
    free_page(&page);
}

/* ---- Verdicts ----------------------------------------------------------------- */

static void verdict_of(const struct page *page, char *text, size_t size)
{
    struct verdict_list list;
    struct job_snapshot job;

    assert_int_equal(page_read(page->fd, &job), 0);
    for (int i = 0; i < job.ranks; i++)
        job.rank[i].process = (struct process_snapshot){ .pid = 10 + i, .state = 'R' };
    assert_int_equal(verdict_list_make(&list, &job, SECOND), 0);
    assert_int_equal(list.count, 1);
    verdict_text(list.verdict, &job, text, size);
    verdict_list_free(&list);
    snapshot_free(&job);
}

static void a_verdict_says_where_the_missing_rank_is(void **state)
{
    const struct ct_observed_call waits = all_reduce(3, CT_OBSERVED_RUNS, 2 * SECOND),
                                  was = all_reduce(2, CT_OBSERVED_DONE, 9 * SECOND);
    struct page page = make_page(2, 2);
    ct_observer *first = observer_of(&page, 0), *second = observer_of(&page, 1);
    char text[VERDICT_TEXT];

    (void)state;
    answer(first, 0, 2, "train.py:5 (step)", &waits, 1);
    answer(second, 1, 2, "train.py:60 (evaluate)", &was, 1);
    verdict_of(&page, text, sizeof text);
    assert_string_equal(text,
                        "rank 1 (pid 11, running at train.py:60 (evaluate)) has not joined "
                        "all_reduce #3 (4 f32); its last call was #2. Rank 0 has waited 2.0 s "
                        "at train.py:5 (step)");
    atomic_fetch_add(&control_rank_at(page.head, 1)->answered, 7);
    verdict_of(&page, text, sizeof text);
    assert_string_equal(text,
                        "rank 1 (pid 11, running) has not joined all_reduce #3 (4 f32) and did "
                        "not answer for 2 s, so a thread holds Python's lock (the GIL): ctctl "
                        "stack shows its C functions. Rank 0 has waited 2.0 s in all_reduce #3 "
                        "(4 f32) at train.py:5 (step)");
    ct_observer_close(first);
    ct_observer_close(second);
    free_page(&page);
}

/* Rank 2 has returned from call 2, in which rank 0 waits for rank 1, as the root of a gather does.
 */
static void a_root_that_waits_in_an_old_call_is_not_to_blame(void **state)
{
    const struct ct_observed_call first = all_reduce(1, CT_OBSERVED_DONE, 9 * SECOND),
                                  old = all_reduce(2, CT_OBSERVED_RUNS, 2 * SECOND),
                                  new = all_reduce(3, CT_OBSERVED_RUNS, 2 * SECOND);
    struct page page = make_page(3, 3);
    ct_observer *observer[3];
    char text[VERDICT_TEXT];

    (void)state;
    for (int i = 0; i < 3; i++) {
        observer[i] = observer_of(&page, i);
        answer(observer[i], i, 3, "", i == 0 ? &old : i == 1 ? &first : &new, 1);
    }
    verdict_of(&page, text, sizeof text);
    assert_string_equal(text,
                        "rank 1 (pid 11, running) has not joined all_reduce #2 (4 f32); its last "
                        "call was #1. Rank 0 has waited 2.0 s at train.py:5 (step)");
    for (int i = 0; i < 3; i++)
        ct_observer_close(observer[i]);
    free_page(&page);
}

/* ---- Who is to blame ---------------------------------------------------------- */

/* Writes "rank reason" of the rank because of which call 3 of rank 0 failed. */
static void expect_blame(const struct page *page, int rank, enum blame_reason reason)
{
    struct control_blame blame;
    struct job_snapshot job;

    assert_int_equal(page_read(page->fd, &job), 0);
    assert_int_equal(observed_blame(&job, 0, &blame), reason != BLAME_NONE);
    assert_int_equal(blame.on.reason, reason);
    if (reason != BLAME_NONE) {
        assert_int_equal(blame.on.rank, rank);
        assert_int_equal(blame.call.seq, 3);
        assert_int_equal(blame.group, 7);
    }
    snapshot_free(&job);
}

static void note_death(struct page *page, int rank, int code)
{
    struct control_death *death = control_death_at(page->head, atomic_load(&page->head->deaths));

    *death = (struct control_death){ .rank = rank, .how = CLD_EXITED, .code = code };
    atomic_fetch_add(&page->head->deaths, 1);
}

static void a_failed_call_blames_the_rank_that_ended_then_that_left_then_that_is_late(void **state)
{
    const struct ct_observed_call failed = all_reduce(3, CT_OBSERVED_FAILED, SECOND),
                                  done = all_reduce(2, CT_OBSERVED_DONE, SECOND),
                                  in = all_reduce(3, CT_OBSERVED_RUNS, SECOND);
    struct page page = make_page(4, 4);
    ct_observer *observer[4];

    (void)state;
    for (int i = 0; i < 4; i++)
        observer[i] = observer_of(&page, i);
    answer(observer[0], 0, 4, "", &failed, 1);
    for (int i = 1; i < 4; i++)
        answer(observer[i], i, 4, "", &in, 1);
    expect_blame(&page, 0, BLAME_NONE); /* all came */
    answer(observer[2], 2, 4, "", &failed, 1);
    expect_blame(&page, 0, BLAME_NONE); /* another victim */
    answer(observer[1], 1, 4, "", &done, 1);
    expect_blame(&page, 1, BLAME_LATE);
    leave(observer[3]);
    expect_blame(&page, 3, BLAME_LEFT);
    note_death(&page, 2, 1);
    expect_blame(&page, 3, BLAME_LEFT); /* the other victim ended */
    note_death(&page, 1, 0);
    expect_blame(&page, 1, BLAME_DIED);
    for (int i = 0; i < 4; i++)
        ct_observer_close(observer[i]);
    free_page(&page);
}

static void a_call_that_did_not_fail_blames_nobody(void **state)
{
    const struct ct_observed_call done = all_reduce(3, CT_OBSERVED_DONE, SECOND);
    struct page page = make_page(2, 2);
    ct_observer *observer = observer_of(&page, 0);

    (void)state;
    answer(observer, 0, 2, "", &done, 1);
    note_death(&page, 1, 1);
    expect_blame(&page, 0, BLAME_NONE);
    ct_observer_close(observer);
    free_page(&page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_observer_waits_until_a_reader_asks_and_its_answer_is_on_the_page),
        cmocka_unit_test(an_answer_to_an_earlier_question_counts_for_nothing),
        cmocka_unit_test(an_answer_stays_valid_for_a_moment_after_the_next_question),
        cmocka_unit_test(the_last_answer_of_a_process_stays_valid),
        cmocka_unit_test(the_processor_time_of_an_answer_is_counted),
        cmocka_unit_test(a_page_whose_answer_became_old_is_asked_again),
        cmocka_unit_test(a_line_shows_the_oldest_call_that_is_not_done),
        cmocka_unit_test(a_message_that_is_over_is_not_shown_any_more),
        cmocka_unit_test(a_root_that_waits_in_an_old_call_is_not_to_blame),
        cmocka_unit_test(a_process_without_groups_does_not_answer_for_one_that_has_them),
        cmocka_unit_test(what_is_no_answer_is_refused),
        cmocka_unit_test(a_verdict_says_where_the_missing_rank_is),
        cmocka_unit_test(a_failed_call_blames_the_rank_that_ended_then_that_left_then_that_is_late),
        cmocka_unit_test(a_call_that_did_not_fail_blames_nobody),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
