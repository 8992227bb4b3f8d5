/* SPDX-License-Identifier: Apache-2.0 */
/* test_verdict.c - who waits for whom: from jobs that are made up here to sentences. */
#include "tests/harness.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/inspect/verdict.h"
#include "runtime/types/call_signature.h"

#define SECOND 1000000000ull
#define NOW (1000 * SECOND)
#define WORLD 1

/* ---- Made jobs --------------------------------------------------------------- */

static struct job_snapshot job_of(int ranks)
{
    struct job_snapshot job = { .nodes = 1,
                                .local = ranks,
                                .world = ranks,
                                .launcher = 4000,
                                .ranks = ranks,
                                .now_ns = NOW,
                                .run_id = "none",
                                .host = "node-a" };

    job.rank = calloc((size_t)ranks, sizeof *job.rank);
    job.death = calloc((size_t)ranks + 8, sizeof *job.death);
    for (int i = 0; i < ranks; i++) {
        struct rank_snapshot *rank = &job.rank[i];

        rank->rank = rank->local_rank = i;
        rank->worker = rank->pid = 4310 + i;
        rank->state = CONTROL_READY;
        rank->process =
            (struct process_snapshot){ .pid = rank->pid, .state = 'S', .name = "train" };
        strcpy(rank->process.waits_in, "futex");
    }
    return job;
}

static struct group_snapshot *line_of(struct job_snapshot *job, int at, uint64_t id,
                                      const char *name, int rank, int size)
{
    struct rank_snapshot *own = &job->rank[at];
    int free_one = 0;

    while (own->group[free_one].id)
        free_one++;
    own->group[free_one] = (struct group_snapshot){ .id = id, .rank = rank, .size = size };
    own->group[free_one].now.group = free_one;
    snprintf(own->group[free_one].name, sizeof own->group[free_one].name, "%s", name);
    return &own->group[free_one];
}

/* The rank's line of the world, before call number `next`. */
static struct group_snapshot *in_world(struct job_snapshot *job, int at, uint64_t next)
{
    struct group_snapshot *line = line_of(job, at, WORLD, "world", job->rank[at].rank, job->world);

    line->begun = line->done = next - 1;
    line->now =
        (struct call_snapshot){ .seq = next - 1, .operation = OPERATION_BARRIER, .root = -1 };
    return line;
}

static void call(struct job_snapshot *job, int at, struct group_snapshot *line, uint64_t seq,
                 struct call_snapshot what, double seconds)
{
    struct rank_snapshot *rank = &job->rank[at];

    what.seq = seq;
    what.phase = CONTROL_IN;
    what.group = (int)(line - rank->group);
    what.begun_ns = NOW - (uint64_t)(seconds * 1e9);
    line->now = what;
    if (seq)
        line->begun = seq;
    memmove(&rank->ring[1], rank->ring, sizeof rank->ring - sizeof *rank->ring);
    rank->ring[0] = what;
    rank->ring_used++;
}

static struct call_snapshot sum_of(uint64_t count)
{
    return (struct call_snapshot){
        .operation = OPERATION_ALL_REDUCE, .count = count, .dtype = CT_F32, .op = CT_SUM, .root = -1
    };
}

static struct call_snapshot message(int operation, int peer, uint64_t count)
{
    return (struct call_snapshot){
        .operation = operation, .count = count, .dtype = CT_F32, .op = -1, .root = peer
    };
}

/* Ranks first..last wait in the world's all_reduce. */
static void all_wait(struct job_snapshot *job, int first, int last, uint64_t seq, double seconds)
{
    for (int i = first; i <= last; i++) {
        struct group_snapshot *line = in_world(job, i, seq);

        call(job, i, line, seq, sum_of(1024), seconds);
        snprintf(line->where, sizeof line->where, "train.c:88 (step)");
    }
}

static void process(struct job_snapshot *job, int at, char state, const char *waits_in)
{
    job->rank[at].process.state = state;
    snprintf(job->rank[at].process.waits_in, sizeof job->rank[at].process.waits_in, "%s", waits_in);
}

static void died(struct job_snapshot *job, int rank, int how, int code)
{
    job->death[job->deaths] =
        (struct death_snapshot){ .rank = rank, .how = how, .code = code, .pid = 4310 + rank };
    strcpy(job->death[job->deaths++].host, "node-a");
}

static void free_job(struct job_snapshot *job)
{
    snapshot_free(job);
}

/* The job's sentences are these, NULL at the end. */
static void says(const struct job_snapshot *job, const char *word, const char *const *sentences)
{
    struct verdict verdict;
    int count = 0;

    assert_int_equal(verdict_make(&verdict, job, SECOND), 0);
    for (; sentences[count]; count++) {
        if (count >= verdict.count)
            fail_msg("there is no sentence: %s", sentences[count]);
        assert_string_equal(verdict.sentence[count].text, sentences[count]);
    }
    if (verdict.count > count)
        fail_msg("one sentence more: %s", verdict.sentence[count].text);
    assert_string_equal(verdict.word, word);
    verdict_free(&verdict);
}

#define SAYS(job, word, ...) says((job), (word), (const char *const[]){ __VA_ARGS__, NULL })
#define WAIT                                                                                   \
    "group world: ranks 0-2 wait in all_reduce #1842 (1024 f32, sum) for 2.1 s at train.c:88 " \
    "(step); "

/* ---- One is missing ------------------------------------------------------------ */

static void a_rank_that_runs_or_sleeps_is_named(void **state)
{
    struct job_snapshot job = job_of(4);

    (void)state;
    all_wait(&job, 0, 2, 1842, 2.1);
    in_world(&job, 3, 1842);
    process(&job, 3, 'R', "");
    SAYS(&job, "stuck", WAIT "rank 3 is in no call since #1841: it runs (pid 4313, R)");
    process(&job, 3, 'S', "sleep");
    SAYS(&job, "stuck", WAIT "rank 3 is in no call since #1841: it sleeps (pid 4313, S)");
    process(&job, 3, 'D', "nfs_wait");
    SAYS(&job, "stuck",
         WAIT "rank 3 is in no call since #1841: it hangs in the kernel (pid 4313, D)");
    job.nodes = 2;
    process(&job, 3, 'R', "");
    SAYS(&job, "stuck", WAIT "rank 3 is in no call since #1841: it runs (pid 4313 on node-a, R)");
    free_job(&job);
}

static void several_that_do_the_same_share_the_words(void **state)
{
    struct job_snapshot job = job_of(8);

    (void)state;
    all_wait(&job, 0, 2, 5, 3);
    for (int i = 3; i < 8; i++) {
        in_world(&job, i, i < 7 ? 5 : 4);
        process(&job, i, 'R', "");
    }
    SAYS(&job, "stuck",
         "group world: ranks 0-2 wait in all_reduce #5 (1024 f32, sum) for 3.0 s at train.c:88 "
         "(step); ranks 3-6 are in no call since #4: they run (pids 4313, 4314, 4315, 4316, R); "
         "rank 7 is in no call since #3: it runs (pid 4317, R)");
    free_job(&job);
}

static void a_stopped_rank_is_to_blame_wherever_it_stands(void **state)
{
    struct job_snapshot job = job_of(4);

    (void)state;
    all_wait(&job, 0, 2, 1842, 2.1);
    in_world(&job, 3, 1842);
    process(&job, 3, 'T', "");
    SAYS(&job, "stuck",
         WAIT "rank 3 is stopped after #1841: kill -CONT lets it go on (pid 4313, T)");
    process(&job, 3, 't', "");
    job.rank[3].process.tracer = 77;
    SAYS(&job, "stuck", WAIT "rank 3 is held after #1841 by a debugger (pid 77) (pid 4313, t)");
    free_job(&job);
    job = job_of(4);
    all_wait(&job, 0, 3, 1842, 2.1);
    process(&job, 3, 'T', "");
    SAYS(&job, "stuck",
         WAIT "rank 3 is stopped in that call: kill -CONT lets it go on (pid 4313, T)");
    free_job(&job);
}

static void when_all_are_stopped_that_explains_nothing(void **state)
{
    struct job_snapshot job = job_of(4);

    (void)state;
    all_wait(&job, 0, 2, 1842, 2.1);
    in_world(&job, 3, 1842);
    for (int i = 0; i < 4; i++)
        process(&job, i, 'T', "");
    SAYS(&job, "stopped", WAIT "rank 3 is in no call since #1841: it is stopped (pid 4313, T)",
         "all 4 ranks here are stopped (state T): kill -CONT lets them go on");
    free_job(&job);
    job = job_of(4);
    all_wait(&job, 0, 2, 1842, 2.1);
    in_world(&job, 3, 1842);
    process(&job, 3, 'S', "sleep");
    job.launcher_state = 'T';
    SAYS(&job, "stuck", WAIT "rank 3 is in no call since #1841: it sleeps (pid 4313, S)",
         "ctrun is stopped (pid 4000, T): kill -CONT lets it go on");
    free_job(&job);
}

static void those_that_are_stopped_in_the_call_still_wait_for_who_is_not(void **state)
{
    struct job_snapshot job = job_of(4);

    (void)state;
    all_wait(&job, 0, 2, 1842, 2.1);
    in_world(&job, 3, 1842);
    process(&job, 3, 'S', "sleep");
    for (int i = 0; i < 3; i++)
        process(&job, i, 'T', "");
    SAYS(&job, "stuck", WAIT "rank 3 is in no call since #1841: it sleeps (pid 4313, S)",
         "ranks 0-2 are stopped after #1842: kill -CONT lets them go on (pids 4310, 4311, 4312, "
         "T)");
    free_job(&job);
}

/* Names of 1000 ranks would fill the screen: what is cut off is seen to be. */
static void a_long_sentence_ends_in_dots(void **state)
{
    struct job_snapshot job = job_of(200);
    struct verdict verdict;

    (void)state;
    all_wait(&job, 0, 0, 900, 2.1);
    for (int i = 1; i < 200; i++)
        in_world(&job, i, (uint64_t)(500 + i));
    assert_int_equal(verdict_make(&verdict, &job, SECOND), 0);
    assert_string_equal(verdict.sentence[0].text + strlen(verdict.sentence[0].text) - 3, "...");
    assert_int_equal(strlen(verdict.sentence[0].text), SENTENCE_TEXT - 1);
    verdict_free(&verdict);
    free_job(&job);
}

static void the_dead_are_told_by_ctrun(void **state)
{
    struct job_snapshot job = job_of(4);

    (void)state;
    all_wait(&job, 0, 2, 1842, 2.1);
    in_world(&job, 3, 1842);
    process(&job, 3, 'Z', "");
    died(&job, 3, CLD_EXITED, 0);
    SAYS(&job, "stuck", WAIT "rank 3 exited with code 0 after #1841 (pid 4313 on node-a)");
    job.death[0].how = CLD_DUMPED;
    job.death[0].code = SIGSEGV;
    SAYS(&job, "stuck", WAIT "rank 3 died of SIGSEGV after #1841 (pid 4313 on node-a)");
    free_job(&job);
}

static void a_process_may_be_gone_while_its_wrapper_lives(void **state)
{
    struct job_snapshot job = job_of(4);

    (void)state;
    all_wait(&job, 0, 2, 1842, 2.1);
    in_world(&job, 3, 1842);
    job.rank[3].worker = 4300;
    job.rank[3].wrapper = (struct process_snapshot){ .pid = 4300, .state = 'S', .name = "sh" };
    process(&job, 3, 0, "");
    SAYS(&job, "stuck",
         WAIT "rank 3 died silently after #1841: its process (pid 4313) is gone, what ctrun "
              "started lives on (sh, pid 4300)");
    free_job(&job);
}

static void leave(struct group_snapshot *line)
{
    line->was = line->id;
    line->id = 0;
}

/* Groups of one split have one name, and may have one size. */
static void who_left_another_group_of_the_same_name_is_not_blamed(void **state)
{
    struct job_snapshot job = job_of(4);

    (void)state;
    for (int i = 0; i < 4; i++)
        in_world(&job, i, 3);
    for (int i = 0; i < 4; i++) {
        struct group_snapshot *line = line_of(&job, i, i < 2 ? 770 : 990, "split", i % 2, 2);

        line->begun = line->done = 1;
        if (i == 0)
            call(&job, i, line, 2,
                 (struct call_snapshot){ .operation = OPERATION_BARRIER, .root = -1, .op = -1 },
                 3.0);
        if (i > 1)
            leave(line);
    }
    SAYS(&job, "stuck",
         "group split: rank 0 waits in barrier #2 for 3.0 s; rank 1 is in no call since #1: it "
         "waits for a thread or a lock (pid 4311, S)");
    free_job(&job);
}

static void who_has_left_the_group_is_known_by_what_its_line_says(void **state)
{
    struct job_snapshot job = job_of(4);
    struct group_snapshot *line;

    (void)state;
    all_wait(&job, 0, 2, 1842, 2.1);
    line = in_world(&job, 3, 1842);
    leave(line);
    job.rank[3].state = CONTROL_LEFT;
    process(&job, 3, 'S', "wait");
    SAYS(&job, "stuck",
         WAIT "rank 3 has left the group after #1841: it waits for a child process (pid 4313, S)");
    free_job(&job);
}

static void who_is_behind_or_failed_is_said_so(void **state)
{
    struct job_snapshot job = job_of(4);
    struct group_snapshot *line;

    (void)state;
    all_wait(&job, 0, 2, 1842, 2.1);
    line = in_world(&job, 3, 1841);
    call(&job, 3, line, 1841, sum_of(4), 9);
    SAYS(&job, "stuck", WAIT "rank 3 is still in all_reduce #1841 (4 f32, sum) (pid 4313, S)");
    line->now.phase = CONTROL_FAILED;
    SAYS(&job, "stuck",
         WAIT "rank 3 is in no call since all_reduce #1841 (4 f32, sum) failed there: it waits "
              "for a thread or a lock (pid 4313, S)");
    free_job(&job);
}

static void the_store_is_a_place_to_wait(void **state)
{
    struct job_snapshot job = job_of(4);

    (void)state;
    all_wait(&job, 0, 2, 1842, 2.1);
    in_world(&job, 3, 1842);
    strcpy(job.rank[3].waiting_for, "key \"grads/7\" of the store");
    job.rank[3].waiting_since_ns = NOW - 5 * SECOND;
    SAYS(&job, "stuck", WAIT "rank 3 waits for key \"grads/7\" of the store (pid 4313, S)");
    free_job(&job);
    job = job_of(2);
    for (int i = 0; i < 2; i++) {
        strcpy(job.rank[i].waiting_for, "key \"x\" of the store");
        job.rank[i].waiting_since_ns = NOW - 5 * SECOND;
    }
    SAYS(&job, "stuck", "ranks 0-1 wait for key \"x\" of the store for 5.0 s");
    free_job(&job);
}

/* ---- Init ---------------------------------------------------------------------- */

static void who_never_calls_init_is_named(void **state)
{
    struct job_snapshot job = job_of(4);

    (void)state;
    for (int i = 0; i < 3; i++) {
        job.rank[i].state = CONTROL_INIT;
        job.rank[i].since_ns = NOW - 5 * SECOND;
        strcpy(job.rank[i].waiting_for, "the others");
    }
    job.rank[3].state = CONTROL_STARTED;
    job.rank[3].pid = 0;
    process(&job, 3, 'S', "read");
    SAYS(&job, "stuck",
         "ranks 0-2 wait in ct_init_process_group() for 5.0 s (the others); rank 3 has not called "
         "ct_init_process_group(): it waits to read (pid 4313, S)");
    job.rank[3].worker = 0;
    job.rank[3].process = (struct process_snapshot){ 0 };
    SAYS(&job, "stuck",
         "ranks 0-2 wait in ct_init_process_group() for 5.0 s (the others); rank 3 has not been "
         "started yet");
    job.rank[3].worker = job.rank[3].process.pid = 4313;
    job.rank[3].state = CONTROL_INIT;
    job.rank[3].since_ns = NOW - 5 * SECOND;
    process(&job, 3, 'T', "");
    SAYS(&job, "stuck",
         "ranks 0-2 wait in ct_init_process_group() for 5.0 s (the others); rank 3 is stopped in "
         "that call: kill -CONT lets it go on (pid 4313, T)");
    free_job(&job);
}

static void programs_without_libct_show_their_processes(void **state)
{
    struct job_snapshot job = job_of(3);

    (void)state;
    for (int i = 0; i < 3; i++) {
        job.rank[i].state = CONTROL_STARTED;
        job.rank[i].pid = 0;
    }
    SAYS(&job, "running", NULL);
    process(&job, 1, 'T', "");
    SAYS(&job, "stuck",
         "rank 1 is stopped before its first call: kill -CONT lets it go on (pid 4311, T)");
    free_job(&job);
}

/* ---- Not the same call ---------------------------------------------------------- */

static void different_calls_are_shown_side_by_side(void **state)
{
    struct job_snapshot job = job_of(4);
    struct group_snapshot *line;

    (void)state;
    all_wait(&job, 0, 2, 7, 2);
    line = in_world(&job, 3, 7);
    call(&job, 3, line, 7, sum_of(512), 2);
    SAYS(&job, "stuck",
         "group world: the ranks give different sizes: ranks 0-2 are in all_reduce #7 (1024 f32, "
         "sum) at train.c:88 (step) for 2.0 s; rank 3 is in all_reduce #7 (512 f32, sum)");
    line->now.operation = OPERATION_BROADCAST;
    line->now.op = -1;
    line->now.root = 3;
    SAYS(&job, "stuck",
         "group world: the ranks make different calls: ranks 0-2 are in all_reduce #7 (1024 f32, "
         "sum) at train.c:88 (step) for 2.0 s; rank 3 is in broadcast #7 (512 f32, root 3)");
    for (int i = 0; i < 4; i++) {
        job.rank[i].group[0].now.operation = OPERATION_REDUCE;
        job.rank[i].group[0].now.count = 4;
        job.rank[i].group[0].now.op = CT_SUM;
        job.rank[i].group[0].now.root = i == 3 ? 3 : 0;
    }
    SAYS(&job, "stuck",
         "group world: the ranks name different roots: ranks 0-2 are in reduce #7 (4 f32, sum, "
         "root 0) at train.c:88 (step) for 2.0 s; rank 3 is in reduce #7 (4 f32, sum, root 3)");
    free_job(&job);
}

/* Its part of the broadcast was over at once. */
static void a_rank_that_went_on_after_another_call_is_found_by_its_ring(void **state)
{
    struct job_snapshot job = job_of(3);
    struct group_snapshot *line;

    (void)state;
    all_wait(&job, 0, 1, 7, 2);
    line = in_world(&job, 2, 7);
    call(
        &job, 2, line, 7,
        (struct call_snapshot){ .operation = OPERATION_BROADCAST, .count = 8, .op = -1, .root = 2 },
        2);
    line->done = 7;
    line->now = (struct call_snapshot){ .seq = 8, .operation = OPERATION_BARRIER, .root = -1 };
    line->begun = line->done = 8;
    SAYS(&job, "stuck",
         "group world: the ranks make different calls: ranks 0-1 are in all_reduce #7 (1024 f32, "
         "sum) at train.c:88 (step) for 2.0 s; rank 2 made broadcast #7 (8 i8, root 2) and went "
         "on");
    free_job(&job);
}

/* ---- Each other ----------------------------------------------------------------- */

static void two_groups_in_two_orders_are_a_deadlock_of_both(void **state)
{
    struct job_snapshot job = job_of(4);
    static const int members[2][3] = { { 0, 1, 2 }, { 0, 1, 3 } };

    (void)state;
    for (int g = 0; g < 2; g++)
        for (int i = 0; i < 3; i++) {
            const int at = members[g][i];
            struct group_snapshot *line =
                line_of(&job, at, 100 + (uint64_t)g, g ? "pipe" : "tensor", i, 3);

            line->begun = line->done = 4;
            if (at == 2 || at == 3 || at == g)
                call(&job, at, line, 5, sum_of(16), 2);
        }
    SAYS(&job, "stuck",
         "groups tensor, pipe: deadlock for 2.0 s: ranks 0,2 wait in all_reduce #5 (16 f32, sum) "
         "of group tensor for rank 1, ranks 1,3 wait in all_reduce #5 (16 f32, sum) of group pipe "
         "for rank 0");
    free_job(&job);
}

static void messages_in_a_circle_are_a_deadlock(void **state)
{
    struct job_snapshot job = job_of(4);

    (void)state;
    for (int i = 0; i < 2; i++)
        call(&job, i, in_world(&job, i, 3), 0, message(OPERATION_SEND, 1 - i, 8), 2);
    for (int i = 2; i < 4; i++)
        in_world(&job, i, 3);
    SAYS(&job, "stuck",
         "group world: deadlock for 2.0 s: rank 0 waits in send of 8 f32 to rank 1 (tag 0), rank "
         "1 waits in send of 8 f32 to rank 0 (tag 0)");
    free_job(&job);

    job = job_of(4);
    for (int i = 0; i < 3; i++)
        call(&job, i, in_world(&job, i, 3), 0, message(OPERATION_RECV, (i + 1) % 3, 8), 2);
    call(&job, 3, in_world(&job, 3, 3), 3, sum_of(1), 2);
    SAYS(&job, "stuck",
         "group world: deadlock for 2.0 s: rank 0 waits in recv of 8 f32 from rank 1 (tag 0), "
         "rank 1 waits in recv of 8 f32 from rank 2 (tag 0), rank 2 waits in recv of 8 f32 from "
         "rank 0 (tag 0); rank 3 waits behind them");
    free_job(&job);

    job = job_of(2);
    call(&job, 1, in_world(&job, 1, 3), 0, message(OPERATION_RECV, 1, 8), 2);
    in_world(&job, 0, 3);
    SAYS(&job, "stuck",
         "group world: deadlock for 2.0 s: rank 1 waits in recv of 8 f32 from rank 1 (tag 0), "
         "that is from itself");
    free_job(&job);
}

/* ---- Messages ------------------------------------------------------------------- */

static void a_message_waits_for_its_peer(void **state)
{
    struct job_snapshot job = job_of(4);

    (void)state;
    in_world(&job, 0, 3);
    process(&job, 0, 'S', "sleep");
    for (int i = 1; i < 4; i++)
        call(&job, i, in_world(&job, i, 3), 0, message(OPERATION_RECV, 0, 8), 2);
    SAYS(&job, "stuck",
         "group world: ranks 1-3 wait in recv of 8 f32 from rank 0 (tag 0) for 2.0 s; rank 0 is "
         "in no call since #2: it sleeps (pid 4310, S)");
    for (int i = 2; i < 4; i++)
        job.rank[i].group[0].now.root = i - 1;
    SAYS(&job, "stuck",
         "group world: rank 1 waits in recv of 8 f32 from rank 0 (tag 0) for 2.0 s; rank 0 is in "
         "no call since #2: it sleeps (pid 4310, S); ranks 2-3 wait behind");
    free_job(&job);
}

static void messages_that_do_not_fit_are_a_mismatch(void **state)
{
    struct job_snapshot job = job_of(2);

    (void)state;
    call(&job, 0, in_world(&job, 0, 3), 0, message(OPERATION_SEND, 1, 8), 2);
    call(&job, 1, in_world(&job, 1, 3), 0, message(OPERATION_RECV, 0, 8), 2);
    job.rank[1].group[0].tag = 4;
    SAYS(&job, "stuck",
         "group world: rank 0 waits in send of 8 f32 to rank 1 (tag 0) for 2.0 s; rank 1 is in "
         "recv of 8 f32 from rank 0 (tag 4): the tags differ");
    job.rank[1].group[0].tag = 0;
    SAYS(&job, "moving",
         "group world: rank 0 waits in send of 8 f32 to rank 1 (tag 0) for 2.0 s; rank 1 is in "
         "recv of 8 f32 from rank 0 (tag 0)");
    free_job(&job);
}

/* ---- Elsewhere ------------------------------------------------------------------ */

static void nobody_guesses_what_other_hosts_do(void **state)
{
    struct job_snapshot job = job_of(4);

    (void)state;
    job.world = 8;
    job.nodes = 2;
    all_wait(&job, 0, 3, 9, 2);
    SAYS(&job, "stuck",
         "group world: ranks 0-3 wait in all_reduce #9 (1024 f32, sum) for 2.0 s at train.c:88 "
         "(step); ranks 4-7 are on other hosts: run ctctl there");
    died(&job, 5, CONTROL_HOST_LOST, 0);
    SAYS(&job, "stuck",
         "group world: ranks 0-3 wait in all_reduce #9 (1024 f32, sum) for 2.0 s at train.c:88 "
         "(step); rank 5 was lost with its host (pid 4315 on node-a); ranks 4-7 are on other "
         "hosts: run ctctl there");
    job.death[0].tombs = 1;
    job.death[0].tomb[0] = (struct control_tomb){ WORLD, 8, 8 };
    SAYS(&job, "stuck",
         "group world: ranks 0-3 wait in all_reduce #9 (1024 f32, sum) for 2.0 s at train.c:88 "
         "(step); rank 5 was lost with its host after #8 (pid 4315 on node-a); ranks 4-7 are on "
         "other hosts: run ctctl there");
    free_job(&job);
}

static void without_ctrun_the_unseen_are_said_to_be_unseen(void **state)
{
    struct job_snapshot job = job_of(3);

    (void)state;
    job.own_memory = 1;
    job.world = 4;
    all_wait(&job, 0, 2, 9, 2);
    SAYS(&job, "stuck",
         "group world: ranks 0-2 wait in all_reduce #9 (1024 f32, sum) for 2.0 s at train.c:88 "
         "(step); rank 3 is not to be seen here: it ended, has not come yet, or is on another "
         "host");
    free_job(&job);
}

/* ---- Nothing is wrong ----------------------------------------------------------- */

static void who_moves_is_left_alone(void **state)
{
    struct job_snapshot job = job_of(4);

    (void)state;
    all_wait(&job, 0, 2, 1842, 0.5);
    in_world(&job, 3, 1842);
    SAYS(&job, "moving", NULL);
    free_job(&job);
    job = job_of(4);
    all_wait(&job, 0, 3, 1842, 30);
    SAYS(&job, "moving",
         "group world: ranks 0-3 wait in all_reduce #1842 (1024 f32, sum) for 30.0 s at train.c:88 "
         "(step); nobody is missing");
    job.rank[3].group[0].now.begun_ns = NOW - SECOND / 2;
    SAYS(&job, "moving", NULL);
    free_job(&job);
}

static void a_sentence_that_only_grew_older_is_the_same(void **state)
{
    struct job_snapshot job = job_of(4);
    struct verdict before, after;

    (void)state;
    all_wait(&job, 0, 2, 1842, 2.1);
    in_world(&job, 3, 1842);
    assert_int_equal(verdict_make(&before, &job, SECOND), 0);
    job.now_ns += 60 * SECOND;
    process(&job, 3, 'R', "");
    assert_int_equal(verdict_make(&after, &job, SECOND), 0);
    assert_string_not_equal(before.sentence[0].text, after.sentence[0].text);
    assert_true(before.sentence[0].key == after.sentence[0].key);
    verdict_free(&after);
    for (int i = 0; i < 4; i++) /* and the same again at the next step */
        job.rank[i].group[0].begun++;
    for (int i = 0; i < 3; i++)
        job.rank[i].group[0].now.seq++;
    assert_int_equal(verdict_make(&after, &job, SECOND), 0);
    assert_non_null(strstr(after.sentence[0].text, "#1843"));
    assert_true(before.sentence[0].key == after.sentence[0].key);
    verdict_free(&after);
    process(&job, 3, 'T', "");
    assert_int_equal(verdict_make(&after, &job, SECOND), 0);
    assert_false(before.sentence[0].key == after.sentence[0].key);
    verdict_free(&before);
    verdict_free(&after);
    free_job(&job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rank_that_runs_or_sleeps_is_named),
        cmocka_unit_test(several_that_do_the_same_share_the_words),
        cmocka_unit_test(a_stopped_rank_is_to_blame_wherever_it_stands),
        cmocka_unit_test(when_all_are_stopped_that_explains_nothing),
        cmocka_unit_test(those_that_are_stopped_in_the_call_still_wait_for_who_is_not),
        cmocka_unit_test(a_long_sentence_ends_in_dots),
        cmocka_unit_test(the_dead_are_told_by_ctrun),
        cmocka_unit_test(a_process_may_be_gone_while_its_wrapper_lives),
        cmocka_unit_test(who_left_another_group_of_the_same_name_is_not_blamed),
        cmocka_unit_test(who_has_left_the_group_is_known_by_what_its_line_says),
        cmocka_unit_test(who_is_behind_or_failed_is_said_so),
        cmocka_unit_test(the_store_is_a_place_to_wait),
        cmocka_unit_test(who_never_calls_init_is_named),
        cmocka_unit_test(programs_without_libct_show_their_processes),
        cmocka_unit_test(different_calls_are_shown_side_by_side),
        cmocka_unit_test(a_rank_that_went_on_after_another_call_is_found_by_its_ring),
        cmocka_unit_test(two_groups_in_two_orders_are_a_deadlock_of_both),
        cmocka_unit_test(messages_in_a_circle_are_a_deadlock),
        cmocka_unit_test(a_message_waits_for_its_peer),
        cmocka_unit_test(messages_that_do_not_fit_are_a_mismatch),
        cmocka_unit_test(nobody_guesses_what_other_hosts_do),
        cmocka_unit_test(without_ctrun_the_unseen_are_said_to_be_unseen),
        cmocka_unit_test(who_moves_is_left_alone),
        cmocka_unit_test(a_sentence_that_only_grew_older_is_the_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
