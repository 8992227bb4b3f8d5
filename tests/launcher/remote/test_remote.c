/* SPDX-License-Identifier: Apache-2.0 */
/* test_remote.c - what ctrun and the ctruns on the hosts of a job say to each other. */
#include "tests/harness.h"

#include <event2/buffer.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/remote/branch.h"

static struct host_slots three[] = { { "a", 4 }, { "root@b", 0 }, { "fd00::1", 1 } };
static char *words[] = { "--tee=3", "--", "./app", "", NULL };
static char *variables[] = { "A=1", "B=", NULL };
static struct start sample = { .nodes = 7,
                               .first = 2,
                               .terminals = 3,
                               .at_once = 1,
                               .head = "a",
                               .run_id = "id",
                               .folder = "/tmp/x y",
                               .path = "/opt/ctrun's/ctrun",
                               .shell = "ssh -p 2",
                               .hosts = { .hosts = three, .count = 3 },
                               .words = words,
                               .variables = variables };

static void a_host_gets_its_part_of_the_job(void **state)
{
    struct start got;
    size_t size;
    char *data = start_write(&sample, 3, 2, &size);

    (void)state;
    assert_non_null(data);
    assert_int_equal(start_read(&got, data, size), 0);
    assert_int_equal(got.nodes, 7);
    assert_int_equal(got.first, 3);
    assert_int_equal(got.at_once, 1);
    assert_string_equal(start_program(&got), "ctrun");
    assert_int_equal(got.hosts.count, 2);
    assert_string_equal(got.hosts.hosts[0].name, "root@b");
    assert_int_equal(got.hosts.hosts[1].slots, 1);
    assert_string_equal(got.folder, "/tmp/x y");
    assert_string_equal(got.words[2], "./app");
    assert_string_equal(got.words[3], "");
    assert_null(got.words[4]);
    assert_string_equal(got.variables[1], "B=");
    start_free(&got);
    free(data);
}

static void a_part_that_is_cut_anywhere_is_refused(void **state)
{
    struct start got;
    size_t size;
    char *data = start_write(&sample, 2, 3, &size);

    (void)state;
    for (size_t cut = 0; cut < size; cut++)
        assert_int_equal(start_read(&got, data, cut), -1);
    free(data);
}

static void what_is_no_frame_is_seen_at_its_first_byte(void **state)
{
    struct evbuffer *buffer = evbuffer_new();
    struct relay_frame frame;

    (void)state;
    assert_int_equal(frame_peek(buffer, &frame), 0);
    evbuffer_add(buffer, "C", 1);
    assert_int_equal(frame_peek(buffer, &frame), 0); /* a frame may begin so */
    evbuffer_add(buffer, "annot change folder", 19);
    assert_int_equal(frame_peek(buffer, &frame), -1);
    evbuffer_free(buffer);
}

/* As a shell on the other host would split it. */
static void only_the_path_of_ctrun_stands_in_the_command(void **state)
{
    struct why why;
    char **command = branch_command(&sample, "root@b", &why);

    (void)state;
    assert_non_null(command);
    assert_string_equal(command[0], "ssh");
    assert_string_equal(command[1], "-p");
    assert_string_equal(command[13], "root@b");
    assert_string_equal(command[14], "exec sh -c 'test -x \"$0\" && exec \"$0\" --hosts-node; exec "
                                     "\"${0##*/}\" --hosts-node' '/opt/ctrun'\\''s/ctrun'");
    assert_null(command[15]);
    free(command);
    sample.shell = "/lsf/blaunch -z";
    command = branch_command(&sample, "b", &why);
    assert_non_null(command);
    assert_string_equal(command[2], "b");
    assert_string_equal(command[3], "sh");
    assert_string_equal(command[6], "/opt/ctrun's/ctrun");
    free(command);
    sample.shell = "srun --nodelist";
    command = branch_command(&sample, "b", &why);
    assert_non_null(command);
    assert_string_equal(command[2], "b");
    assert_string_equal(command[3], "sh");
    free(command);
    sample.shell = "ssh 'x";
    assert_null(branch_command(&sample, "b", &why));
    assert_string_equal(why.text, "--ssh=ssh 'x: the ' is not closed");
    sample.shell = "ssh -p 2";
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_host_gets_its_part_of_the_job),
        cmocka_unit_test(a_part_that_is_cut_anywhere_is_refused),
        cmocka_unit_test(what_is_no_frame_is_seen_at_its_first_byte),
        cmocka_unit_test(only_the_path_of_ctrun_stands_in_the_command),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
