/* SPDX-License-Identifier: Apache-2.0 */
/* test_pmi.c - requests of PMI and their replies; what nodes exchange; which MPI a file names. */
#include "tests/harness.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/nodes/node_messages.h"
#include "launcher/pmi/mpi_library.h"
#include "launcher/pmi/pmi_protocol.h"

static struct pmi_job job;
static struct pmi_client client;
static struct pmi_abort last_abort;

static int begin(void **state)
{
    (void)state;
    job = (struct pmi_job){
        .world = 4, .is_alone = 1, .name = "ct_g", .mapping = "(vector,(0,1,4))"
    };
    client = (struct pmi_client){ .state = PMI_SILENT };
    return pmi_space_open(&job.space, 1) == 0 && pmi_space_open(&job.names, 0) == 0 ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    pmi_space_close(&job.space);
    pmi_space_close(&job.names);
    return 0;
}

static void answers(const char *line, const char *expected)
{
    struct text reply = { 0 };

    assert_int_equal(pmi_request(&job, &client, line, strlen(line), &reply, &last_abort),
                     PMI_ANSWERED);
    text_add(&reply, "", 1);
    assert_string_equal(reply.data, expected);
    free(reply.data);
}

static void is_outcome(const char *line, enum pmi_outcome expected)
{
    struct text reply = { 0 };

    assert_int_equal(pmi_request(&job, &client, line, strlen(line), &reply, &last_abort), expected);
    assert_int_equal(reply.used, 0);
}

static void a_key_that_was_put_is_got(void **state)
{
    (void)state;
    answers("cmd=put kvsname=ct_g key=a value=x=y z", "cmd=put_result rc=0 msg=success\n");
    answers("cmd=get kvsname=ct_g key=a", "cmd=get_result rc=0 msg=success value=x=y z\n");
    answers("cmd=put kvsname=ct_g key=a value=", "cmd=put_result rc=0 msg=success\n");
    answers("cmd=get kvsname=ct_g key=a", "cmd=get_result rc=0 msg=success value=\n");
    answers("cmd=get kvsname=ct_g key=b", "cmd=get_result rc=-1 msg=key_not_found value=unknown\n");
    answers("cmd=get kvsname=ct_g key=PMI_process_mapping",
            "cmd=get_result rc=0 msg=success value=(vector,(0,1,4))\n");
}

static void the_states_of_a_rank_are_known(void **state)
{
    (void)state;
    answers("cmd=init pmi_version=2 pmi_subversion=0",
            "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1\n");
    assert_int_equal(client.state, PMI_SILENT);
    answers("cmd=init pmi_version=1 pmi_subversion=2",
            "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n");
    assert_int_equal(client.state, PMI_INITIALIZED);
    is_outcome("cmd=barrier_in", PMI_WAITS);
    answers("cmd=finalize", "cmd=finalize_ack rc=0\n");
    assert_int_equal(client.state, PMI_FINALIZED);
}

static void an_abort_has_a_code_and_words(void **state)
{
    (void)state;
    is_outcome("cmd=abort exitcode=7 message=the ocean\033[2J is dry", PMI_ABORTS);
    assert_int_equal(last_abort.code, 7);
    assert_string_equal(last_abort.message, "the ocean?[2J is dry");
    is_outcome("cmd=abort", PMI_ABORTS);
    assert_int_equal(last_abort.code, 1);
    assert_string_equal(last_abort.message, "");
    is_outcome("cmd=abort exitcode=99999999999", PMI_ABORTS);
    assert_int_equal(last_abort.code, 1);
}

static void what_is_no_request_is_wrong(void **state)
{
    static const char *const wrong[] = {
        "",          "cmd=",           "cmd=gets",
        "put",       "cmd=put",        "cmd=put key=a",
        "cmd=get",   "xcmd=get_maxes", "cmd=publish_name service=a",
        "mcmd=fork", "cmd=lookup_name"
    };

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        is_outcome(wrong[i], PMI_WRONG);
}

/* "cmd=..." as an argument of the program is none of a spawn's words. */
static void a_spawn_is_refused_behind_its_last_block(void **state)
{
    static const char *const lines[] = { "mcmd=spawn",         "nprocs=2",      "execname=a",
                                         "totspawns=2",        "spawnssofar=1", "arg1=cmd=abort",
                                         "arg2=x totspawns=1", "endcmd",        "mcmd=spawn",
                                         "totspawns=2",        "spawnssofar=2" };

    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        is_outcome(lines[i], PMI_ANSWERED);
    answers("endcmd", "cmd=spawn_result rc=-1 msg=ctrun_spawns_no_processes errcodes=-1\n");
    answers("cmd=get_appnum", "cmd=appnum appnum=0 rc=0\n");
}

static void names_of_several_nodes_are_refused(void **state)
{
    (void)state;
    job.is_alone = 0;
    answers("cmd=publish_name service=a port=b",
            "cmd=publish_result info=fail rc=-1 "
            "msg=ctrun_publishes_names_in_jobs_of_one_node_only\n");
}

/* ---- Between nodes ------------------------------------------------------------- */

static struct pmi_space other;
static int pieces;

static void take_piece(void *arg, const char *data, size_t bytes)
{
    const char *puts = fence_puts_read(data, bytes, "0123");

    (void)arg;
    pieces++;
    assert_true(bytes <= NODE_PIECE);
    assert_non_null(puts);
    assert_null(fence_puts_read(data, bytes, "012"));
    assert_int_equal(pmi_space_merge(&other, puts, bytes - (size_t)(puts - data)), 0);
}

static void another_node_gets_all_that_was_put_in_pieces(void **state)
{
    char line[2048], value[1001];

    (void)state;
    assert_int_equal(pmi_space_open(&other, 0), 0);
    memset(value, 'v', 1000);
    value[1000] = '\0';
    for (int i = 0; i < 100; i++) {
        snprintf(line, sizeof line, "cmd=put key=k%d value=%s%d", i, value, i);
        answers(line, "cmd=put_result rc=0 msg=success\n");
    }
    pieces = 0;
    node_pieces("0123", job.space.fresh.data, job.space.fresh.used, take_piece, NULL);
    assert_int_equal(pieces, 7); /* 16 puts fit into one */
    for (int i = 0; i < 100; i++) {
        const int size = snprintf(line, sizeof line, "k%d", i);
        const struct bytes got = pmi_space_get(&other, (struct bytes){ line, (size_t)size });

        assert_int_equal(got.size, snprintf(line, sizeof line, "%s%d", value, i));
        assert_memory_equal(got.data, line, got.size);
    }
    pmi_space_close(&other);
}

static void what_is_no_put_is_not_merged(void **state)
{
    static const char *const wrong[] = { "a", "a b", "\n", " b\n", "a b\nc\n", "ab\n" };

    (void)state;
    assert_int_equal(pmi_space_merge(&job.space, "a b\nc \n", 7), 0);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(pmi_space_merge(&job.space, wrong[i], strlen(wrong[i])), -1);
}

/* ---- Which MPI ----------------------------------------------------------------- */

/* The linked programs themselves: tests/e2e/clusters/pmi.sh. */
static void a_file_that_is_no_program_names_no_mpi(void **state)
{
    char path[] = "/tmp/ct-test-XXXXXX", bytes[4096];
    const int fd = mkstemp(path), self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

    (void)state;
    assert_true(fd >= 0 && self >= 0);
    assert_int_equal(mpi_library_of("/proc/self/exe"), MPI_LIBRARY_NONE);
    assert_int_equal(mpi_library_of("/"), MPI_LIBRARY_NONE);
    assert_int_equal(mpi_library_of("/nowhere"), MPI_LIBRARY_NONE);
    assert_int_equal(read(self, bytes, sizeof bytes), sizeof bytes);
    for (size_t size = 0; size <= sizeof bytes; size += 16) { /* cut anywhere */
        assert_int_equal(pwrite(fd, bytes, size, 0), size);
        assert_int_equal(mpi_library_of(path), MPI_LIBRARY_NONE);
    }
    close(fd);
    close(self);
    unlink(path);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_key_that_was_put_is_got, begin, end),
        cmocka_unit_test_setup_teardown(the_states_of_a_rank_are_known, begin, end),
        cmocka_unit_test_setup_teardown(an_abort_has_a_code_and_words, begin, end),
        cmocka_unit_test_setup_teardown(what_is_no_request_is_wrong, begin, end),
        cmocka_unit_test_setup_teardown(a_spawn_is_refused_behind_its_last_block, begin, end),
        cmocka_unit_test_setup_teardown(names_of_several_nodes_are_refused, begin, end),
        cmocka_unit_test_setup_teardown(another_node_gets_all_that_was_put_in_pieces, begin, end),
        cmocka_unit_test_setup_teardown(what_is_no_put_is_not_merged, begin, end),
        cmocka_unit_test(a_file_that_is_no_program_names_no_mpi),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
