/* SPDX-License-Identifier: Apache-2.0 */
/* test_init.c - every way to join the default group, and every way to fail to.
 *
 * The bodies run in processes with RANK, WORLD_SIZE, MASTER_ADDR and a free
 * MASTER_PORT set, as by a launcher; a world is known to work when p ones sum
 * to p. */
#include "tests/marks.h"
#include "tests/harness.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/util/cpu_set.h"

enum { INIT_MS = GROUP_TIMEOUT_MS }; /* a hang becomes a sentence */

static void works(void)
{
    int32_t sum = 1;

    EXPECT(ct_is_initialized());
    EXPECT_OK(ct_all_reduce(CT_WORLD, &sum, &sum, 1, CT_I32, CT_SUM, NULL));
    EXPECT(sum == ct_size(CT_WORLD));
}

static void set_timeout(void)
{
    setenv("CT_TIMEOUT_MS", "8000", 1);
}

static void forget_environment(void)
{
    unsetenv("RANK");
    unsetenv("WORLD_SIZE");
    unsetenv("LOCAL_RANK");
    unsetenv("LOCAL_WORLD_SIZE");
    unsetenv("MASTER_ADDR");
    unsetenv("MASTER_PORT");
}

/* init with these options, all works, destroy; nothing is left. */
static void joins(const ct_init_options *options, int rank, int size)
{
    if (!EXPECT_OK(ct_init_process_group(options)))
        return;
    EXPECT(ct_rank(CT_WORLD) == rank && ct_size(CT_WORLD) == size);
    EXPECT(strcmp(ct_backend(CT_WORLD), "cpu") == 0 && ct_store_default() != NULL);
    works();
    EXPECT_STATUS(ct_init_process_group(options), CT_ERR_INVALID); /* once is enough */
    EXPECT_OK(ct_destroy_process_group(CT_WORLD));
    EXPECT(!ct_is_initialized() && ct_rank(CT_WORLD) == -1 && ct_size(CT_WORLD) == -1);
    EXPECT(ct_store_default() == NULL && ct_backend(CT_WORLD)[0] == 0);
}

/* ---- Ways to join ------------------------------------------------------------- */

static void alone(ct_group *unused, void *arg)
{
    (void)unused;
    (void)arg;
    forget_environment();
    EXPECT(ct_local_rank() == 0);
    EXPECT_STATUS(ct_barrier(CT_WORLD, NULL), CT_ERR_INVALID); /* before init */
    joins(NULL, 0, 1);
    EXPECT_STATUS(ct_destroy_process_group(CT_WORLD), CT_ERR_INVALID);
}

static void without_an_environment_the_world_is_one(void **state)
{
    (void)state;
    run_programs(1, alone, NULL);
}

static void from_environment(ct_group *unused, void *arg)
{
    ct_init_options options = CT_INIT_OPTIONS_INIT;

    (void)unused;
    (void)arg;
    EXPECT(ct_local_rank() == program_rank());
    set_timeout();
    joins(NULL, program_rank(), program_size());
    options.init_method = "env://";
    options.backend = "gloo";
    options.timeout_ms = INIT_MS;
    joins(&options, program_rank(), program_size());
}

static void the_environment_says_it_all(void **state)
{
    (void)state;
    run_programs(1, from_environment, NULL);
    run_programs(4, from_environment, NULL);
    use_link("tcp");
    run_programs(3, from_environment, NULL);
    use_link(NULL);
}

/* tcp://: rank, size and place are arguments, and the environment is empty. */
static void from_arguments(ct_group *unused, void *arg)
{
    ct_init_options options = CT_INIT_OPTIONS_INIT;
    char url[64];

    (void)unused;
    (void)arg;
    snprintf(url, sizeof url, "tcp://127.0.0.1:%s", getenv("MASTER_PORT"));
    options.init_method = url;
    options.rank = program_rank();
    options.world_size = program_size();
    options.timeout_ms = INIT_MS;
    forget_environment();
    joins(&options, options.rank, options.world_size);
}

static void a_tcp_url_needs_no_environment(void **state)
{
    (void)state;
    run_programs(3, from_arguments, NULL);
}

/* Twice over the same file: what the first left there must not matter. */
static void from_file(ct_group *unused, void *arg)
{
    ct_init_options options = CT_INIT_OPTIONS_INIT;
    char url[128];

    (void)unused;
    (void)arg;
    snprintf(url, sizeof url, "file://%s/meeting", scratch());
    options.init_method = url;
    options.rank = program_rank();
    options.world_size = program_size();
    options.timeout_ms = INIT_MS;
    forget_environment();
    joins(&options, options.rank, options.world_size);
    joins(&options, options.rank, options.world_size);
}

static void a_file_is_a_meeting_place(void **state)
{
    (void)state;
    run_programs(3, from_file, NULL);
}

static void from_store(ct_group *unused, void *arg)
{
    ct_init_options options = CT_INIT_OPTIONS_INIT;
    char path[128];

    (void)unused;
    (void)arg;
    snprintf(path, sizeof path, "%s/store", scratch());
    unsetenv("MASTER_ADDR");
    unsetenv("MASTER_PORT");
    if (!EXPECT_OK(ct_store_file(path, GROUP_TIMEOUT_MS, &options.store)))
        return;
    joins(&options, program_rank(), program_size());
    EXPECT_OK(ct_store_set(options.store, "still", "ours", 4)); /* it stays the caller's */
    EXPECT_OK(ct_store_close(options.store));
}

static void the_callers_store_is_a_meeting_place_and_stays_the_callers(void **state)
{
    (void)state;
    run_programs(3, from_store, NULL);
}

static void three_times(ct_group *unused, void *arg)
{
    const int descriptors = open_descriptors();

    (void)unused;
    (void)arg;
    set_timeout();
    for (int i = 0; i < 3; i++) {
        joins(NULL, program_rank(), program_size());
        EXPECT(open_descriptors() == descriptors);
    }
}

static void a_world_is_made_three_times_at_the_same_address(void **state)
{
    (void)state;
    run_programs(4, three_times, NULL);
    use_link("tcp");
    run_programs(3, three_times, NULL);
    use_link(NULL);
}

/* Many starts.  In some of them two ranks share a processor when init ends. */
static void keeps_its_processors(ct_group *unused, void *arg)
{
    struct cpus before, after;

    (void)unused;
    (void)arg;
    for (int i = 0; i < 20; i++) {
        EXPECT(cpus_of_process(0, &before) == 0);
        if (!EXPECT_OK(ct_init_process_group(NULL)))
            return;
        EXPECT(cpus_of_process(0, &after) == 0 && memcmp(&after, &before, sizeof after) == 0);
        EXPECT_OK(ct_destroy_process_group(CT_WORLD));
    }
}

static void init_leaves_the_affinity_mask_as_it_was(void **state)
{
    (void)state;
    run_programs(2, keeps_its_processors, NULL);
}

/* ---- Ways to fail ------------------------------------------------------------- */

/* Ranks 1 and 3 of four never come. */
static void missing(ct_group *unused, void *arg)
{
    ct_init_options options = CT_INIT_OPTIONS_INIT;
    const double start = now_ms();

    (void)unused;
    (void)arg;
    if (program_rank() % 2)
        return;
    mark("comes", program_rank());
    await("comes", 2 - program_rank());
    options.timeout_ms = 2000;
    EXPECT_ERROR(ct_init_process_group(&options), CT_ERR_TIMEOUT,
                 program_rank() == 0 ? "ct_init_process_group|rank 1, 3" : "ct_init_process_group");
    EXPECT(now_ms() - start < 10000);
    EXPECT(!ct_is_initialized());
}

static void the_ranks_that_never_come_are_named(void **state)
{
    (void)state;
    run_programs(4, missing, NULL);
}

static void wrong_environment(ct_group *unused, void *arg)
{
    const struct {
        const char *name, *value, *words;
    } wrong[] = {
        { "RANK", "2", "RANK=2|WORLD_SIZE=2" },
        { "RANK", "-1", "RANK=-1" },
        { "RANK", "one", "RANK=one" },
        { "WORLD_SIZE", "0", "WORLD_SIZE=0" },
        { "WORLD_SIZE", NULL, "RANK|WORLD_SIZE" },
        { "MASTER_ADDR", NULL, "MASTER_ADDR" },
        { "MASTER_PORT", NULL, "MASTER_PORT" },
        { "MASTER_PORT", "70000", "MASTER_PORT=70000" },
        { "CT_TIMEOUT_MS", "soon", "CT_TIMEOUT_MS=soon" },
    };

    (void)unused;
    (void)arg;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const char *had = getenv(wrong[i].name);
        char before[64] = "";

        snprintf(before, sizeof before, "%s", had ? had : "");
        if (wrong[i].value)
            setenv(wrong[i].name, wrong[i].value, 1);
        else
            unsetenv(wrong[i].name);
        EXPECT_ERROR(ct_init_process_group(NULL), CT_ERR_INVALID, wrong[i].words);
        if (had)
            setenv(wrong[i].name, before, 1);
        else
            unsetenv(wrong[i].name);
    }
    EXPECT(!ct_is_initialized());
    joins(NULL, program_rank(), program_size()); /* nothing of it stayed */
}

static void a_wrong_variable_is_named(void **state)
{
    (void)state;
    run_programs(2, wrong_environment, NULL);
}

static void wrong_options(ct_group *unused, void *arg)
{
    ct_init_options options = CT_INIT_OPTIONS_INIT;

    (void)unused;
    (void)arg;
    options.init_method = "http://here";
    EXPECT_ERROR(ct_init_process_group(&options), CT_ERR_INVALID, "http://here");
    options.init_method = "tcp://here";
    EXPECT_ERROR(ct_init_process_group(&options), CT_ERR_INVALID, "tcp://here");
    options = (ct_init_options)CT_INIT_OPTIONS_INIT;
    options.backend = "fax";
    EXPECT_ERROR(ct_init_process_group(&options), CT_ERR_INVALID, "fax");
    options.backend = "nccl";
    EXPECT_ERROR(ct_init_process_group(&options), CT_ERR_UNSUPPORTED, "nccl");
    options = (ct_init_options)CT_INIT_OPTIONS_INIT;
    options.rank = options.world_size = 3;
    EXPECT_ERROR(ct_init_process_group(&options), CT_ERR_INVALID, "rank=3|world_size=3");
    options = (ct_init_options)CT_INIT_OPTIONS_INIT;
    options.size = 3;
    EXPECT_ERROR(ct_init_process_group(&options), CT_ERR_INVALID, "size");
    EXPECT(!ct_is_initialized());
}

static void a_wrong_option_is_named(void **state)
{
    (void)state;
    run_programs(1, wrong_options, NULL);
}

/* .invalid never resolves (RFC 6761); without a resolver it is not found either. */
static void nowhere(ct_group *unused, void *arg)
{
    ct_init_options options = CT_INIT_OPTIONS_INIT;
    ct_status status;

    (void)unused;
    (void)arg;
    setenv("MASTER_ADDR", "no-such-host.invalid", 1);
    options.timeout_ms = 1000;
    status = ct_init_process_group(&options);
    EXPECT_ERROR(status, status == CT_ERR_TIMEOUT ? CT_ERR_TIMEOUT : CT_ERR_SYSTEM,
                 "no-such-host.invalid");
}

static void an_address_that_resolves_to_nothing_is_named(void **state)
{
    (void)state;
    run_programs(2, nowhere, NULL);
}

/* Rank 0's own process holds the port. */
static void occupied(ct_group *unused, void *arg)
{
    const struct sockaddr_in address = { .sin_family = AF_INET,
                                         .sin_port = htons((uint16_t)atoi(getenv("MASTER_PORT"))),
                                         .sin_addr = { htonl(INADDR_LOOPBACK) } };
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    char words[128];

    (void)unused;
    (void)arg;
    setenv("WORLD_SIZE", "2", 1);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on); /* free_port() holds it for us */
    EXPECT(bind(fd, (const struct sockaddr *)&address, sizeof address) == 0 && listen(fd, 1) == 0);
    snprintf(words, sizeof words, "%s|in use|%d", getenv("MASTER_PORT"), (int)getpid());
    EXPECT_ERROR(ct_init_process_group(NULL), CT_ERR_SYSTEM, words);
    close(fd);
}

static void a_port_in_use_names_the_process(void **state)
{
    (void)state;
    run_programs(1, occupied, NULL);
}

/* ---- After the end ---------------------------------------------------------------- */

static void uses_a_handle_of_the_past(ct_group *unused, void *arg)
{
    const int ranks[] = { 0, 1 };
    ct_group *part = NULL;

    (void)unused;
    (void)arg;
    EXPECT_OK(ct_init_process_group(NULL));
    EXPECT_OK(ct_new_group(ranks, 2, &part));
    EXPECT_OK(ct_destroy_process_group(CT_WORLD));
    EXPECT_ERROR(ct_barrier(part, NULL), CT_ERR_INVALID, "was destroyed|CT_WORLD");
}

static void a_handle_that_ended_with_the_world_is_refused_as_such(void **state)
{
    (void)state;
    run_programs(2, uses_a_handle_of_the_past, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_handle_that_ended_with_the_world_is_refused_as_such),
        cmocka_unit_test(without_an_environment_the_world_is_one),
        cmocka_unit_test(the_environment_says_it_all),
        cmocka_unit_test(a_tcp_url_needs_no_environment),
        cmocka_unit_test(a_file_is_a_meeting_place),
        cmocka_unit_test(the_callers_store_is_a_meeting_place_and_stays_the_callers),
        cmocka_unit_test(a_world_is_made_three_times_at_the_same_address),
        cmocka_unit_test(init_leaves_the_affinity_mask_as_it_was),
        cmocka_unit_test(the_ranks_that_never_come_are_named),
        cmocka_unit_test(a_wrong_variable_is_named),
        cmocka_unit_test(a_wrong_option_is_named),
        cmocka_unit_test(an_address_that_resolves_to_nothing_is_named),
        cmocka_unit_test(a_port_in_use_names_the_process),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
