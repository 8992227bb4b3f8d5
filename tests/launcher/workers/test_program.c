/* SPDX-License-Identifier: Apache-2.0 */
/* test_program.c - what is executed, with which words, in which environment. */
#include "tests/harness.h"

#include <stdio.h>

#include "launcher/pmi/mpi_library.c"
#include "launcher/stdio/log_dir.c"
#include "launcher/workers/program.c"
#include "launcher/workers/worker_env.c"

/* placement.c has tests of its own. */
const char *placement_visible(const struct placement *placement, int local_rank)
{
    return placement ? placement->place[local_rank].device->name : NULL;
}

static void rewrites_to(const char *text, const char *expected)
{
    char to[128];

    assert_int_equal(program_rewrite(text, "3", NULL), strlen(expected));
    program_rewrite(text, "3", to);
    assert_string_equal(to, expected);
}

static void local_rank_and_double_dollar_are_replaced(void **state)
{
    (void)state;
    rewrites_to("$local_rank", "3");
    rewrites_to("gpu${local_rank}x", "gpu3x");
    rewrites_to("$$x", "$x");
    rewrites_to("$$local_rank", "$local_rank");
    rewrites_to("$local_ranks", "$local_ranks");
    rewrites_to("${rank} $HOME $", "${rank} $HOME $");
    rewrites_to("", "");
}

static struct program found;

static int find(int no_python, int module, char *name)
{
    static char *words[] = { NULL, "a$$", NULL };
    struct options options = { .no_python = no_python, .module = module, .program = words };

    words[0] = name;
    return program_find(&found, &options);
}

static void programs_are_executed_and_python_files_interpreted(void **state)
{
    char **argv;

    (void)state;
    assert_int_equal(find(0, 0, "/bin/sh"), 0);
    assert_string_equal(found.path, "/bin/sh");
    assert_int_equal(find(0, 0, "sh"), 0);
    assert_non_null(strchr(found.path, '/'));
    setenv("PYTHON_EXEC", "/bin/echo", 1);
    assert_int_equal(find(0, 0, "x.py"), 0);
    argv = program_argv(&found, 0);
    assert_string_equal(found.path, "/bin/echo");
    assert_string_equal(argv[1], "-u");
    assert_string_equal(argv[2], "x.py");
    assert_string_equal(argv[3], "a$");
    assert_null(argv[4]);
    free(argv);
    assert_int_equal(find(0, 1, "mod"), 0);
    argv = program_argv(&found, 0);
    assert_string_equal(argv[2], "-m");
    assert_string_equal(argv[3], "mod");
    free(argv);
    unsetenv("PYTHON_EXEC");
}

static void run_path_is_python_whatever_the_name(void **state)
{
    static char *words[] = { "/etc/passwd", "x", NULL };
    struct options options = { .run_path = 1, .no_python = 1, .program = words };
    char **argv;

    (void)state;
    setenv("PYTHON_EXEC", "/bin/echo", 1);
    assert_int_equal(program_find(&found, &options), 0);
    argv = program_argv(&found, 0);
    assert_string_equal(argv[0], "/bin/echo");
    assert_string_equal(argv[1], "-u");
    assert_string_equal(argv[2], "/etc/passwd");
    free(argv);
    unsetenv("PYTHON_EXEC");
}

/* As python -m torch.distributed.launch does it, behind the script or the module. */
static void the_old_launcher_tells_the_rank_first(void **state)
{
    static char *words[] = { "mod", "$local_rank", "b", NULL };
    struct options options = { .module = 1, .legacy_launch = 1, .program = words };
    static const char *const expected[] = { "/bin/echo",       "-u", "-m", "mod",
                                            "--local-rank=12", "12", "b" };
    char **argv;

    (void)state;
    setenv("PYTHON_EXEC", "/bin/echo", 1);
    assert_int_equal(program_find(&found, &options), 0);
    argv = program_argv(&found, 12);
    for (int i = 0; i < 7; i++)
        assert_string_equal(argv[i], expected[i]);
    assert_null(argv[7]);
    free(argv);
    options.use_env = 1;
    assert_int_equal(program_find(&found, &options), 0);
    argv = program_argv(&found, 12);
    assert_string_equal(argv[4], "12");
    free(argv);
    unsetenv("PYTHON_EXEC");
}

static void missing_is_127_and_not_executable_126(void **state)
{
    (void)state;
    assert_int_equal(find(0, 0, "no-such-program"), 127);
    assert_int_equal(find(0, 0, "./no/such"), 127);
    assert_int_equal(find(0, 0, "nosuch.py"), 127);
    assert_int_equal(find(1, 0, "/etc/passwd"), 126);
    setenv("PYTHON_EXEC", "/bin/echo", 1);
    assert_int_equal(find(0, 0, "/etc/passwd"), 126); /* which would be no Python either */
    unsetenv("PYTHON_EXEC");
    assert_int_equal(find(0, 0, "/etc"), 126);
}

static const char *value(char **entries, const char *name)
{
    const char *found_value = NULL;

    for (; *entries; entries++)
        if (env_named(*entries, name)) {
            assert_null(found_value); /* not twice */
            found_value = env_named(*entries, name);
        }
    return found_value ? found_value : "(unset)";
}

static void the_environment_is_torchruns(void **state)
{
    struct jobfile_entry lines[] = { { "env", "FROM_FILE", "1", 2 },
                                     { "env", "FROM_BOTH", "file", 3 },
                                     { "collectives", "all-reduce", "ring", 5 } };
    struct options options = { .role = "tr",
                               .max_restarts = { 2, 0 },
                               .nnodes = { 2, 2 },
                               .node_rank = 1,
                               .file = { NULL, lines, 3 } };
    const struct run_folder folder = { .path = "/t", .workers = 2, .attempt = 1 };
    const struct secret secret = { "0123456789abcdef", 16 };
    const struct round round = { .size = 2,
                                 .base = 3,
                                 .world = 5,
                                 .restarts = 1,
                                 .address = "127.0.0.1",
                                 .port = 999,
                                 .run_id = "id",
                                 .generation = "beef",
                                 .secret = &secret,
                                 .folder = &folder,
                                 .role_base = 1,
                                 .role_world = 3,
                                 .node = 1,
                                 .nodes = 2 };
    struct worker_env env;
    char **entries;

    (void)state;
    options.settings[OPTION_SIGNALS_TO_HANDLE].text = "SIGTERM";
    setenv("RANK", "9", 1);
    setenv("FROM_BOTH", "environment", 1);
    setenv("FROM_FILE", "", 1);
    unsetenv("OMP_NUM_THREADS");
    assert_int_equal(worker_env_create(&env, &options, &round), 0);
    entries = worker_env_of(&env, 1);
    assert_string_equal(value(entries, "RANK"), "4");
    assert_string_equal(value(entries, "LOCAL_RANK"), "1");
    assert_string_equal(value(entries, "ROLE_RANK"), "2");
    assert_string_equal(value(entries, "ROLE_WORLD_SIZE"), "3");
    assert_string_equal(value(entries, "WORLD_SIZE"), "5");
    assert_string_equal(value(entries, "LOCAL_WORLD_SIZE"), "2");
    assert_string_equal(value(entries, "GROUP_RANK"), "1");
    assert_string_equal(value(entries, "GROUP_WORLD_SIZE"), "2");
    assert_string_equal(value(entries, "CT_STORE_SECRET"), "0123456789abcdef");
    assert_string_equal(value(entries, "ROLE_NAME"), "tr");
    assert_string_equal(value(entries, "MASTER_PORT"), "999");
    assert_string_equal(value(entries, "TORCHELASTIC_RESTART_COUNT"), "1");
    assert_string_equal(value(entries, "TORCHELASTIC_MAX_RESTARTS"), "2");
    assert_string_equal(value(entries, "TORCHELASTIC_USE_AGENT_STORE"), "True");
    assert_string_equal(value(entries, "TORCHELASTIC_ERROR_FILE"), "/t/attempt_1/1/error.json");
    assert_string_equal(value(entries, "OMP_NUM_THREADS"), "1");
    assert_string_equal(value(entries, "CT_GENERATION"), "beef");
    assert_string_equal(value(entries, "FROM_FILE"), "1");
    assert_string_equal(value(entries, "FROM_BOTH"), "environment");
    assert_string_equal(value(entries, "CT_ALL_REDUCE"), "ring");
    free(entries);
    worker_env_destroy(&env);
}

static void a_worker_finds_the_numbers_of_the_descriptors_that_it_inherits(void **state)
{
    struct options options = { .role = "tr" };
    const struct run_folder folder = { .path = "/t", .workers = 2 };
    const struct secret secret = { "", 0 };
    struct round round = { .size = 2,
                           .world = 2,
                           .address = "h",
                           .run_id = "id",
                           .generation = "beef",
                           .secret = &secret,
                           .folder = &folder,
                           .inherited = { 7, 8, -1, -1 } };
    struct worker_env env;
    char **entries;

    (void)state;
    options.settings[OPTION_SIGNALS_TO_HANDLE].text = "SIGTERM";
    setenv("CT_TRACE_RING", "5:0", 1); /* of an outer ctrun */
    setenv("CT_PROGRESS_ROOM", "70", 1);
    assert_int_equal(worker_env_create(&env, &options, &round), 0);
    entries = worker_env_of(&env, 1);
    assert_string_equal(value(entries, "CT_CONTROL"), "7:8:1");
    assert_string_equal(value(entries, "CT_TRACE_RING"), "(unset)");
    free(entries);
    round.inherited = (struct inherited){ -1, -1, 9, -1 };
    entries = worker_env_of(&env, 0);
    assert_string_equal(value(entries, "CT_CONTROL"), "(unset)");
    assert_string_equal(value(entries, "CT_TRACE_RING"), "9:0");
    assert_string_equal(value(entries, "CT_PROGRESS_ROOM"), "(unset)"); /* no terminal */
    free(entries);
    worker_env_destroy(&env);
    unsetenv("CT_TRACE_RING");
    unsetenv("CT_PROGRESS_ROOM");
}

/* mpiexec -n 1 ctrun ...: the outer process manager is not the workers'. */
static void mpi_programs_find_this_ctrun_and_no_other_process_manager(void **state)
{
    static const char *const outer[] = { "PMI_FD", "PMI_RANK", "PMI_PORT", "MPI_LOCALNRANKS" };
    struct options options = { .role = "tr" };
    const struct run_folder folder = { .path = "/t", .workers = 2 };
    const struct secret secret = { "", 0 };
    struct round round = { .size = 2,
                           .base = 4,
                           .world = 6,
                           .address = "h",
                           .run_id = "id",
                           .generation = "beef",
                           .secret = &secret,
                           .folder = &folder,
                           .inherited = { -1, -1, -1, -1 } };
    struct worker_env env;
    char **entries;

    (void)state;
    options.settings[OPTION_SIGNALS_TO_HANDLE].text = "SIGTERM";
    for (size_t i = 0; i < sizeof outer / sizeof *outer; i++)
        setenv(outer[i], "77", 1);
    assert_int_equal(worker_env_create(&env, &options, &round), 0);
    entries = worker_env_of(&env, 1);
    for (size_t i = 0; i < sizeof outer / sizeof *outer; i++)
        assert_string_equal(value(entries, outer[i]), "(unset)");
    free(entries);
    round.serves_pmi = 1;
    round.inherited.pmi = 9;
    entries = worker_env_of(&env, 1);
    assert_string_equal(value(entries, "PMI_FD"), "9");
    assert_string_equal(value(entries, "PMI_RANK"), "5");
    assert_string_equal(value(entries, "PMI_SIZE"), "6");
    assert_string_equal(value(entries, "MPI_LOCALRANKID"), "1");
    assert_string_equal(value(entries, "MPI_LOCALNRANKS"), "2");
    assert_string_equal(value(entries, "PMI_PORT"), "(unset)");
    free(entries);
    worker_env_destroy(&env);
    for (size_t i = 0; i < sizeof outer / sizeof *outer; i++)
        unsetenv(outer[i]);
}

static void a_worker_with_a_gpu_of_its_own_is_local_rank_0(void **state)
{
    struct jobfile_entry lines[] = { { "env", "HIP_VISIBLE_DEVICES", "8,9", 2 } };
    struct options options = { .role = "tr", .file = { NULL, lines, 1 } };
    const struct run_folder folder = { .path = "/t", .workers = 2, .attempt = 0 };
    const struct secret secret = { "", 0 };
    const struct visible_gpu devices[] = { { "2", -1 }, { "GPU-7", -1 } };
    struct worker_place places[] = { { .device = &devices[0] }, { .device = &devices[1] } };
    const struct placement placement = { .place = places, .own_gpu_only = 1, .hip = 1 };
    const struct round round = { .size = 2,
                                 .world = 2,
                                 .address = "h",
                                 .run_id = "id",
                                 .generation = "beef",
                                 .secret = &secret,
                                 .folder = &folder,
                                 .placement = &placement };
    struct worker_env env;
    char **entries;

    (void)state;
    options.settings[OPTION_SIGNALS_TO_HANDLE].text = "SIGTERM";
    setenv("CUDA_VISIBLE_DEVICES", "0,1", 1);
    assert_int_equal(worker_env_create(&env, &options, &round), 0);
    entries = worker_env_of(&env, 1);
    assert_string_equal(value(entries, "RANK"), "1");
    assert_string_equal(value(entries, "LOCAL_RANK"), "0");
    assert_string_equal(value(entries, "CUDA_VISIBLE_DEVICES"), "GPU-7");
    assert_string_equal(value(entries, "HIP_VISIBLE_DEVICES"), "GPU-7");
    assert_string_equal(value(entries, "TORCHELASTIC_ERROR_FILE"), "/t/attempt_0/1/error.json");
    free(entries);
    worker_env_destroy(&env);
    unsetenv("CUDA_VISIBLE_DEVICES");
}

/* An empty variable is as one that is not set: job.ini's value takes its place. */
static void each_line_of_env_replaces_a_variable_that_is_empty(void **state)
{
    static const char *const names[] = { "FROM_FILE_1", "FROM_FILE_2", "FROM_FILE_3" };
    struct jobfile_entry entries[3] = { { 0 } };
    struct options options = { .role = "tr", .file = { .entries = entries, .count = 3 } };
    const struct run_folder folder = { .path = "/t", .workers = 1 };
    const struct secret secret = { "", 0 };
    const struct round round = { .size = 1,
                                 .world = 1,
                                 .address = "h",
                                 .run_id = "id",
                                 .generation = "beef",
                                 .secret = &secret,
                                 .folder = &folder,
                                 .inherited = { -1, -1, -1, -1 } };
    struct worker_env env;
    char **words;

    (void)state;
    options.settings[OPTION_SIGNALS_TO_HANDLE].text = "SIGTERM";
    for (int i = 0; i < 3; i++) {
        entries[i] =
            (struct jobfile_entry){ .section = "env", .key = (char *)names[i], .value = "7" };
        if (i > 0)
            setenv(names[i], "", 1);
    }
    assert_int_equal(worker_env_create(&env, &options, &round), 0);
    words = worker_env_of(&env, 0);
    for (int i = 0; i < 3; i++) {
        assert_string_equal(value(words, names[i]), "7");
        unsetenv(names[i]);
    }
    free(words);
    worker_env_destroy(&env);
}

/* Python and a shell take different ones of two entries of one name. */
static void each_variable_is_there_once(void **state)
{
    struct jobfile_entry lines[] = {
        { .section = "env", .key = "FROM_FILE", .value = "1" },
        { .section = "env", .key = "FROM_FILE", .value = "2" },
        { .section = "env", .key = "CT_ALL_REDUCE", .value = "ring" },
        { .section = "collectives", .key = "all-reduce", .value = "two_shot" },
        { .section = "env", .key = "TORCH_NCCL_ASYNC_ERROR_HANDLING", .value = "0" },
    };
    struct options options = { .role = "tr", .file = { .entries = lines, .count = 5 } };
    const struct run_folder folder = { .path = "/t", .workers = 2 };
    const struct secret secret = { "", 0 };
    const struct round round = { .size = 2,
                                 .world = 2,
                                 .address = "h",
                                 .run_id = "id",
                                 .generation = "beef",
                                 .secret = &secret,
                                 .folder = &folder,
                                 .inherited = { -1, -1, -1, -1 } };
    struct worker_env env;
    char **words;

    (void)state;
    options.settings[OPTION_SIGNALS_TO_HANDLE].text = "SIGTERM";
    setenv("OMP_NUM_THREADS", "", 1); /* as if it were not set */
    assert_int_equal(worker_env_create(&env, &options, &round), 0);
    words = worker_env_of(&env, 0);
    for (int i = 0; words[i]; i++)
        for (int j = 0; j < i; j++)
            assert_int_not_equal(strncmp(words[i], words[j], strcspn(words[i], "=") + 1), 0);
    assert_string_equal(value(words, "OMP_NUM_THREADS"), "1");
    assert_string_equal(value(words, "FROM_FILE"), "1");
    assert_string_equal(value(words, "CT_ALL_REDUCE"), "ring");
    assert_string_equal(value(words, "TORCH_NCCL_ASYNC_ERROR_HANDLING"), "0");
    free(words);
    worker_env_destroy(&env);
    unsetenv("OMP_NUM_THREADS");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(local_rank_and_double_dollar_are_replaced),
        cmocka_unit_test(programs_are_executed_and_python_files_interpreted),
        cmocka_unit_test(run_path_is_python_whatever_the_name),
        cmocka_unit_test(the_old_launcher_tells_the_rank_first),
        cmocka_unit_test(missing_is_127_and_not_executable_126),
        cmocka_unit_test(the_environment_is_torchruns),
        cmocka_unit_test(each_variable_is_there_once),
        cmocka_unit_test(each_line_of_env_replaces_a_variable_that_is_empty),
        cmocka_unit_test(a_worker_finds_the_numbers_of_the_descriptors_that_it_inherits),
        cmocka_unit_test(mpi_programs_find_this_ctrun_and_no_other_process_manager),
        cmocka_unit_test(a_worker_with_a_gpu_of_its_own_is_local_rank_0),
    };

    unsetenv("PYTHON_EXEC");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
