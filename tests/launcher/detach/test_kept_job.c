/* SPDX-License-Identifier: Apache-2.0 */
/* test_kept_job.c - the kept output of a job that ctrun --detach started: its bound, and readers
 * that are behind. */
#include "tests/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/detach/kept_job.h"

enum { BOUND = 8192, LINE = 16 };

struct fixture {
    struct kept_job job;
    struct kept_output writer;
};

static void begin(struct fixture *f)
{
    strcpy(f->job.path, "/tmp/test_kept_job_XXXXXX");
    assert_non_null(mkdtemp(f->job.path));
    assert_int_equal(kept_output_create(&f->writer, f->job.path, BOUND), 0);
}

static void end(struct fixture *f)
{
    kept_output_close(&f->writer);
    kept_job_remove(f->job.path);
    assert_int_equal(access(f->job.path, F_OK), -1);
}

/* Writes the lines `from` to `to` - 1, of LINE bytes each. */
static void add_lines(struct fixture *f, int from, int to)
{
    char line[32];

    for (int i = from; i < to; i++) {
        snprintf(line, sizeof line, "line %010d\n", i);
        assert_int_equal(kept_output_add(&f->writer, line, strlen(line)), 0);
    }
}

static void add_text(struct fixture *f, const char *text)
{
    assert_int_equal(kept_output_add(&f->writer, text, strlen(text)), 0);
}

/* Reads whole lines that follow each other.  Returns the number of the line after the last. */
static int read_lines(struct kept_output *reader, int next)
{
    char bytes[1000 * LINE];
    size_t got;

    while ((got = kept_output_read(reader, bytes, sizeof bytes)) > 0) {
        assert_int_equal(got % LINE, 0);
        next += (int)(reader->lost / LINE);
        reader->lost = 0;
        for (size_t at = 0; at < got; at += LINE)
            assert_int_equal(atoi(bytes + at + 5), next++);
    }
    return next;
}

static void a_reader_gets_each_line_once(void **state)
{
    struct fixture f;
    struct kept_output reader;
    int next = 0;

    (void)state;
    begin(&f);
    assert_int_equal(kept_output_open(&reader, &f.job, -1), 0);
    assert_int_equal(read_lines(&reader, 0), 0);
    for (int i = 0; i < 5000; i++) {
        add_lines(&f, i, i + 1);
        if (i % 7 == 0)
            assert_int_equal(next = read_lines(&reader, next), i + 1);
    }
    assert_int_equal(read_lines(&reader, next), 5000);
    assert_int_equal(reader.lost, 0);
    kept_output_close(&reader);
    end(&f);
}

static void a_reader_that_is_behind_learns_how_many_bytes_it_lost(void **state)
{
    struct fixture f;
    struct kept_output reader;
    char bytes[LINE];

    (void)state;
    begin(&f);
    add_lines(&f, 0, 10);
    assert_int_equal(kept_output_open(&reader, &f.job, -1), 0);
    assert_int_equal(read_lines(&reader, 0), 10);
    add_lines(&f, 10, 5000);
    assert_int_equal(kept_output_read(&reader, bytes, LINE), LINE);
    assert_int_equal(reader.lost % LINE, 0);
    assert_true(reader.lost >= (5000 - 10 - BOUND / LINE) * LINE);
    assert_true(reader.lost <= (5000 - 10 - BOUND / LINE + 2) * LINE);
    kept_output_close(&reader);
    end(&f);
}

static void the_bound_holds_for_output_without_newlines(void **state)
{
    struct fixture f;
    struct kept_output reader;
    struct stat found;
    char path[PATH_MAX + 8], bytes[2 * BOUND];

    (void)state;
    begin(&f);
    for (int i = 0; i < 10000; i++)
        add_text(&f, "0123456789\r");
    snprintf(path, sizeof path, "%s/output", f.job.path);
    assert_int_equal(stat(path, &found), 0);
    assert_true(found.st_size <= BOUND + 4096);
    assert_int_equal(kept_output_open(&reader, &f.job, -1), 0);
    assert_int_equal(kept_output_read(&reader, bytes, sizeof bytes), BOUND);
    assert_memory_equal(bytes + BOUND - 11, "0123456789\r", 11);
    kept_output_close(&reader);
    end(&f);
}

static void a_reader_begins_with_the_last_lines(void **state)
{
    static const struct {
        int lines, first;
    } cases[] = {
        { 0, 1000 }, { 1, 999 }, { 3, 997 }, { 300, 700 }, { BOUND / LINE - 1, 1001 - BOUND / LINE }
    };
    struct fixture f;
    struct kept_output reader;

    (void)state;
    begin(&f);
    add_lines(&f, 0, 1000);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(kept_output_open(&reader, &f.job, cases[i].lines), 0);
        assert_int_equal(read_lines(&reader, cases[i].first), 1000);
        kept_output_close(&reader);
    }
    add_text(&f, "unfinished");
    assert_int_equal(kept_output_open(&reader, &f.job, 1), 0);
    assert_int_equal(reader.at, 1000 * LINE);
    kept_output_close(&reader);
    end(&f);
}

static void fewer_lines_than_wanted_are_all_shown(void **state)
{
    struct fixture f;
    struct kept_output reader;

    (void)state;
    begin(&f);
    assert_int_equal(kept_output_open(&reader, &f.job, 20), 0);
    add_lines(&f, 0, 3);
    assert_int_equal(read_lines(&reader, 0), 3);
    kept_output_close(&reader);
    assert_int_equal(kept_output_open(&reader, &f.job, 20), 0);
    assert_int_equal(read_lines(&reader, 0), 3);
    kept_output_close(&reader);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reader_gets_each_line_once),
        cmocka_unit_test(a_reader_that_is_behind_learns_how_many_bytes_it_lost),
        cmocka_unit_test(the_bound_holds_for_output_without_newlines),
        cmocka_unit_test(a_reader_begins_with_the_last_lines),
        cmocka_unit_test(fewer_lines_than_wanted_are_all_shown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
