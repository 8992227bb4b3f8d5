/* SPDX-License-Identifier: Apache-2.0 */
/* test_inspect.c - reading control pages: whole ones, half written ones, and ones of random bytes;
 * processes, places in programs, and --stall. */
#include "tests/launcher/inspect/page.h"

#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "launcher/inspect/elf_module.h"
#include "launcher/inspect/find_jobs.h"
#include "launcher/inspect/page_reader.h"
#include "launcher/inspect/proc_info.h"
#include "launcher/inspect/source_lines.h"
#include "launcher/inspect/verdict_text.h"
#include "launcher/job/job.h"
#include "launcher/observers/observers.h"
#include "launcher/observers/stall_observer.h"
#include "launcher/util/run_tool.h"
#include "runtime/monitor/flight_recorder.h"
#include "runtime/util/clock.h"
#include "runtime/util/thread.h"

/* ---- A page ------------------------------------------------------------------- */

/* A page of ranks that have initialized libct. */
static struct page ready_page(int local, int world)
{
    struct page page = make_page(local, world);

    strcpy(page.head->run_id, "job7");
    strcpy(page.head->host, "node-a");
    for (int i = 0; i < local; i++) {
        control_rank_at(page.head, i)->pid = getpid();
        control_rank_at(page.head, i)->state = CONTROL_READY;
    }
    return page;
}

static const struct signature barrier = {
    .seq = 5, .operation = OPERATION_BARRIER, .op = -1, .root = -1
};

static struct record recorded(struct page *page, int rank)
{
    struct control control = { .own = control_rank_at(page->head, rank) };
    struct record record;

    record_open(&record, &control, 1, "world", rank, page->head->world);
    return record;
}

static void what_ranks_record_is_read(void **state)
{
    struct page page = ready_page(2, 4);
    struct record record = recorded(&page, 1);
    struct job_snapshot job;

    (void)state;
    record_begin(&record, &barrier, 0, (void *)(uintptr_t)0x1234, clock_coarse_ns());
    control_death_at(page.head, 0)->rank = 3;
    control_death_at(page.head, 0)->how = CLD_KILLED;
    control_death_at(page.head, 0)->code = SIGKILL;
    atomic_store(&page.head->deaths, 1);
    assert_int_equal(page_read(page.fd, &job), 0);
    assert_string_equal(job.run_id, "job7");
    assert_int_equal(job.ranks, 2);
    assert_int_equal(job.world, 4);
    assert_int_equal(job.rank[1].group[0].id, 1);
    assert_int_equal(job.rank[1].group[0].begun, 5);
    assert_int_equal(job.rank[1].group[0].now.operation, OPERATION_BARRIER);
    assert_int_equal(job.rank[1].group[0].now.phase, CONTROL_IN);
    assert_int_equal(job.rank[1].group[0].caller, 0x1234);
    assert_int_equal(job.rank[1].ring_used, 1);
    assert_int_equal(snapshot_death_of(&job, 3)->code, SIGKILL);
    assert_null(snapshot_death_of(&job, 2));
    snapshot_free(&job);
    free_page(&page);
}

static void a_noted_place_is_shown_with_its_call_and_with_no_other(void **state)
{
    struct page page = ready_page(1, 1);
    struct record record = recorded(&page, 0);
    struct signature next = barrier;
    struct job_snapshot job;

    (void)state;
    next.seq++;
    record_begin(&record, &barrier, 0, (void *)(uintptr_t)0x1234, clock_coarse_ns());
    record_place(&record, "train.py:88 (step)");
    assert_int_equal(page_read(page.fd, &job), 0);
    assert_string_equal(job.rank[0].group[0].where, "train.py:88 (step)");
    assert_int_equal(job.rank[0].group[0].caller, 0);
    snapshot_free(&job);
    record_end(&record, barrier.seq, CONTROL_IDLE);
    record_begin(&record, &next, 0, (void *)(uintptr_t)0x1234, clock_coarse_ns());
    assert_int_equal(page_read(page.fd, &job), 0);
    assert_string_equal(job.rank[0].group[0].where, "");
    assert_int_equal(job.rank[0].group[0].caller, 0x1234);
    snapshot_free(&job);
    free_page(&page);
}

static void an_entry_that_was_left_keeps_the_id_of_its_group(void **state)
{
    struct page page = ready_page(1, 1);
    struct record record = recorded(&page, 0);
    struct job_snapshot job;

    (void)state;
    record_close(&record);
    assert_int_equal(page_read(page.fd, &job), 0);
    assert_int_equal(job.rank[0].group[0].id, 0);
    assert_int_equal(job.rank[0].group[0].was, 1);
    snapshot_free(&job);
    record = recorded(&page, 0); /* another one takes its place */
    assert_int_equal(page_read(page.fd, &job), 0);
    assert_int_equal(job.rank[0].group[0].id, 1);
    assert_int_equal(job.rank[0].group[0].was, 0);
    snapshot_free(&job);
    free_page(&page);
}

/* Its writer was stopped between two stores: the ring has that call. */
static void an_entry_that_is_half_written_is_taken_from_the_ring(void **state)
{
    struct page page = ready_page(1, 1);
    struct record record = recorded(&page, 0);
    struct job_snapshot job;

    (void)state;
    record_begin(&record, &barrier, 0, NULL, clock_coarse_ns());
    record.line->now.operation = OPERATION_SCATTER;
    record.line->now.seq = 4;
    atomic_fetch_add(&record.line->version, 1);
    assert_int_equal(page_read(page.fd, &job), 0);
    assert_int_equal(job.rank[0].group[0].now.operation, OPERATION_BARRIER);
    assert_int_equal(job.rank[0].group[0].now.seq, 5);
    assert_false(job.rank[0].group[0].moving);
    snapshot_free(&job);
    free_page(&page);
}

/* A writer that never rests: no copy is a mixture of two calls. */
static void an_entry_is_never_a_mixture_of_two_calls(void **state)
{
    struct page page = ready_page(1, 1);
    struct record record = recorded(&page, 0);
    const int64_t deadline = deadline_after(60000);
    int whole = 0;
    pid_t writer;

    (void)state;
    if ((writer = fork()) == 0) {
        struct signature call = barrier;

        for (call.seq = 1;; call.seq++) {
            call.count = call.seq;
            record_begin(&record, &call, (int)call.seq, (void *)(uintptr_t)call.seq,
                         clock_coarse_ns());
        }
    }
    /* The reader may be through before the writer has begun. */
    for (int i = 0; i < 2000 || (whole == 0 && clock_ms() < deadline); i++) {
        struct job_snapshot job;
        const struct group_snapshot *line;

        assert_int_equal(page_read(page.fd, &job), 0);
        line = &job.rank[0].group[0];
        if (!line->moving && line->id && line->now.begun_ns) {
            assert_true(line->now.seq == line->now.count);
            whole++;
        }
        snapshot_free(&job);
    }
    kill(writer, SIGKILL);
    waitpid(writer, NULL, 0);
    assert_true(whole > 0);
    free_page(&page);
}

static void text_of_a_page_has_no_control_characters(void **state)
{
    char text[16];

    (void)state;
    page_text(text, sizeof text, "a\033[2Jb", 6);
    assert_string_equal(text, "a?[2Jb");
    page_text(text, sizeof text,
              "\xc2\x9b"
              "1m\xff\xc3\xa4",
              7);
    assert_string_equal(text, "??1m?\xc3\xa4");
    page_text(text, 4, "\xc3\xa4\xc3\xa4", 4);
    assert_string_equal(text, "\xc3\xa4");
    page_text(text, sizeof text, "no end here", 5);
    assert_string_equal(text, "no en");
}

/* ---- Pages that are not valid --------------------------------------------------------- */

static void what_is_no_page_is_refused(void **state)
{
    struct page page = ready_page(2, 2);
    struct job_snapshot job;

    (void)state;
    page.head->magic++;
    assert_int_equal(page_read(page.fd, &job), -1);
    page.head->magic--;
    page.head->local = 3; /* more than there is room for */
    assert_int_equal(page_read(page.fd, &job), -1);
    page.head->local = INT32_MIN;
    assert_int_equal(page_read(page.fd, &job), -1);
    page.head->local = 2;
    page.head->world = INT32_MAX;
    assert_int_equal(page_read(page.fd, &job), -1);
    page.head->world = 2;
    assert_int_equal(page_read(page.fd, &job), 0);
    snapshot_free(&job);
    assert_int_equal(ftruncate(page.fd, CONTROL_HEAD_BYTES), 0);
    assert_int_equal(page_read(page.fd, &job), -1);
    free_page(&page);
}

/* Whatever the bytes are: reading ends and stays within its bounds. */
static void a_page_of_random_bytes_gives_verdicts_that_can_be_printed(void **state)
{
    struct page page = ready_page(4, 4);
    unsigned seed = 1;

    (void)state;
    for (int i = 0; i < 4; i++)
        recorded(&page, i);
    for (int round = 0; round < 500; round++) {
        unsigned char *bytes = (unsigned char *)page.head;
        struct verdict_list list;
        struct job_snapshot job;

        for (int i = 0; i < 40; i++) {
            const size_t at = CONTROL_HEAD_BYTES / 2
                              + (size_t)rand_r(&seed) % (page.bytes - CONTROL_HEAD_BYTES / 2);

            bytes[at] = (unsigned char)rand_r(&seed);
        }
        if (page_read(page.fd, &job) < 0)
            continue;
        for (int i = 0; i < job.ranks; i++)
            job.rank[i].process =
                (struct process_snapshot){ .pid = 1, .state = "RSTZ\0"[rand_r(&seed) % 5] };
        assert_int_equal(verdict_list_make(&list, &job, 0), 0);
        for (int i = 0; i < list.count; i++) {
            char text[VERDICT_TEXT];

            verdict_text(&list.verdict[i], &job, text, sizeof text);
            assert_true(*text);
            for (const char *letter = text; *letter; letter++)
                assert_true((unsigned char)*letter >= ' ' && *letter != 0x7f);
        }
        verdict_list_free(&list);
        snapshot_free(&job);
    }
    free_page(&page);
}

/* ---- Jobs without ctrun ---------------------------------------------------------- */

static void ranks_of_one_launcher_have_one_key(void **state)
{
    static const char torch[] = "A=1\0MASTER_ADDR=h\0MASTER_PORT=29500\0RANK=1";
    static const char mpi[] = "PMIX_NAMESPACE=prterun-h-1@1\0OMPI_COMM_WORLD_RANK=2";
    static const char slurm[] = "SLURM_JOB_ID=12\0SLURM_STEP_ID=0\0MASTER_PORT=";
    char key[160];

    (void)state;
    job_key(torch, sizeof torch, 7, key, sizeof key);
    assert_string_equal(key, "h:29500");
    job_key(mpi, sizeof mpi, 7, key, sizeof key);
    assert_string_equal(key, "prterun-h-1@1");
    job_key(slurm, sizeof slurm, 7, key, sizeof key);
    assert_string_equal(key, "12.0");
    job_key("", 1, 7, key, sizeof key);
    assert_string_equal(key, "parent-7");
}

static void pages_with_one_key_become_a_job(void **state)
{
    struct job_list jobs = { .count = 3 };

    (void)state;
    jobs.job = calloc(3, sizeof *jobs.job);
    for (int i = 0; i < 3; i++) {
        struct job_snapshot *job = &jobs.job[i];

        *job = (struct job_snapshot){ .own_memory = 1, .ranks = 1, .local = 1, .world = 1 };
        job->rank = calloc(1, sizeof *job->rank);
        job->rank->rank = 2 - i;
        job->rank->group[0] = (struct group_snapshot){ .id = 1, .rank = 2 - i, .size = 3 };
        strcpy(job->key, i == 1 ? "another" : "one");
    }
    job_list_merge(&jobs);
    assert_int_equal(jobs.count, 2);
    assert_int_equal(jobs.job[0].ranks, 2);
    assert_int_equal(jobs.job[0].world, 3);
    assert_int_equal(jobs.job[0].rank[0].rank, 0);
    assert_int_equal(jobs.job[0].rank[1].rank, 2);
    job_list_free(&jobs);
}

/* ---- Processes and places --------------------------------------------------------- */

static void a_process_shows_what_it_does(void **state)
{
    const pid_t pid = fork();
    struct process_snapshot process;

    (void)state;
    if (pid == 0) {
        sleep(600);
        _exit(0);
    }
    do
        process = process_read(pid);
    while (strcmp(process.waits_in, "sleep") != 0);
    assert_int_equal(process.state, 'S');
    assert_int_equal(process.parent, getpid());
    kill(pid, SIGSTOP);
    do
        process = process_read(pid);
    while (process.state != 'T');
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_int_equal(process_read(pid).state, 0);
}

static void work_for_100_ms(void)
{
    const clock_t began = clock();

    while (clock() - began < CLOCKS_PER_SEC / 10)
        ;
}

/* As ctrun's worker whose child starts processes. */
static void the_work_of_a_process_counts_that_of_its_descendants_and_of_ended_ones(void **state)
{
    struct process_work work = { 0, 0 };
    int ready[2], end[2];
    char text[1000] = "";
    pid_t child;

    (void)state;
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(end), 0);
    if ((child = fork()) == 0) {
        close(end[1]);
        if (fork() == 0) {
            work_for_100_ms();
            _exit(0);
        }
        wait(NULL);
        if (fork() == 0) {
            work_for_100_ms();
            assert_int_equal(write(ready[1], text, sizeof text), sizeof text);
        }
        assert_int_equal(read(end[0], text, 1), 0);
        _exit(0);
    }
    close(end[0]);
    assert_int_equal(read(ready[0], text, sizeof text), sizeof text);
    assert_int_equal(process_work_below(child, &work), 0);
    assert_in_range(work.cpu_ms, 80, 150); /* the child's only living child */
    assert_in_range(work.written, 1000, 1999);
    work = (struct process_work){ 0, 0 };
    assert_int_equal(process_work_below(getpid(), &work), 0);
    assert_in_range(work.cpu_ms, 180, 300);
    close(end[1]);
    waitpid(child, NULL, 0);
    close(ready[0]);
    close(ready[1]);
}

__attribute__((noinline)) static void *here(void)
{
    return __builtin_return_address(0);
}

static void an_address_is_found_in_its_file(void **state)
{
    struct module module;

    (void)state;
    assert_int_equal(module_find(getpid(), (uint64_t)(uintptr_t)here(), &module), 0);
    assert_string_equal(module.name, "test_inspect");
    assert_true(module.at > 0);
    assert_int_equal(module_find(getpid(), 0x10, &module), -1);
    assert_int_equal(module_find(0, 0x10, &module), -1);
}

static void the_output_of_tools_becomes_places(void **state)
{
    char text[160];

    (void)state;
    assert_int_equal(source_words("step", "/home/x/train.c:88", text, sizeof text), 1);
    assert_string_equal(text, "train.c:88 (step)");
    assert_int_equal(source_words("step", "/x/train.c:88:5", text, sizeof text), 1);
    assert_string_equal(text, "train.c:88 (step)");
    assert_int_equal(source_words("??", "train.c:88 (discriminator 2)", text, sizeof text), 1);
    assert_string_equal(text, "train.c:88");
    assert_int_equal(source_words("main", "??:0", text, sizeof text), 0);
    assert_int_equal(source_words("main", "??:?", text, sizeof text), 0);
    assert_int_equal(python_frame("Process 7: python t.py\nThread 7 (idle): \"MainThread\"\n"
                                  "    wait (threading.py:320)\n    <module> (t.py:9)\n",
                                  text, sizeof text),
                     1);
    assert_string_equal(text, "threading.py:320 (wait)");
    assert_int_equal(python_frame("Error: no such process", text, sizeof text), 0);
    assert_int_equal(python_frame("\"MainThread\"\n    cut", text, sizeof text), 0);
}

static void a_new_place_is_looked_up_while_the_caller_goes_on(void **state)
{
    struct rank_snapshot rank = { .process = { .pid = getpid(), .state = 'R' } };
    struct job_snapshot job = { .ranks = 1, .rank = &rank };
    struct group_snapshot *const group = rank.group;
    const int64_t end = clock_ms() + 20000;

    (void)state;
    if (!tool_is_there("addr2line") && !tool_is_there("eu-addr2line"))
        skip();
    group->id = 1;
    group->now.phase = CONTROL_IN;
    group->caller = (uint64_t)(uintptr_t)here();
    source_lines_known(&job);
    assert_int_equal(strncmp(group->where, "test_inspect+0x", 15), 0);
    while (strncmp(group->where, "test_inspect.c:", 15) != 0) {
        assert_true(clock_ms() < end);
        usleep(1000);
        source_lines_known(&job);
    }
    *group->where = '\0';
    source_lines(&job);
    assert_int_equal(strncmp(group->where, "test_inspect.c:", 15), 0);
}

/* Makes an addr2line of ours. */
static void tool_says(const char *folder, const char *script)
{
    char path[200];
    FILE *file;

    snprintf(path, sizeof path, "%s/eu-addr2line", folder);
    assert_non_null(file = fopen(path, "w"));
    fputs(script, file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, 0700), 0);
}

/* Maps a new file with this content. */
static void *map_file(const char *path, const char *content)
{
    const int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    void *map;

    assert_true(fd >= 0 && write(fd, content, strlen(content)) == (ssize_t)strlen(content));
    assert_int_equal(ftruncate(fd, 4096), 0);
    map = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
    assert_ptr_not_equal(map, MAP_FAILED);
    close(fd);
    return map;
}

static const char *line_at(pid_t pid, const void *map, int at)
{
    static struct rank_snapshot rank;
    struct job_snapshot job = { .ranks = 1, .rank = &rank };

    rank = (struct rank_snapshot){ .process = { .pid = pid, .state = 'R' } };
    rank.group[0].id = 1;
    rank.group[0].now.phase = CONTROL_IN;
    rank.group[0].caller = (uint64_t)(uintptr_t)map + (uint64_t)at + 1;
    source_lines(&job);
    return rank.group[0].where;
}

static void a_line_is_that_of_the_file_that_the_rank_executes(void **state)
{
    char folder[] = "/tmp/ct_lines_XXXXXX", path[200], words[2000];
    const char *const before = getenv("PATH");
    pid_t pid;
    void *map;

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(words, sizeof words, "%s:%s", folder, before);
    setenv("PATH", words, 1);
    snprintf(path, sizeof path, "%s/lib", folder);
    tool_says(folder, "#!/bin/sh\nexit 1\n");
    map = map_file(path, "1");
    assert_true((pid = fork()) >= 0);
    if (pid == 0)
        for (;;)
            pause();
    assert_string_equal(line_at(pid, map, 8), "lib+0x8"); /* as if that rank had just ended */
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    tool_says(folder, "#!/bin/sh\nn=$(tr -d '\\0' <$3); shift 3\n"
                      "for address; do printf 'f\\n/a.c:%s\\n' $n; done\n");
    assert_string_equal(line_at(getpid(), map, 8), "a.c:1 (f)");
    for (int at = 9; at < 209; at++) /* more places than are kept */
        assert_string_equal(line_at(getpid(), map, at), "a.c:1 (f)");
    unlink(path);
    munmap(map, 4096);
    map = map_file(path, "2");
    assert_string_equal(line_at(getpid(), map, 208), "a.c:2 (f)");
    munmap(map, 4096);
    unlink(path);
    snprintf(path, sizeof path, "%s/eu-addr2line", folder);
    unlink(path);
    rmdir(folder);
    snprintf(words, sizeof words, "%s", strchr(getenv("PATH"), ':') + 1);
    setenv("PATH", words, 1);
}

static void *run_long(void *script)
{
    char *argv[] = { "sh", "-c", script, NULL };
    struct text out = { 0 };

    tool_run(argv, 1000, &out);
    return NULL;
}

static void a_tool_ends_with_the_process_that_runs_it(void **state)
{
    const int64_t end = clock_ms() + 20000;
    int pipes[2], tool;
    char script[100], said[100] = "";
    pid_t pid;

    (void)state;
    assert_int_equal(pipe(pipes), 0);
    snprintf(script, sizeof script,
             "echo $(grep SigBlk /proc/self/status) $$ >&%d; exec sleep 1000", pipes[1]);
    assert_true((pid = fork()) >= 0);
    if (pid == 0) {
        if (thread_start(NULL, run_long, script) != 0)
            _exit(1);
        for (;;)
            pause();
    }
    assert_true(read(pipes[0], said, sizeof said - 1) > 0);
    kill(pid, SIGTERM);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(sscanf(said, "SigBlk: 0000000000000000 %d", &tool), 1);
    for (char letter = 'R'; letter && letter != 'Z'; letter = process_read(tool).state) {
        assert_true(clock_ms() < end);
        usleep(1000);
    }
    close(pipes[0]);
    close(pipes[1]);
}

/* ---- --stall --------------------------------------------------------------------- */

static void count_it(void *said, const struct verdict_list *list)
{
    assert_true(list->count > 0);
    ++*(int *)said;
}

static void check_now(struct stall *stall)
{
    event_active(&stall->timer, EV_TIMEOUT, 0);
    event_base_loop(stall->job->base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
}

static void a_stall_is_reported_when_it_is_new_and_after_ten_times_as_long(void **state)
{
    const struct options options = { .stall = 3600 };
    const struct job_observer counter = { .stalled = count_it };
    const struct job_observer *const table[] = { &counter };
    struct page page = ready_page(2, 2);
    struct record waits = recorded(&page, 0), other = recorded(&page, 1);
    struct stall stall;
    int said = 0;
    struct job job = { .options = &options,
                       .base = event_base_new(),
                       .control = { .head = page.head, .memory = page.fd },
                       .watch = { .rows = table, .states = (void *[]){ &said }, .count = 1 },
                       .state = RUNNING };

    (void)state;
    evtimer_assign(&job.grace, job.base, NULL, NULL);
    stall_observer.job_began(&stall, &job);
    stall_observer.round_began(&stall, &job);
    record_begin(&waits, &barrier, 0, NULL, clock_coarse_ns());
    check_now(&stall);
    assert_int_equal(said, 0); /* it came just now */
    stall.seconds = 1;
    waits.line->now.begun_ns -= 2000000000;
    check_now(&stall);
    check_now(&stall);
    assert_int_equal(said, 1);
    waits.line->now.seq++; /* and the same at the next step */
    check_now(&stall);
    assert_int_equal(said, 1);
    waits.line->now.begun_ns = 0; /* since the machine was started: far more than ten times */
    check_now(&stall);
    check_now(&stall);
    assert_int_equal(said, 2);
    control_rank_at(page.head, 1)->state = CONTROL_LEFT;
    record_close(&other);
    check_now(&stall);
    assert_int_equal(said, 3);
    record_end(&waits, 6, CONTROL_IDLE);
    check_now(&stall);
    assert_int_equal(said, 3);
    stall_observer.round_began(&stall, &job); /* another round */
    waits.line->now.phase = CONTROL_IN;
    check_now(&stall);
    assert_int_equal(said, 4);
    job.state = STOPPING;
    waits.line->now.begun_ns--;
    check_now(&stall);
    assert_int_equal(said, 4);
    assert_false(event_pending(&stall.timer, EV_TIMEOUT, NULL));
    event_base_free(job.base);
    free_page(&page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stall_is_reported_when_it_is_new_and_after_ten_times_as_long),
        cmocka_unit_test(what_ranks_record_is_read),
        cmocka_unit_test(a_noted_place_is_shown_with_its_call_and_with_no_other),
        cmocka_unit_test(an_entry_that_was_left_keeps_the_id_of_its_group),
        cmocka_unit_test(an_entry_that_is_half_written_is_taken_from_the_ring),
        cmocka_unit_test(an_entry_is_never_a_mixture_of_two_calls),
        cmocka_unit_test(text_of_a_page_has_no_control_characters),
        cmocka_unit_test(what_is_no_page_is_refused),
        cmocka_unit_test(a_page_of_random_bytes_gives_verdicts_that_can_be_printed),
        cmocka_unit_test(ranks_of_one_launcher_have_one_key),
        cmocka_unit_test(pages_with_one_key_become_a_job),
        cmocka_unit_test(a_process_shows_what_it_does),
        cmocka_unit_test(the_work_of_a_process_counts_that_of_its_descendants_and_of_ended_ones),
        cmocka_unit_test(an_address_is_found_in_its_file),
        cmocka_unit_test(the_output_of_tools_becomes_places),
        cmocka_unit_test(a_new_place_is_looked_up_while_the_caller_goes_on),
        cmocka_unit_test(a_line_is_that_of_the_file_that_the_rank_executes),
        cmocka_unit_test(a_tool_ends_with_the_process_that_runs_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
