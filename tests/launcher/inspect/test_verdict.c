/* SPDX-License-Identifier: Apache-2.0 */
/* test_verdict.c - which ranks wait for which: from jobs that are made up here to text and JSON. */
#include "tests/harness.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/inspect/rank_stage.h"
#include "launcher/inspect/verdict_text.h"
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

/* The texts of the job's verdicts are these, NULL at the end. */
static void says(const struct job_snapshot *job, const char *state, const char *const *texts)
{
    struct verdict_list list;
    int count = 0;

    assert_int_equal(verdict_list_make(&list, job, SECOND), 0);
    for (; texts[count]; count++) {
        char text[VERDICT_TEXT];

        if (count >= list.count)
            fail_msg("there is no verdict: %s", texts[count]);
        verdict_text(&list.verdict[count], job, text, sizeof text);
        assert_string_equal(text, texts[count]);
    }
    assert_int_equal(list.count, count);
    assert_string_equal(list.state, state);
    verdict_list_free(&list);
}

#define SAYS(job, state, ...) says((job), (state), (const char *const[]){ __VA_ARGS__, NULL })
#define CALLED "all_reduce #1842 (1024 f32, sum) at train.c:88 (step)"
#define WAITED ". Ranks 0-2 have waited 2.1 s in " CALLED
#define MISSED                                                                                   \
    " has not joined all_reduce #1842 (1024 f32, sum); its last call was #1841. Ranks 0-2 have " \
    "waited 2.1 s at train.c:88 (step)"
#define LET_GO ": kill -CONT lets the job continue "

/* ---- One is missing ------------------------------------------------------------ */

static void a_rank_that_runs_or_sleeps_is_named(void **state)
{
    struct job_snapshot job = job_of(4);

    (void)state;
    all_wait(&job, 0, 2, 1842, 2.1);
    in_world(&job, 3, 1842);
    process(&job, 3, 'R', "");
    SAYS(&job, "stuck", "rank 3 (pid 4313, running)" MISSED);
    process(&job, 3, 'S', "sleep");
    SAYS(&job, "stuck", "rank 3 (pid 4313, sleeping)" MISSED);
    process(&job, 3, 'D', "nfs_wait");
    SAYS(&job, "stuck", "rank 3 (pid 4313, stuck in the kernel)" MISSED);
    job.nodes = 2;
    process(&job, 3, 'R', "");
    SAYS(&job, "stuck", "rank 3 (pid 4313 on node-a, running)" MISSED);
    job.rank[3].group[0].begun = 0;
    SAYS(&job, "stuck",
         "rank 3 (pid 4313 on node-a, running) has not joined all_reduce #1842 (1024 f32, sum); it "
         "has made no call yet. Ranks 0-2 have waited 2.1 s at train.c:88 (step)");
    free_job(&job);
}

static void ranks_that_do_the_same_share_a_clause(void **state)
{
    struct job_snapshot job = job_of(8);

    (void)state;
    all_wait(&job, 0, 2, 5, 3);
    for (int i = 3; i < 8; i++) {
        in_world(&job, i, i < 7 ? 5 : 4);
        process(&job, i, 'R', "");
    }
    SAYS(&job, "stuck",
         "ranks 3-6 (pids 4313, 4314, 4315, 4316, running) have not joined all_reduce #5 "
         "(1024 f32, sum); their last call was #4; rank 7 (pid 4317, running) has not joined "
         "all_reduce #5 (1024 f32, sum); its last call was #3. Ranks 0-2 have waited 3.0 s at "
         "train.c:88 (step)");
    free_job(&job);
}

static void a_stopped_rank_is_named_inside_and_outside_of_the_call(void **state)
{
    struct job_snapshot job = job_of(4);

    (void)state;
    all_wait(&job, 0, 2, 1842, 2.1);
    in_world(&job, 3, 1842);
    process(&job, 3, 'T', "");
    SAYS(&job, "stuck", "a signal stopped rank 3 after #1841" LET_GO "(pid 4313, stopped)" WAITED);
    process(&job, 3, 't', "");
    job.rank[3].process.tracer = 77;
    SAYS(&job, "stuck",
         "a debugger (pid 77) holds rank 3 after #1841 (pid 4313, held by a debugger)" WAITED);
    free_job(&job);
    job = job_of(4);
    all_wait(&job, 0, 3, 1842, 2.1);
    process(&job, 3, 'T', "");
    SAYS(&job, "stuck",
         "a signal stopped rank 3 in the same call" LET_GO "(pid 4313, stopped)" WAITED);
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
    SAYS(&job, "stopped", "rank 3 (pid 4313, stopped)" MISSED,
         "a signal stopped all ranks here, ranks 0-3" LET_GO
         "(pids 4310, 4311, 4312, 4313, stopped)");
    free_job(&job);
    job = job_of(4);
    all_wait(&job, 0, 2, 1842, 2.1);
    in_world(&job, 3, 1842);
    process(&job, 3, 'S', "sleep");
    job.launcher_state = 'T';
    SAYS(&job, "stuck", "rank 3 (pid 4313, sleeping)" MISSED,
         "a signal stopped ctrun (pid 4000): kill -CONT lets it continue");
    free_job(&job);
}

static void ranks_that_are_stopped_in_the_call_still_wait_for_the_others(void **state)
{
    struct job_snapshot job = job_of(4);

    (void)state;
    all_wait(&job, 0, 2, 1842, 2.1);
    in_world(&job, 3, 1842);
    process(&job, 3, 'S', "sleep");
    for (int i = 0; i < 3; i++)
        process(&job, i, 'T', "");
    SAYS(&job, "stuck", "rank 3 (pid 4313, sleeping)" MISSED,
         "a signal stopped ranks 0-2 after #1842" LET_GO "(pids 4310, 4311, 4312, stopped)");
    free_job(&job);
}

/* A sentence about hundreds of ranks would fill the screen. */
static void a_long_sentence_ends_in_dots(void **state)
{
    struct job_snapshot job = job_of(200);
    struct verdict_list list;
    char text[VERDICT_TEXT];

    (void)state;
    all_wait(&job, 0, 0, 900, 2.1);
    for (int i = 1; i < 200; i++)
        in_world(&job, i, (uint64_t)(500 + i));
    assert_int_equal(verdict_list_make(&list, &job, SECOND), 0);
    verdict_text(&list.verdict[0], &job, text, sizeof text);
    assert_int_equal(strlen(text), VERDICT_TEXT - 1);
    assert_string_equal(text + strlen(text) - 3, "...");
    verdict_list_free(&list);
    free_job(&job);
}

static void a_dead_rank_is_named_with_how_it_ended(void **state)
{
    struct job_snapshot job = job_of(4);

    (void)state;
    all_wait(&job, 0, 2, 1842, 2.1);
    in_world(&job, 3, 1842);
    process(&job, 3, 'Z', "");
    died(&job, 3, CLD_EXITED, 0);
    SAYS(&job, "stuck", "rank 3 exited with code 0 after #1841 (pid 4313 on node-a)" WAITED);
    job.death[0].how = CLD_DUMPED;
    job.death[0].code = SIGSEGV;
    SAYS(&job, "stuck", "rank 3 was killed by SIGSEGV after #1841 (pid 4313 on node-a)" WAITED);
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
         "rank 3 died silently after #1841: its process (pid 4313) is gone, but sh (pid 4300), "
         "which ctrun started, lives on" WAITED);
    free_job(&job);
}

static void leave(struct group_snapshot *line)
{
    line->was = line->id;
    line->id = 0;
}

/* Groups of one split have one name, and may have one size. */
static void a_rank_that_left_another_group_of_the_same_name_is_not_named(void **state)
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
         "rank 1 (pid 4311, waiting for a thread or a lock) has not joined barrier #2 of "
         "group split; its last call was #1. Rank 0 has waited 3.0 s");
    free_job(&job);
}

static void a_rank_that_left_the_group_is_known_by_its_old_entry(void **state)
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
         "rank 3 left the group after #1841 (pid 4313, waiting for a child process)" WAITED);
    free_job(&job);
}

static void a_rank_in_an_older_call_or_after_a_failed_one_is_named_so(void **state)
{
    struct job_snapshot job = job_of(4);
    struct group_snapshot *line;

    (void)state;
    all_wait(&job, 0, 2, 1842, 2.1);
    line = in_world(&job, 3, 1841);
    call(&job, 3, line, 1841, sum_of(4), 9);
    SAYS(&job, "stuck",
         "rank 3 called all_reduce #1841 (4 f32, sum) of group world and did not return "
         "(pid 4313, waiting for a thread or a lock)" WAITED);
    line->now.phase = CONTROL_FAILED;
    SAYS(&job, "stuck",
         "rank 3 made no call after all_reduce #1841 (4 f32, sum) failed (pid 4313, waiting "
         "for a thread or a lock)" WAITED);
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
    SAYS(&job, "stuck",
         "rank 3 cannot continue without key \"grads/7\" of the store (pid 4313, waiting for "
         "a thread or a lock)" WAITED);
    free_job(&job);
    job = job_of(2);
    for (int i = 0; i < 2; i++) {
        strcpy(job.rank[i].waiting_for, "key \"x\" of the store");
        job.rank[i].waiting_since_ns = NOW - 5 * SECOND;
    }
    SAYS(&job, "stuck",
         "no progress for 5.0 s: ranks 0-1 cannot continue without key \"x\" of the store (pids "
         "4310, 4311, waiting for a thread or a lock)");
    free_job(&job);
}

/* ---- Init ---------------------------------------------------------------------- */

#define IN_INIT ". Ranks 0-2 have waited 5.0 s in ct_init_process_group() for the others"

static void a_rank_that_never_calls_init_is_named(void **state)
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
         "rank 3 (pid 4313, waiting to read) has not called ct_init_process_group()" IN_INIT);
    job.rank[3].worker = 0;
    job.rank[3].process = (struct process_snapshot){ 0 };
    SAYS(&job, "stuck", "ctrun has not started rank 3 yet" IN_INIT);
    job.rank[3].worker = job.rank[3].process.pid = 4313;
    job.rank[3].state = CONTROL_INIT;
    job.rank[3].since_ns = NOW - 5 * SECOND;
    process(&job, 3, 'T', "");
    SAYS(&job, "stuck",
         "a signal stopped rank 3 in the same call" LET_GO "(pid 4313, stopped)" IN_INIT);
    free_job(&job);
}

static void a_rank_without_the_group_is_named_by_what_it_lacks(void **state)
{
    struct job_snapshot job = job_of(4);

    (void)state;
    all_wait(&job, 0, 2, 1842, 2.1);
    job.rank[3].state = CONTROL_OUTSIDE;
    process(&job, 3, 'R', "");
    SAYS(&job, "stuck", "ct_init_process_group() failed on rank 3 (pid 4313, running)" WAITED);
    job.rank[3].state = CONTROL_READY;
    SAYS(&job, "stuck",
         "rank 3 did not make this group yet, or destroyed it (pid 4313, running)" WAITED);
    job.rank[3].state = CONTROL_STARTED;
    SAYS(&job, "stuck", "rank 3 (pid 4313, running) has not called ct_init_process_group()" WAITED);
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
    SAYS(&job, "stuck", "a signal stopped rank 1 before any call" LET_GO "(pid 4311, stopped)");
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
         "group world has waited 2.0 s as the sizes differ: ranks 0-2 called all_reduce #7 (1024 "
         "f32, sum) at train.c:88 (step); rank 3 called all_reduce #7 (512 f32, sum)");
    line->now.operation = OPERATION_BROADCAST;
    line->now.op = -1;
    line->now.root = 3;
    SAYS(&job, "stuck",
         "group world has waited 2.0 s as the operations differ: ranks 0-2 called all_reduce #7 "
         "(1024 f32, sum) at train.c:88 (step); rank 3 called broadcast #7 (512 f32, root 3)");
    for (int i = 0; i < 4; i++) {
        job.rank[i].group[0].now.operation = OPERATION_REDUCE;
        job.rank[i].group[0].now.count = 4;
        job.rank[i].group[0].now.op = CT_SUM;
        job.rank[i].group[0].now.root = i == 3 ? 3 : 0;
    }
    SAYS(&job, "stuck",
         "group world has waited 2.0 s as the roots differ: ranks 0-2 called reduce #7 (4 f32, "
         "sum, root 0) at train.c:88 (step); rank 3 called reduce #7 (4 f32, sum, root 3)");
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
         "group world has waited 2.0 s as the operations differ: ranks 0-1 called all_reduce #7 "
         "(1024 f32, sum) at train.c:88 (step); rank 2 called broadcast #7 (8 i8, root 2) and "
         "returned from it");
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
         "deadlock for 2.0 s: 0 -> 1 -> 0, rank 0 in all_reduce #5 (16 f32, sum) of group tensor; "
         "rank 1 in all_reduce #5 (16 f32, sum) of group pipe; this also blocks rank 2 in "
         "all_reduce #5 (16 f32, sum) of group tensor and rank 3 in all_reduce #5 (16 f32, sum) of "
         "group pipe");
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
    SAYS(&job, "stuck", "deadlock for 2.0 s: 0 -> 1 -> 0, both in send (8 f32, tag 0)");
    for (int i = 0; i < 2; i++)
        strcpy(job.rank[i].group[0].where, i ? "rows.c:69 (main)" : "rows.c:68 (main)");
    SAYS(&job, "stuck",
         "deadlock for 2.0 s: 0 -> 1 -> 0, rank 0 in send (8 f32, tag 0) at rows.c:68 (main); rank "
         "1 in send (8 f32, tag 0) at rows.c:69 (main)");
    free_job(&job);

    job = job_of(5);
    for (int i = 0; i < 3; i++)
        call(&job, i, in_world(&job, i, 3), 0, message(OPERATION_RECV, (i + 1) % 3, 8), 2);
    call(&job, 3, in_world(&job, 3, 3), 3, sum_of(1), 2);
    call(&job, 4, in_world(&job, 4, 3), 0, message(OPERATION_RECV, 3, 8), 2);
    SAYS(&job, "stuck",
         "deadlock for 2.0 s: 0 -> 1 -> 2 -> 0, all in recv (8 f32, tag 0); this also blocks rank "
         "3 in all_reduce #3 (1 f32, sum) and rank 4 in recv (8 f32, tag 0)");
    free_job(&job);

    job = job_of(2);
    call(&job, 1, in_world(&job, 1, 3), 0, message(OPERATION_RECV, 1, 8), 2);
    in_world(&job, 0, 3);
    SAYS(&job, "stuck", "deadlock for 2.0 s: 1 -> 1, rank 1 in recv (8 f32, tag 0)");
    free_job(&job);
}

/* Ranks 0-3 in a square, each row and each column a group of two. */
static void a_circle_through_several_groups_is_one_deadlock(void **state)
{
    static const int groups[4][2] = { { 0, 1 }, { 1, 3 }, { 3, 2 }, { 2, 0 } };
    struct job_snapshot job = job_of(4);

    (void)state;
    for (int g = 0; g < 4; g++)
        for (int i = 0; i < 2; i++) {
            struct group_snapshot *line =
                line_of(&job, groups[g][i], 100 + (uint64_t)g, "world.1", i, 2);

            if (i == 0)
                call(&job, groups[g][0], line, 0, message(OPERATION_SEND, 1, 1000003), 2);
        }
    SAYS(&job, "stuck",
         "deadlock for 2.0 s: 0 -> 1 -> 3 -> 2 -> 0, all in send (1000003 f32, tag 0)");
    free_job(&job);
}

static void two_deadlocks_and_a_wait_are_three_sentences(void **state)
{
    struct job_snapshot job = job_of(6);

    (void)state;
    for (int i = 0; i < 4; i++)
        call(&job, i, in_world(&job, i, 3), 0, message(OPERATION_SEND, i ^ 1, 8), i / 2 + 2);
    call(&job, 4, in_world(&job, 4, 3), 0, message(OPERATION_RECV, 5, 8), 2);
    in_world(&job, 5, 3);
    SAYS(&job, "stuck", "deadlock for 2.0 s: 0 -> 1 -> 0, both in send (8 f32, tag 0)",
         "deadlock for 3.0 s: 2 -> 3 -> 2, both in send (8 f32, tag 0)",
         "rank 5 (pid 4315, waiting for a thread or a lock) is in no call; its last call was "
         "#2. Rank 4 has waited 2.0 s in recv of 8 f32 from rank 5 (tag 0)");
    free_job(&job);
}

static void a_long_circle_is_told_by_its_ends(void **state)
{
    struct job_snapshot job = job_of(64);

    (void)state;
    for (int i = 0; i < 64; i++)
        call(&job, i, in_world(&job, i, 3), 0, message(OPERATION_SEND, (i + 1) % 64, 8), 2);
    SAYS(&job, "stuck",
         "deadlock for 2.0 s: 0 -> 1 -> 2 -> 3 -> 4 -> 5 -> 6 -> 7 -> ... -> 63 -> 0, all in send "
         "(8 f32, tag 0)");
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
         "rank 0 (pid 4310, sleeping) is in no call; its last call was #2. Ranks 1-3 have "
         "waited 2.0 s in recv of 8 f32 from rank 0 (tag 0)");
    for (int i = 2; i < 4; i++)
        job.rank[i].group[0].now.root = i - 1;
    SAYS(&job, "stuck",
         "rank 0 (pid 4310, sleeping) is in no call; its last call was #2. Rank 1 has waited "
         "2.0 s in recv of 8 f32 from rank 0 (tag 0); this also blocks ranks 2-3");
    free_job(&job);
}

static void messages_that_do_not_fit_are_a_mismatch(void **state)
{
    struct job_snapshot job = job_of(2);

    (void)state;
    call(&job, 0, in_world(&job, 0, 3), 0, message(OPERATION_SEND, 1, 8), 2);
    call(&job, 1, in_world(&job, 1, 3), 0, message(OPERATION_RECV, 0, 8), 2);
    job.rank[1].group[0].now.tag = 4;
    SAYS(&job, "stuck",
         "group world has waited 2.0 s as the tags differ: rank 0 called send of 8 f32 to rank 1 "
         "(tag 0); rank 1 called recv of 8 f32 from rank 0 (tag 4)");
    job.rank[1].group[0].now.tag = 0;
    SAYS(&job, "running",
         "group world has taken 2.0 s, no rank is missing: rank 0 called send of 8 f32 to rank 1 "
         "(tag 0); rank 1 called recv of 8 f32 from rank 0 (tag 0)");
    process(&job, 1, 'T', "");
    SAYS(&job, "stuck",
         "a signal stopped rank 1 in the same call: kill -CONT lets the job continue (pid 4311, "
         "stopped). Rank 0 has waited 2.0 s in send of 8 f32 to rank 1 (tag 0)");
    free_job(&job);
}

/* ---- Elsewhere ------------------------------------------------------------------ */

#define ON_HOSTS(ranks) \
    ". Ranks " ranks " have waited 2.0 s in all_reduce #9 (1024 f32, sum) at train.c:88 (step)"

static void ranks_of_other_hosts_are_named_without_a_guess(void **state)
{
    struct job_snapshot job = job_of(4);

    (void)state;
    job.world = 8;
    job.nodes = 2;
    all_wait(&job, 0, 3, 9, 2);
    SAYS(&job, "stuck",
         "no process here shows ranks 4-7: run ctctl on the other hosts" ON_HOSTS("0-3"));
    died(&job, 5, CONTROL_HOST_LOST, 0);
    SAYS(&job, "stuck",
         "no process here shows ranks 4,6-7: run ctctl on the other hosts; rank 5 "
         "was lost with its host (pid 4315 on node-a)" ON_HOSTS("0-3"));
    job.death[0].tombs = 1;
    job.death[0].tomb[0] = (struct control_tomb){ WORLD, 8, 8, 1 };
    SAYS(&job, "stuck",
         "no process here shows ranks 4,6-7: run ctctl on the other hosts; rank 5 "
         "was lost with its host after #8 (pid 4315 on node-a)" ON_HOSTS("0-3"));
    free_job(&job);
}

/* Of a group that is not the world, a rank without a line has no number here. */
static void members_of_other_hosts_are_counted_but_the_dead_are_named(void **state)
{
    struct job_snapshot job = job_of(4);

    (void)state;
    job.world = 8;
    job.nodes = 2;
    for (int i = 0; i < 2; i++) {
        struct group_snapshot *line = line_of(&job, i, 70, "half", i, 4);

        line->begun = line->done = 1;
        call(&job, i, line, 2, sum_of(16), 3);
    }
    SAYS(&job, "stuck",
         "no process here shows 2 of its ranks, which may have left the group, or may run on "
         "another host. Ranks 0-1 have waited 3.0 s in all_reduce #2 (16 f32, sum) of group "
         "half");
    died(&job, 6, CLD_KILLED, SIGKILL);
    job.death[0].tombs = 1;
    job.death[0].tomb[0] = (struct control_tomb){ 70, 1, 1, 1 };
    SAYS(&job, "stuck",
         "rank 6 was killed by SIGKILL after #1 (pid 4316 on node-a); no process here shows 1 of "
         "its ranks, which may have left the group, or may run on another host. Ranks 0-1 "
         "have waited 3.0 s in all_reduce #2 (16 f32, sum) of group half");
    job.death[0].tomb[0].done = 2; /* it had returned from the call */
    SAYS(&job, "stuck",
         "no process here shows 1 of its ranks, which may have left the group, or may run on "
         "another host. Ranks 0-1 have waited 3.0 s in all_reduce #2 (16 f32, sum) of group "
         "half");
    free_job(&job);
}

static void without_ctrun_ranks_that_are_not_here_are_named(void **state)
{
    struct job_snapshot job = job_of(3);

    (void)state;
    job.own_memory = 1;
    job.world = 4;
    all_wait(&job, 0, 2, 9, 2);
    SAYS(&job, "stuck",
         "no process here shows rank 3, which may have ended, may not have started, "
         "or may run on another host" ON_HOSTS("0-2"));
    free_job(&job);
}

/* ---- Nothing is wrong ----------------------------------------------------------- */

static void ranks_that_move_have_no_verdict(void **state)
{
    struct job_snapshot job = job_of(4);

    (void)state;
    all_wait(&job, 0, 2, 1842, 0.5);
    in_world(&job, 3, 1842);
    SAYS(&job, "running", NULL);
    free_job(&job);
    job = job_of(4);
    all_wait(&job, 0, 3, 1842, 30);
    SAYS(&job, "running",
         "group world has taken 30.0 s, no rank is missing: ranks 0-3 called " CALLED);
    job.rank[3].group[0].now.begun_ns = NOW - SECOND / 2;
    SAYS(&job, "running", NULL);
    free_job(&job);
}

static uint64_t key_of(const struct job_snapshot *job, char *text)
{
    struct verdict_list list;
    uint64_t key;

    assert_int_equal(verdict_list_make(&list, job, SECOND), 0);
    assert_int_equal(list.count, 1);
    key = verdict_text(&list.verdict[0], job, text, VERDICT_TEXT);
    verdict_list_free(&list);
    return key;
}

static void a_verdict_that_only_grew_older_has_the_same_key(void **state)
{
    struct job_snapshot job = job_of(4);
    char before[VERDICT_TEXT], after[VERDICT_TEXT];
    uint64_t key;

    (void)state;
    all_wait(&job, 0, 2, 1842, 2.1);
    in_world(&job, 3, 1842);
    key = key_of(&job, before);
    job.now_ns += 60 * SECOND;
    process(&job, 3, 'R', "");
    assert_true(key_of(&job, after) == key);
    assert_string_not_equal(before, after);
    for (int i = 0; i < 4; i++) /* and the same again at the next step */
        job.rank[i].group[0].begun++;
    for (int i = 0; i < 3; i++)
        job.rank[i].group[0].now.seq++;
    assert_true(key_of(&job, after) == key);
    assert_non_null(strstr(after, "#1843"));
    process(&job, 3, 'T', "");
    assert_false(key_of(&job, after) == key);
    free_job(&job);
}

/* ---- For programs ---------------------------------------------------------------- */

static void json_has_the_data_of_the_text(void **state)
{
    struct job_snapshot job = job_of(4);
    struct verdict_list list;
    struct text out = { 0 };
    struct json_text json = { .to = &out, .gap = " " };

    (void)state;
    all_wait(&job, 0, 2, 1842, 2.0);
    in_world(&job, 3, 1842);
    assert_int_equal(verdict_list_make(&list, &job, SECOND), 0);
    verdict_json(&json, &list.verdict[0], &job, "seconds");
    text_add(&out, "", 1);
    assert_string_equal(
        out.data,
        "{\"kind\": \"missing\", \"group\": \"world\", \"seconds\": 2.000, \"text\": \"rank 3 "
        "(pid 4313, waiting for a thread or a lock) has not joined all_reduce #1842 (1024 f32, "
        "sum); its last call was #1841. Ranks 0-2 have waited 2.0 s at train.c:88 (step)\", "
        "\"operation\": \"all_reduce\", \"sequence\": "
        "1842, \"differ\": null, \"waiting\": [{\"reason\": \"in_call\", \"ranks\": [0, 1, 2], "
        "\"pids\": [4310, 4311, 4312], \"count\": 3, \"state\": \"waiting for a thread or a "
        "lock\", "
        "\"after\": 0, \"in_call\": true, \"host\": null, \"place\": null, \"call\": \"all_reduce "
        "#1842 (1024 f32, "
        "sum)\", \"group\": \"world\", \"where\": \"train.c:88 (step)\", \"waits_for\": null, "
        "\"end\": null, \"wrapper\": null, \"tracer\": null}], \"missing\": [{\"reason\": "
        "\"idle\", "
        "\"ranks\": [3], \"pids\": [4313], \"count\": 1, \"state\": \"waiting for a thread or a "
        "lock\", \"after\": 1841, \"in_call\": false, \"host\": null, \"place\": null, \"call\": "
        "null, \"group\": "
        "null, \"where\": null, \"waits_for\": null, \"end\": null, \"wrapper\": null, \"tracer\": "
        "null}]}");
    free(out.data);
    verdict_list_free(&list);
    free_job(&job);
}

static void the_parts_of_a_verdict_name_each_rank(void **state)
{
    struct job_snapshot job = job_of(1024);
    struct verdict_list list;
    struct verdict_parts parts;
    int commas = 0;

    (void)state;
    for (int i = 0; i < 1024; i++)
        if (i % 2 == 0)
            all_wait(&job, i, i, 5, 3);
        else
            in_world(&job, i, 5);
    assert_int_equal(verdict_list_make(&list, &job, SECOND), 0);
    verdict_parts(&list.verdict[0], &job, &parts);
    for (const char *at = parts.waiting.data; (at = strchr(at, ',')); at++)
        commas++;
    assert_int_equal(commas, 511);
    assert_int_equal(strncmp(parts.waiting.data, "0,2,4,", 6), 0);
    assert_string_equal(strrchr(parts.waiting.data, ','), ",1022");
    assert_string_equal(parts.awaited.data, "");
    verdict_parts_free(&parts);
    verdict_list_free(&list);
    free_job(&job);
}

static void does(const struct job_snapshot *job, const char *words)
{
    char text[RANK_TEXT];

    describe_rank(job, job->rank, text, sizeof text);
    assert_string_equal(text, words);
}

static void a_stopped_rank_does_not_compute(void **state)
{
    struct job_snapshot job = job_of(1);

    (void)state;
    process(&job, 0, 'R', "");
    does(&job, "computing");
    process(&job, 0, 'S', "read");
    does(&job, "(read)");
    process(&job, 0, 'T', "");
    does(&job, "stopped by a signal");
    process(&job, 0, '\0', "");
    does(&job, "gone");
    free_job(&job);
}

/* ---- One word for each rank ------------------------------------------------------- */

static void stages_are(const struct job_snapshot *job, const char *words)
{
    enum rank_stage stage[8];
    struct verdict_list list;
    char text[200] = "";

    assert_int_equal(verdict_list_make(&list, job, SECOND), 0);
    rank_stages(job, &list, stage);
    for (int i = 0; i < job->ranks; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? " " : "",
                 rank_stage_name(stage[i]));
    assert_string_equal(text, words);
    verdict_list_free(&list);
}

static void each_rank_has_the_word_of_its_part_in_the_verdict(void **state)
{
    struct job_snapshot job = job_of(4);

    (void)state;
    all_wait(&job, 0, 2, 5, 3);
    in_world(&job, 3, 5);
    stages_are(&job, "waiting waiting waiting blocking");
    job.rank[3].state = CONTROL_LEFT;
    leave(job.rank[3].group);
    stages_are(&job, "waiting waiting waiting left");
    free_job(&job);
}

static void the_ranks_of_a_circle_block_and_the_others_wait(void **state)
{
    struct job_snapshot job = job_of(4);

    (void)state;
    all_wait(&job, 2, 3, 5, 3);
    for (int i = 0; i < 2; i++)
        call(&job, i, in_world(&job, i, 5), 0, message(OPERATION_SEND, 1 - i, 8), 3);
    stages_are(&job, "blocking blocking waiting waiting");
    free_job(&job);
}

static void an_ended_rank_has_the_word_of_its_end(void **state)
{
    struct job_snapshot job = job_of(5);

    (void)state;
    for (int i = 0; i < 5; i++) {
        in_world(&job, i, i == 1 ? 5 : 6);
        process(&job, i, i < 4 ? '\0' : 'R', "");
        if (i < 4)
            died(&job, i, i == 2 ? CLD_KILLED : CLD_EXITED, i == 2 ? SIGKILL : i == 3 ? 1 : 0);
    }
    job.death[3].asked = SIGTERM;
    stages_are(&job, "done left failed stopped running"); /* rank 1 did not join the last call */
    job.rank[1].state = CONTROL_LEFT;
    stages_are(&job, "done done failed stopped running");
    free_job(&job);
}

static void a_list_of_ranks_begins_with_the_problems(void **state)
{
    const char *words[STAGES];

    (void)state;
    for (int stage = 0; stage < STAGES; stage++)
        words[rank_stage_order((enum rank_stage)stage)] = rank_stage_name((enum rank_stage)stage);
    assert_string_equal(words[0], "blocking");
    assert_string_equal(words[1], "left");
    assert_string_equal(words[2], "failed");
    assert_string_equal(words[3], "straggler");
    assert_string_equal(words[4], "waiting");
    assert_string_equal(words[STAGES - 1], "done");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rank_that_runs_or_sleeps_is_named),
        cmocka_unit_test(ranks_that_do_the_same_share_a_clause),
        cmocka_unit_test(a_stopped_rank_is_named_inside_and_outside_of_the_call),
        cmocka_unit_test(when_all_are_stopped_that_explains_nothing),
        cmocka_unit_test(ranks_that_are_stopped_in_the_call_still_wait_for_the_others),
        cmocka_unit_test(a_long_sentence_ends_in_dots),
        cmocka_unit_test(a_dead_rank_is_named_with_how_it_ended),
        cmocka_unit_test(a_process_may_be_gone_while_its_wrapper_lives),
        cmocka_unit_test(a_rank_that_left_another_group_of_the_same_name_is_not_named),
        cmocka_unit_test(a_rank_that_left_the_group_is_known_by_its_old_entry),
        cmocka_unit_test(a_rank_in_an_older_call_or_after_a_failed_one_is_named_so),
        cmocka_unit_test(the_store_is_a_place_to_wait),
        cmocka_unit_test(a_rank_that_never_calls_init_is_named),
        cmocka_unit_test(a_rank_without_the_group_is_named_by_what_it_lacks),
        cmocka_unit_test(programs_without_libct_show_their_processes),
        cmocka_unit_test(different_calls_are_shown_side_by_side),
        cmocka_unit_test(a_rank_that_went_on_after_another_call_is_found_by_its_ring),
        cmocka_unit_test(two_groups_in_two_orders_are_a_deadlock_of_both),
        cmocka_unit_test(messages_in_a_circle_are_a_deadlock),
        cmocka_unit_test(a_circle_through_several_groups_is_one_deadlock),
        cmocka_unit_test(two_deadlocks_and_a_wait_are_three_sentences),
        cmocka_unit_test(a_long_circle_is_told_by_its_ends),
        cmocka_unit_test(a_message_waits_for_its_peer),
        cmocka_unit_test(messages_that_do_not_fit_are_a_mismatch),
        cmocka_unit_test(ranks_of_other_hosts_are_named_without_a_guess),
        cmocka_unit_test(members_of_other_hosts_are_counted_but_the_dead_are_named),
        cmocka_unit_test(without_ctrun_ranks_that_are_not_here_are_named),
        cmocka_unit_test(ranks_that_move_have_no_verdict),
        cmocka_unit_test(a_verdict_that_only_grew_older_has_the_same_key),
        cmocka_unit_test(json_has_the_data_of_the_text),
        cmocka_unit_test(the_parts_of_a_verdict_name_each_rank),
        cmocka_unit_test(a_stopped_rank_does_not_compute),
        cmocka_unit_test(each_rank_has_the_word_of_its_part_in_the_verdict),
        cmocka_unit_test(the_ranks_of_a_circle_block_and_the_others_wait),
        cmocka_unit_test(an_ended_rank_has_the_word_of_its_end),
        cmocka_unit_test(a_list_of_ranks_begins_with_the_problems),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
