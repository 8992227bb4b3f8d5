/* SPDX-License-Identifier: Apache-2.0 */
/* test_control_page.c - a rank and its control page, also one that another process has
 * overwritten. */
#include "tests/harness.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/monitor/control_page.h"
#include "runtime/monitor/flight_recorder.h"

/* ---- A page of ctrun's -------------------------------------------------------- */

/* The memory stays as long as the process. */
static struct control_rank *hand_down_page(int event, int *memory)
{
    const size_t bytes = control_bytes(1, 1);
    const int fd = memfd_create(CONTROL_NAME, MFD_CLOEXEC);
    struct control_head *head = MAP_FAILED;
    char words[64];

    *memory = fd;
    if (fd >= 0 && ftruncate(fd, (off_t)bytes) == 0)
        head = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (!EXPECT(head != MAP_FAILED))
        _exit(1);
    head->magic = CONTROL_MAGIC;
    head->version = CONTROL_VERSION;
    head->local = head->world = head->nodes = 1;
    snprintf(words, sizeof words, "%d:%d:0", fd, event);
    setenv("CT_CONTROL", words, 1);
    return control_rank_at(head, 0);
}

/* ---- Init --------------------------------------------------------------------- */

static void survives(ct_group *unused, void *arg)
{
    int memory;
    const struct control_rank *page = hand_down_page(-1, &memory);
    ct_init_options options = CT_INIT_OPTIONS_INIT;

    (void)unused;
    (void)arg;
    options.timeout_ms = 300;
    setenv("WORLD_SIZE", "2", 1);
    EXPECT_STATUS(ct_init_process_group(&options), CT_ERR_TIMEOUT);
    EXPECT(page->pid == getpid() && page->state == CONTROL_OUTSIDE);
    setenv("WORLD_SIZE", "1", 1);
    EXPECT_OK(ct_init_process_group(NULL));
    EXPECT(page->state == CONTROL_READY);
    EXPECT_OK(ct_destroy_process_group(CT_WORLD));
    setenv("WORLD_SIZE", "2", 1);
    EXPECT_STATUS(ct_init_process_group(&options), CT_ERR_TIMEOUT);
    EXPECT(page->state == CONTROL_LEFT);
    close(memory);
}

static void an_init_that_failed_is_over_on_the_page_too(void **state)
{
    (void)state;
    run_programs(1, survives, NULL);
}

/* ---- One program after another ------------------------------------------------ */

/* An exec() keeps the pid; what was there before is of the program that called it. */
static void goes_on(ct_group *unused, void *arg)
{
    int memory;
    struct control_rank *page = hand_down_page(-1, &memory);
    struct control control;

    (void)unused;
    (void)arg;
    page->pid = getpid();
    page->state = CONTROL_READY;
    strcpy(page->waiting_for, "key 7");
    page->waiting_version = 7;
    for (int i = 0; i < CONTROL_GROUPS; i++)
        page->groups[i].id = page->groups[i].was = 77;
    EXPECT(control_take(&control));
    EXPECT(page->pid == getpid() && page->state == CONTROL_STARTED);
    EXPECT(page->waiting_for[0] == '\0' && page->waiting_version == 0);
    for (int i = 0; i < CONTROL_GROUPS; i++)
        EXPECT(page->groups[i].id == 0 && page->groups[i].was == 0);
    control_close(&control);
    page->groups[3].id = 5; /* this program's own */
    EXPECT(control_take(&control));
    EXPECT(page->groups[3].id == 5);
    control_close(&control);
    close(memory);
}

static void a_program_that_makes_another_of_itself_leaves_it_an_empty_page(void **state)
{
    (void)state;
    run_programs(1, goes_on, NULL);
}

/* ---- What a wrapper does ------------------------------------------------------ */

/* It closed the eventfd, and opened something of its own under that number. */
static void told_of(ct_group *unused, void *arg)
{
    const int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    const int file = memfd_create("a user's", MFD_CLOEXEC);
    int memory[3];
    struct control control;

    (void)unused;
    (void)arg;
    hand_down_page(event, &memory[0]);
    EXPECT(control_take(&control) && control.event_fd == event);
    control_close(&control);
    hand_down_page(file, &memory[1]);
    EXPECT(control_take(&control) && control.event_fd == -1);
    control_close(&control);
    close(event);
    hand_down_page(event, &memory[2]);
    EXPECT(control_take(&control) && control.event_fd == -1);
    control_close(&control);
    close(file);
    for (int i = 0; i < 3; i++)
        close(memory[i]);
}

static void what_is_no_eventfd_is_not_written(void **state)
{
    (void)state;
    run_programs(1, told_of, NULL);
}

/* ---- What a neighbour does ---------------------------------------------------- */

/* Every worker can write to the page: a version may be odd although no thread is writing. */
static void a_scribbled_version_costs_a_line_and_hangs_nobody(void **state)
{
    static const struct signature barrier = { .seq = 5, .operation = OPERATION_BARRIER };
    static struct control_rank page;
    struct control control = { .own = &page };
    struct record record;

    (void)state;
    record_open(&record, &control, 77, "world", 0, 1);
    alarm(60);
    for (int i = 0; i < 2; i++) {
        const uint32_t odd = i == 0 ? 7 : UINT32_MAX;

        record.line->version = odd;
        record_begin(&record, &barrier, 0, NULL, clock_coarse_ns());
        assert_int_equal(record.line->now.seq, 5);
        assert_int_equal(record.line->now.phase, CONTROL_IN);
        assert_int_equal(record.line->version % 2, 0);
        record.line->version = odd;
        record_end(&record, 5, CONTROL_IDLE);
        assert_int_equal(record.line->now.phase, CONTROL_IDLE);
        assert_int_equal(record.line->version % 2, 0);
    }
    alarm(0);
}

/* A reader that copies a line while another group gets it sees that the version has changed. */
static void a_line_of_another_group_has_another_version(void **state)
{
    static struct control_rank page;
    struct control control = { .own = &page };
    struct record record;
    uint32_t before = 0;

    (void)state;
    for (uint64_t id = 1; id <= 3; id++) {
        record_open(&record, &control, id, "world", 0, 1);
        assert_ptr_equal(record.line, &page.groups[0]);
        assert_int_equal(record.line->version % 2, 0);
        assert_true(record.line->version > before);
        before = record.line->version;
        page.groups[0].version += id == 1; /* the program died during a write */
        record_close(&record);
    }
}

/* ---- Several threads ---------------------------------------------------------- */

static void *waits(void *arg)
{
    struct control_rank *page = arg;
    struct control control = { .own = page };

    for (int i = 0; i < 20000; i++)
        control_waiting(&control, "%090d", i);
    return NULL;
}

static void threads_that_wait_at_once_write_one_after_the_other(void **state)
{
    static struct control_rank page;
    pthread_t threads[3];

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, waits, &page), 0);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(page.waiting_version % 2, 0);
    assert_string_equal(page.waiting_for + 85, "19999");
}

static void words_that_were_left_half_written_are_written_over(void **state)
{
    static struct control_rank page = { .waiting_version = 7 };
    struct control control = { .own = &page };

    (void)state;
    control_waiting(&control, "key %d", 7);
    assert_string_equal(page.waiting_for, "key 7");
    assert_int_equal(page.waiting_version % 2, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_init_that_failed_is_over_on_the_page_too),
        cmocka_unit_test(a_program_that_makes_another_of_itself_leaves_it_an_empty_page),
        cmocka_unit_test(what_is_no_eventfd_is_not_written),
        cmocka_unit_test(a_scribbled_version_costs_a_line_and_hangs_nobody),
        cmocka_unit_test(a_line_of_another_group_has_another_version),
        cmocka_unit_test(threads_that_wait_at_once_write_one_after_the_other),
        cmocka_unit_test(words_that_were_left_half_written_are_written_over),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
