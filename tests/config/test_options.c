/* SPDX-License-Identifier: Apache-2.0 */
/* test_options.c - words into options: argparse's habits, sources, sentences. */
#include "tests/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/rendezvous_options.h"

static struct options options;
static char sample[4096]; /* config/ctrun.ini */
static char error[1024];

/* The words of one command line, split at blanks. */
static enum outcome read_line(const char *line)
{
    static char text[512], *argv[32];
    int argc = 0;

    options_free(&options);
    snprintf(text, sizeof text, "ctrun %s", line);
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
        argv[argc++] = word;
    argv[argc] = NULL;
    return options_read(&options, argv, error, sizeof error);
}

static void accepts(const char *line)
{
    if (read_line(line) != OPTIONS_RUN)
        fail_msg("%s: %s", line, error);
}

static void refuses(const char *line, const char *words)
{
    assert_int_equal(read_line(line), OPTIONS_WRONG);
    if (!strstr(error, words))
        fail_msg("%s: '%s' does not say '%s'", line, error, words);
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void both_spellings_and_both_ways_to_give_a_value(void **state)
{
    (void)state;
    accepts("--nproc-per-node=3 x");
    assert_int_equal(options.nproc.number, 3);
    accepts("--nproc_per_node 4 x");
    assert_int_equal(options.nproc.number, 4);
    accepts("--grace=5 x");
    assert_int_equal(options.shutdown_timeout, 5);
    refuses("--nproc_per-node 2 x", "unrecognized arguments: --nproc_per-node");
}

static void an_unambiguous_prefix_is_enough(void **state)
{
    (void)state;
    accepts("--max-re=3 x");
    assert_int_equal(options.max_restarts.most, 3);
    refuses("--sh 2 x", "ambiguous option: --sh could match --shutdown-timeout --show");
}

static void two_spellings_of_one_option_are_not_ambiguous(void **state)
{
    (void)state;
    accepts("--nproc=2 x");
    assert_int_equal(options.nproc.number, 2);
    for (int i = 0; i < OPTIONS; i++)
        for (int length = 1; option_row(i)->name[length]; length++) {
            const char *listed;
            char line[128];

            snprintf(line, sizeof line, "--%.*s", length, option_row(i)->name);
            listed = read_line(line) == OPTIONS_WRONG ? strstr(error, "could match ") : NULL;
            if (listed && !strstr(listed + strlen("could match --"), " --"))
                fail_msg("%s: %s", line, error);
        }
}

static void an_option_that_took_the_program_for_its_value_says_so(void **state)
{
    (void)state;
    write_file("a", "#!/bin/sh\n");
    chmod("a", 0700);
    write_file("train.py", "");
    write_file("hosts", "");
    refuses("--trace ./a", "--trace took './a' as its FILE, so no program is left; write "
                           "--trace=FILE ./a");
    refuses("--nproc train.py", "--nproc took 'train.py' as its N, so no program is left; write "
                                "--nproc=N train.py");
    refuses("-t ./a", "-t took './a' as its MAP, so no program is left; write -t=MAP ./a");
    refuses("--hostfile hosts", "--hostfile took 'hosts' as its FILE, so no program is left: ctrun "
                                "[options] program [arguments]");
    refuses("--nproc-per-node 4",
            "--nproc-per-node took '4' as its N, so no program is left: ctrun");
    refuses("--nproc-per-node 4 --standalone", "no program to run is given");
    accepts("--trace=FILE ./a");
    accepts("-t=3 ./a");
    remove("a");
    remove("train.py");
    remove("hosts");
}

static void the_last_one_wins(void **state)
{
    (void)state;
    accepts("--nproc-per-node 3 --nproc_per_node 2 x");
    assert_int_equal(options.nproc.number, 2);
}

static int is_allowed(const char *address)
{
    struct network one;

    assert_int_equal(network_parse(address, &one), 0);
    for (int i = 0; i < options.store_allow.count; i++)
        if (network_has(&options.store_allow.list[i], one.address))
            return 1;
    return 0;
}

static void networks_are_what_their_bits_say(void **state)
{
    (void)state;
    accepts("--store-allow 10.1.0.0/20,192.168.0.7,fd00::/9 x");
    assert_int_equal(options.store_allow.count, 3);
    assert_true(is_allowed("10.1.0.0"));
    assert_true(is_allowed("10.1.15.255"));
    assert_false(is_allowed("10.1.16.0"));
    assert_true(is_allowed("192.168.0.7"));
    assert_true(is_allowed("::ffff:192.168.0.7"));
    assert_false(is_allowed("192.168.0.8"));
    assert_true(is_allowed("fd7f::1"));
    assert_false(is_allowed("fd80::1"));
    accepts("--store-allow any x");
    assert_true(is_allowed("::1"));
    assert_true(is_allowed("8.8.8.8"));
    accepts("x");
    assert_false(is_allowed("127.0.0.1"));
}

static void sizes_have_units(void **state)
{
    (void)state;
    accepts("--store-memory=2G --store-request=300 x");
    assert_int_equal(options.store_memory, (size_t)2 << 30);
    assert_int_equal(options.store_request, 300);
    accepts("--store-memory=5M --store-request=64K x");
    assert_int_equal(options.store_memory, 5 << 20);
    assert_int_equal(options.store_request, 64 << 10);
}

static void all_after_the_program_is_the_programs(void **state)
{
    (void)state;
    accepts("--no-python echo --help --nproc-per-node 5");
    assert_string_equal(options.program[0], "echo");
    assert_string_equal(options.program[1], "--help");
    assert_int_equal(options.nproc.number, 1);
}

static void one_pair_of_dashes_beside_the_program_is_dropped(void **state)
{
    (void)state;
    accepts("echo -- a -- b");
    assert_string_equal(options.program[1], "a");
    assert_string_equal(options.program[2], "--");
    assert_string_equal(options.program[3], "b");
    assert_null(options.program[4]);
    accepts("-- echo -- a");
    assert_string_equal(options.program[1], "--");
}

static void integers_are_pythons(void **state)
{
    int value = 0;

    (void)state;
    assert_int_equal(value_int(" 0_2 ", &value), 0);
    assert_int_equal(value, 2);
    assert_int_equal(value_int("-7", &value), 0);
    assert_int_equal(value, -7);
    assert_int_equal(value_int("2.0", &value), -1);
    assert_int_equal(value_int("0x2", &value), -1);
    assert_int_equal(value_int("1__0", &value), -1);
    assert_int_equal(value_int("99999999999", &value), -1);
    assert_int_equal(value_int("", &value), -1);
}

static void wrong_values_are_sentences(void **state)
{
    (void)state;
    refuses("--nproc-per-node foo x", "Unsupported nproc_per_node value: foo");
    refuses("--nproc-per-node -1 x",
            "-1 workers are too few for a job; give a number from 1, or auto, cpu, gpu");
    refuses("--nnodes 1:2:3 x", "is not in \"MIN:MAX\" format");
    refuses("--nnodes 2:1 x", "min_nodes=2, max_nodes=1");
    refuses("--nnodes 0 x", "min_nodes=0");
    refuses("--store-memory 4X x", "'4X' is not a size; write 4G, 512M, 64k or a number of bytes");
    refuses("--store-memory 0 x", "'0' is not a size");
    refuses("--store-memory 99999999999G x", "is not a size");
    refuses("--store-clients 0 x", "it must be at least 1, not 0");
    refuses("--store-allow 10.0.0.0/33 x",
            "'10.0.0.0/33' is not a network; write 10.1.0.0/16, fd00::/8 or any");
    refuses("--store-allow 10.0.0.0/8,x x", "'x' is not a network");
    refuses("--max-restarts=-1 x", "max_restarts must be >= 0");
    refuses("--max-restarts -1 x", "max_restarts must be >= 0");
    refuses("--max-restarts x x", "invalid int value: 'x'");
    refuses("--master-port 70000 x", "70000 is not between 0 and 65535");
    refuses("--shutdown-timeout=-1 x", "must be non-negative");
    refuses("--signals-to-handle SIGKILL x", "Invalid argument");
    refuses("--node-rank -1 x", "no node -1");
    refuses("-m --no-python x",
            "-m runs a Python module, so it can't be combined with --no-python");
    refuses("--foo x", "unrecognized arguments: --foo");
    refuses("-q x", "unrecognized arguments: -q");
    refuses("--nproc-per-node", "expected one argument");
    refuses("--standalone=1 x", "ignored explicit argument '1'");
    refuses("", "no program to run is given");
}

static void a_misspelt_name_gets_a_suggestion(void **state)
{
    (void)state;
    refuses("--rdvz-backend=c10d x", "--rdvz-backend=c10d; did you mean --rdzv-backend?");
    refuses("--nprocs=2 x", "did you mean --nproc-per-node?");
    refuses("--nproc_per_nodes=2 x", "did you mean --nproc-per-node?");
    refuses("--logdir=x x", "did you mean --log-dir?");
    refuses("--no_pyhton x", "did you mean --no-python?");
    refuses("--garce=3 x", "did you mean --shutdown-timeout?");
    refuses("-n 4 x", "unrecognized arguments: -n; did you mean --nproc-per-node?");
    refuses("-n4 x", "unrecognized arguments: -n4; did you mean --nproc-per-node?");
    refuses("-np 4 x", "unrecognized arguments: -np; did you mean --nproc-per-node?");
    refuses("-N 2 x", "did you mean --nnodes?");
    refuses("--foo --shwo=1 x", "unrecognized arguments: --foo --shwo=1; did you mean --show?");
    refuses("--foo x", "unrecognized arguments: --foo");
    assert_null(strstr(error, "did you mean"));
    refuses("-q x", "unrecognized arguments: -q");
    assert_null(strstr(error, "did you mean"));
    write_file("bad.ini", "[ctrun]\nmax_restart = 2\n");
    refuses("--job=bad.ini x", "unknown key 'max_restart' in [ctrun]; did you mean max-restarts?");
    write_file("bad.ini", "[ctrun]\njobb = x\n"); /* --job is no key */
    refuses("--job=bad.ini x", "its keys are the options, without --");
    unlink("bad.ini");
}

static void help_has_its_way_behind_an_unknown_option(void **state)
{
    (void)state;
    assert_int_equal(read_line("--foo --help"), OPTIONS_SHOW_HELP);
    assert_int_equal(read_line("-mh"), OPTIONS_SHOW_BRIEF_HELP);
    assert_int_equal(read_line("--version"), OPTIONS_SHOW_VERSION);
}

static void command_line_beats_environment_beats_file_beats_default(void **state)
{
    char source[64];

    (void)state;
    write_file("job.ini", "[ctrun]\nnproc_per_node = 2\n");
    accepts("x");
    assert_int_equal(options.nproc.number, 2);
    setting_source(&options, OPTION_NPROC_PER_NODE, source, sizeof source);
    assert_string_equal(source, "job.ini:2");
    setenv("PET_NPROC_PER_NODE", "3", 1);
    accepts("x");
    assert_int_equal(options.nproc.number, 3);
    setting_source(&options, OPTION_NPROC_PER_NODE, source, sizeof source);
    assert_string_equal(source, "PET_NPROC_PER_NODE");
    accepts("--nproc-per-node=4 x");
    assert_int_equal(options.nproc.number, 4);
    setenv("PET_NPROC_PER_NODE", "", 1); /* empty is unset */
    accepts("x");
    assert_int_equal(options.nproc.number, 2);
    unsetenv("PET_NPROC_PER_NODE");
    unlink("job.ini");
    accepts("x");
    assert_int_equal(options.nproc.number, 1);
}

static void a_switch_in_the_environment_is_an_integer(void **state)
{
    (void)state;
    setenv("PET_NO_PYTHON", "1", 1);
    accepts("x");
    assert_int_equal(options.no_python, 1);
    setenv("PET_NO_PYTHON", "true", 1);
    refuses("x", "PET_NO_PYTHON: invalid literal");
    unsetenv("PET_NO_PYTHON");
}

static void what_is_wrong_in_a_job_file_is_found_by_its_line(void **state)
{
    char longer[400];

    (void)state;
    write_file("bad.ini", "[ctrun]\n\nnporc = 2\n");
    refuses("--job=bad.ini x", "bad.ini:3: unknown key 'nporc' in [ctrun]");
    write_file("bad.ini", "[ctrum]\nnnodes = 1\n");
    refuses("--job bad.ini x", "bad.ini:2: unknown section [ctrum]");
    write_file("bad.ini", "nnodes = 1\n");
    refuses("--job bad.ini x",
            "bad.ini:1: 'nnodes' is outside any section; options belong under [ctrun]");
    write_file("bad.ini", "[ctrun]\nnnodes = x\n");
    refuses("--job bad.ini x", "bad.ini:2: nnodes: 'x' is not in");
    write_file("bad.ini", "[ctrun]\nnnodes\n");
    refuses("--job bad.ini x", "bad.ini:2: the line is neither [section] nor key = value");
    write_file("bad.ini", "[ctrun]\njob = other.ini\n");
    refuses("--job bad.ini x", "unknown key 'job'");
    snprintf(longer, sizeof longer, "[env]\nA = %0300d\n", 0);
    write_file("bad.ini", longer);
    refuses("--job bad.ini x", "bad.ini:2: the line is longer");
    unlink("bad.ini");
    refuses("--job bad.ini x", "bad.ini: cannot be read: No such file");
    refuses("--job / x", "/: cannot be read: Is a directory");
}

/* The sample names every option that a job file may have, and no other. */
static void the_sample_job_file_shows_each_option(void **state)
{
    char line[256], copy[16384] = "";
    FILE *file = fopen(sample, "r");

    (void)state;
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) /* a setting that is commented out: ";key = value" */
        strcat(copy, line[0] == ';' && line[1] != ' ' && line[1] != '\n' ? line + 1 : line);
    fclose(file);
    write_file("sample.ini", copy);
    accepts("--job=sample.ini x");
    for (int i = 0; i < OPTIONS; i++)
        if (!option_row(i)->command_line_only && options.settings[i].from != FROM_FILE)
            fail_msg("config/ctrun.ini lacks %s", option_row(i)->name);
    unlink("sample.ini");
}

/* ---- How nodes meet: torchrun's resolution ----------------------------------- */

static struct meeting meets(const char *line)
{
    struct meeting meeting;

    accepts(line);
    if (options_meeting(&options, &meeting, error, sizeof error) != OPTIONS_RUN)
        fail_msg("%s: %s", line, error);
    return meeting;
}

static void cannot_meet(const char *line, const char *words)
{
    struct meeting meeting;

    accepts(line);
    assert_int_equal(options_meeting(&options, &meeting, error, sizeof error), OPTIONS_WRONG);
    if (!strstr(error, words))
        fail_msg("%s: '%s' does not say '%s'", line, error, words);
}

static void a_port_or_an_endpoint_makes_a_static_job(void **state)
{
    struct meeting m = meets("x");

    (void)state;
    assert_int_equal(m.kind, MEET_ALONE);
    m = meets("--master-port 1234 x");
    assert_int_equal(m.kind, MEET_STATIC);
    assert_int_equal(m.port, 1234);
    m = meets("--nnodes 2 --master-addr [::1] x");
    assert_string_equal(m.host, "::1");
    assert_int_equal(m.port, 29500);
    m = meets("--rdzv-endpoint 10.0.0.1:77 x");
    assert_int_equal(m.kind, MEET_STATIC);
    assert_string_equal(m.host, "10.0.0.1");
    cannot_meet("--rdzv-endpoint 10.0.0.1 x", "port is missing in endpoint");
    cannot_meet("--nnodes 2 --node-rank 2 x", "with --nnodes=2 the nodes are 0 to 1");
}

static void standalone_is_stronger_than_all_about_meeting(void **state)
{
    (void)state;
    assert_int_equal(meets("--standalone --rdzv-backend nope --nnodes 2 x").kind, MEET_ALONE);
    assert_int_equal(meets("--standalone --rdzv-endpoint h:99999 x").port, 0);
}

static void without_workers_it_can_only_serve_an_elastic_job_of_several_nodes(void **state)
{
    (void)state;
    assert_int_equal(meets("--nproc-per-node 1 --nnodes 2 --rdzv-backend c10d x").serves_only, 0);
    assert_int_equal(meets("--nproc-per-node 0 --nnodes 2 --rdzv-backend c10d x").serves_only, 1);
    cannot_meet("--nproc-per-node 0 x",
                "0 workers are too few for a job. Without workers, ctrun can host the rendezvous");
    cannot_meet("--nproc-per-node 0 --nnodes 2 x",
                "0 workers are too few for a job. Without workers, ctrun can host the rendezvous");
    cannot_meet("--nproc-per-node 0 --rdzv-backend c10d x",
                "0 workers are too few for a job. Without workers, ctrun can host the rendezvous");
}

static void c10d_meets_at_its_endpoint(void **state)
{
    struct meeting m = meets("--rdzv-backend c10d --rdzv-endpoint [2001:db8::1]:123 x");

    (void)state;
    assert_int_equal(m.kind, MEET_DYNAMIC);
    assert_string_equal(m.host, "2001:db8::1");
    assert_int_equal(m.port, 123);
    m = meets("--rdzv-backend c10d x");
    assert_string_equal(m.host, "localhost");
    assert_int_equal(m.port, 29400);
    assert_non_null(strstr(m.warning, "master_addr is only used for static"));
    meets("--rdzv-backend c10d --rdzv-endpoint größe x");
    m = meets("--rdzv-backend c10d --rdzv-endpoint dummy-1.com --node-rank 3 x");
    assert_string_equal(m.host, "dummy-1.com");
    assert_non_null(strstr(m.warning, "node_rank is only used for static"));
    m = meets("--rdzv-backend c10d --rdzv-endpoint /a/b --rdzv-conf store_type=file x");
    assert_string_equal(m.file, "/a/b");
    cannot_meet("--rdzv-backend c10d --rdzv-endpoint :123 x", "list of labels");
    cannot_meet("--rdzv-backend c10d --rdzv-endpoint a: x", "0 and 65536");
    cannot_meet("--rdzv-backend c10d --rdzv-endpoint a:65536 x", "0 and 65536");
    cannot_meet("--rdzv-backend nope x", "'nope' is not registered; use static or c10d");
    cannot_meet("--rdzv-backend etcd x",
                "ctrun does not support etcd; use c10d, which needs only the nodes and no server");
}

static void rendezvous_words_are_trimmed_and_checked(void **state)
{
    char *argv[] = { "ctrun", "--rdzv-conf", " join_timeout= 7  ,c=d=e, is_host =Y", "x", NULL };

    (void)state;
    accepts("--rdzv-conf foo=1 x");
    assert_int_equal(options.rdzv_conf.join_timeout, 600);
    options_free(&options);
    assert_int_equal(options_read(&options, argv, error, sizeof error), OPTIONS_RUN);
    assert_int_equal(options.rdzv_conf.join_timeout, 7);
    assert_int_equal(options.rdzv_conf.is_host, 1);
    refuses("--rdzv-conf a x", "option 'a' must have a value");
    refuses("--rdzv-conf a=1, x", "must be in format");
    refuses("--rdzv-conf ,a=1 x", "must be in format");
    refuses("--rdzv-conf join_timeout=0 x", "join timeout (join_timeout) must be positive");
    refuses("--rdzv-conf join_timeout=x x", "the option 'join_timeout' is not an integer: 'x'");
    accepts("--rdzv-conf keep_alive_interval=1,keep_alive_max_attempt=2147483647 x");
    refuses("--rdzv-conf keep_alive_max_attempt=1000000000 x",
            "keep_alive_interval=5 times keep_alive_max_attempt=1000000000 is more than "
            "2147483647 s, 68 years");
}

/* PyTorch's own test has the quotes of a shell in the argument. */
static void a_timeout_is_read_where_torchrun_reads_it(void **state)
{
    char *argv[] = { "ctrun",       "--rdzv-backend=c10d",
                     "--rdzv-conf", "'join_timeout=5,timeout=5'",
                     "./a.program", NULL };
    struct meeting meeting;

    (void)state;
    assert_int_equal(meets("--rdzv-backend c10d --rdzv-conf timeout=abc x").kind, MEET_DYNAMIC);
    assert_int_equal(meets("--rdzv-backend c10d --rdzv-conf timeout=5.5 x").kind, MEET_DYNAMIC);
    assert_int_equal(meets("--standalone --rdzv-conf timeout=abc x").kind, MEET_ALONE);
    options_free(&options);
    assert_int_equal(options_read(&options, argv, error, sizeof error), OPTIONS_RUN);
    assert_int_equal(options_meeting(&options, &meeting, error, sizeof error), OPTIONS_RUN);
    assert_int_equal(options.rdzv_conf.join_timeout, 600);
    cannot_meet("--rdzv-conf timeout=abc x", "the option 'timeout' is not an integer: 'abc'");
    cannot_meet("--nnodes 2 --rdzv-conf timeout=0 x",
                "--rdzv-conf: the timeout (timeout) must be positive, not 0");
    assert_int_equal(meets("--nnodes 2 --rdzv-conf timeout=7 x").kind, MEET_STATIC);
    assert_int_equal(options.rdzv_conf.timeout, 7);
}

/* ---- Output, failures, places ------------------------------------------------ */

static void stream_maps_have_ranks_of_one_digit(void **state)
{
    (void)state;
    accepts("-r 2 x");
    assert_int_equal(stream_spec_of(&options.redirects, 12), 2);
    accepts("-t0:1,1:3,0:2 x");
    assert_int_equal(stream_spec_of(&options.tee, 0), 2);
    assert_int_equal(stream_spec_of(&options.tee, 1), 3);
    assert_int_equal(stream_spec_of(&options.tee, 2), 0);
    refuses("-r 4 x", "4 does not match");
    refuses("-r 10:1 x", "10:1 does not match");
    refuses("-r 1:1, x", "does not match");
}

static void lists_of_ranks_know_the_last(void **state)
{
    (void)state;
    accepts("--show 0,3-4,@last x");
    assert_true(ranks_have(options.show, 0, 8));
    assert_false(ranks_have(options.show, 1, 8));
    assert_true(ranks_have(options.show, 4, 8));
    assert_true(ranks_have(options.show, 7, 8));
    accepts("--show=* x");
    assert_true(ranks_have(options.show, 5, 8));
    refuses("--show=,1 x", "',1' is not a list of ranks; write 0,4-7,@last or *");
    refuses("--show=1, x", "'1,' is not a list of ranks; write 0,4-7,@last or *");
    accepts("--local-ranks-filter=1,12 x");
    assert_true(rank_filter_has(options.local_ranks_filter, 12));
    assert_false(rank_filter_has(options.local_ranks_filter, 2));
    refuses("--local-ranks-filter=1, x", "'1,' is not a comma-separated list of integers");
}

static void exec_on_has_ranks_and_a_command(void **state)
{
    char *argv[] = { "ctrun", "--exec-on=3:gdb --args", "x", NULL };

    (void)state;
    accepts("x");
    assert_null(options.exec_on.ranks);
    options_free(&options);
    assert_int_equal(options_read(&options, argv, error, sizeof error), OPTIONS_RUN);
    assert_true(ranks_have(options.exec_on.ranks, 3, 8));
    assert_false(ranks_have(options.exec_on.ranks, 0, 8));
    assert_string_equal(options.exec_on.command, "gdb --args");
    refuses("--exec-on=gdb x", "write ranks, a colon and a command, as --exec-on='3:gdb --args'");
    refuses("--exec-on=3: x", "write ranks, a colon and a command, as --exec-on='3:gdb --args'");
}

static void budgets_and_policies_of_restarting(void **state)
{
    (void)state;
    accepts("x");
    assert_int_equal(options.stall, 60);
    accepts("--stall=5m x");
    assert_int_equal(options.stall, 300);
    accepts("--stall=0 x");
    assert_int_equal(options.stall, 0);
    refuses("--stall=soon x", "'soon' is not a time; write 10s or 5m (s, m, h, d), or 0");
    refuses("--stall=-1 x", "'-1' is not a time; write 10s");
    accepts("--max-restarts=3/1h x");
    assert_int_equal(options.max_restarts.most, 3);
    assert_int_equal(options.max_restarts.window_seconds, 3600);
    refuses("--max-restarts=3/soon x", "a number in a time");
    accepts("x");
    assert_true(options.restart.exits[1] && options.restart.signals[9]);
    accepts("--restart=on-signal,on-exit:75,76 x");
    assert_true(options.restart.exits[75] && options.restart.exits[76]
                && options.restart.signals[11]);
    assert_false(options.restart.exits[1]);
    accepts("--restart=never-on:1,2 x");
    assert_true(options.restart.exits[3] && options.restart.signals[9]);
    assert_false(options.restart.exits[1] || options.restart.exits[2]);
    accepts("--restart=on-signal:SIGKILL x");
    assert_true(options.restart.signals[9]);
    assert_false(options.restart.signals[11]);
    refuses("--restart=sometimes x", "write causes, separated by commas: any, on-signal");
    accepts("--on-failure=continue:2 x");
    assert_true(options.on_failure.go_on);
    assert_int_equal(options.on_failure.least, 2);
    refuses("--on-failure=continue:0 x", "as long as MIN workers live");
}

static void places_are_words_or_lists(void **state)
{
    (void)state;
    accepts("--bind=numa --gpus=2,GPU-1,7 x");
    assert_string_equal(options.bind, "numa");
    accepts("--bind=0-3;4,6-7 x");
    refuses("--bind=0-3;;1 x", "CPUs by local rank");
    refuses("--bind=3-1 x", "CPUs by local rank");
    refuses("--gpus=1,,2 x", "write numbers or names of GPUs, separated by commas, as 2,4,7");
    refuses("--numa-binding bogus x", "invalid choice: 'bogus'");
    accepts("--report x");
    assert_int_equal(options.report, REPORT_TEXT);
    accepts("--report=json x");
    assert_int_equal(options.report, REPORT_JSON);
    refuses("--report=xml x", "invalid choice: 'xml'");
}

static void what_only_python_has_is_checked_too(void **state)
{
    (void)state;
    refuses("--start-method zzz x", "invalid choice: 'zzz'");
    setenv("PET_START_METHOD", "zzz", 1);
    accepts("x");
    unsetenv("PET_START_METHOD");
    refuses("--monitor-interval 0 x", "must be > 0");
    refuses("--monitor-interval x x", "invalid float value");
    refuses("--event-log-handler nope x", "nope");
    refuses("--logs-specs nope x", "Could not find entrypoint nope");
    refuses("--use-env x", "--use-env works only with --legacy-launch; workers always find "
                           "LOCAL_RANK in the environment");
    refuses("--legacy-launch --no-python x", "add --use-env");
    refuses("-m --no-python x",
            "-m runs a Python module, so it can't be combined with --no-python");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_spellings_and_both_ways_to_give_a_value),
        cmocka_unit_test(an_unambiguous_prefix_is_enough),
        cmocka_unit_test(two_spellings_of_one_option_are_not_ambiguous),
        cmocka_unit_test(an_option_that_took_the_program_for_its_value_says_so),
        cmocka_unit_test(the_last_one_wins),
        cmocka_unit_test(networks_are_what_their_bits_say),
        cmocka_unit_test(sizes_have_units),
        cmocka_unit_test(all_after_the_program_is_the_programs),
        cmocka_unit_test(one_pair_of_dashes_beside_the_program_is_dropped),
        cmocka_unit_test(integers_are_pythons),
        cmocka_unit_test(wrong_values_are_sentences),
        cmocka_unit_test(a_misspelt_name_gets_a_suggestion),
        cmocka_unit_test(help_has_its_way_behind_an_unknown_option),
        cmocka_unit_test(command_line_beats_environment_beats_file_beats_default),
        cmocka_unit_test(a_switch_in_the_environment_is_an_integer),
        cmocka_unit_test(what_is_wrong_in_a_job_file_is_found_by_its_line),
        cmocka_unit_test(the_sample_job_file_shows_each_option),
        cmocka_unit_test(a_port_or_an_endpoint_makes_a_static_job),
        cmocka_unit_test(standalone_is_stronger_than_all_about_meeting),
        cmocka_unit_test(without_workers_it_can_only_serve_an_elastic_job_of_several_nodes),
        cmocka_unit_test(c10d_meets_at_its_endpoint),
        cmocka_unit_test(rendezvous_words_are_trimmed_and_checked),
        cmocka_unit_test(a_timeout_is_read_where_torchrun_reads_it),
        cmocka_unit_test(stream_maps_have_ranks_of_one_digit),
        cmocka_unit_test(lists_of_ranks_know_the_last),
        cmocka_unit_test(exec_on_has_ranks_and_a_command),
        cmocka_unit_test(budgets_and_policies_of_restarting),
        cmocka_unit_test(places_are_words_or_lists),
        cmocka_unit_test(what_only_python_has_is_checked_too),
    };
    char folder[] = "/tmp/test_options_XXXXXX";
    int failed;

    for (int i = 0; i < OPTIONS; i++)
        for (int v = 0; v < 2 && option_row(i)->variables[v]; v++)
            unsetenv(option_row(i)->variables[v]);
    /* __FILE__ is tests/config/test_options.c, as the compiler was given it. */
    if (!realpath(__FILE__, sample) || !strstr(sample, "/tests/"))
        return 1;
    strcpy(strstr(sample, "/tests/config/"), "/config/ctrun.ini");
    if (!mkdtemp(folder) || chdir(folder) < 0)
        return 1;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    options_free(&options);
    return failed + (rmdir(folder) < 0);
}
