/* SPDX-License-Identifier: Apache-2.0 */
/* test_placement.c - which worker gets which CPUs and GPUs, on machines that we don't have,
 * and how it is reported. */
#include "tests/harness.h"

#include <fcntl.h>

#include "launcher/placement/bind.c"
#include "launcher/placement/gpus.c"
#include "launcher/placement/numa_binding.c"
#include "launcher/placement/placement.c"
#include "launcher/placement/sysfs.c"
#include "launcher/placement/topology.c"
#include "launcher/report/placement_report.c"
#include "tests/launcher/placement/machine.h"

/* worker_env.c has tests of its own. */
const char *worker_env_get(const struct worker_env *env, const char *name)
{
    (void)env;
    (void)name;
    return NULL;
}

/* test_gpu_topology_report.c is about these. */
void links_report_text(struct text *out, const struct placement *placement, int base,
                       const char *host)
{
    (void)out;
    (void)placement;
    (void)base;
    (void)host;
}

void links_report_json(struct text *out, const struct placement *placement, int base,
                       const char *host)
{
    links_report_text(out, placement, base, host);
}

/* What a function says on stderr while it returns `code`. */
static char said[1024];

static int begin_listening(int *old)
{
    const int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    *old = dup(STDERR_FILENO);
    dup2(fd, STDERR_FILENO);
    return fd;
}

static void end_listening(int fd, int old)
{
    ssize_t got;

    dup2(old, STDERR_FILENO);
    close(old);
    got = pread(fd, said, sizeof said - 1, 0);
    said[got > 0 ? got : 0] = '\0';
    said[strcspn(said, "\n")] = '\0';
    close(fd);
}

/* ---- CPUs ------------------------------------------------------------------------ */

/* The placement of `size` workers on a machine of which `allowed` is allowed, with GPUs
 * at these nodes ("3 1 0": three). */
static struct placement machine;

static void begin(describe_cpu *describe, const char *allowed, int size, const char *gpu_nodes)
{
    int count = 0;

    machine = (struct placement){ .size = size };
    assert_non_null(machine.place = calloc((size_t)size, sizeof *machine.place));
    assert_non_null(
        cpu_list(allowed, machine.topology.allowed.bytes, sizeof machine.topology.allowed.bytes));
    for (int cpu = 0; (cpu = cpus_next(&machine.topology.allowed, cpu)) >= 0; cpu++)
        machine.topology.cpu[cpu] = describe(cpu);
    for (char *end; *gpu_nodes; gpu_nodes = end) {
        struct gpu *gpu = &machine.gpus.gpu[count];

        *gpu = (struct gpu){ .minor = count, .node = (int)strtol(gpu_nodes, &end, 10) };
        machine.gpus.count = ++count;
    }
    gpus_visible(&machine.gpus, NULL, &machine.devices);
}

static void end(void)
{
    free(machine.place);
}

/* "0-3|4-7": what each worker has. */
static const char *places(void)
{
    static char text[2048];
    char *at = text;

    *text = '\0';
    for (int i = 0; i < machine.size; i++) {
        char cpus[CPUS_TEXT];

        assert_true(machine.place[i].bound);
        cpus_write(&machine.place[i].cpus, cpus);
        at += sprintf(at, "%s%s", i ? "|" : "", cpus);
    }
    end();
    return text;
}

static const char *refusal(int code)
{
    assert_in_range(code, 1, 2); /* which of them: e2e/start/exit-status.sh */
    end();
    return said;
}

static const char *bound(const char *bind)
{
    int old, fd = begin_listening(&old);
    const int code = place_bind(&machine, bind);

    end_listening(fd, old);
    return code == 0 ? places() : refusal(code);
}

static const char *numa_bound(enum numa_binding mode)
{
    int old, fd = begin_listening(&old);
    const int code = place_numa(&machine, mode);

    end_listening(fd, old);
    return code == 0 ? places() : refusal(code);
}

static void cores_are_given_whole_and_all(void **state)
{
    (void)state;
    begin(two_sockets, "0-31", 4, "");
    assert_string_equal(bound("core"), "0-3,16-19|4-7,20-23|8-11,24-27|12-15,28-31");
    begin(two_sockets, "0-31", 3, "");
    assert_string_equal(bound("core"), "0-5,16-21|6-10,22-26|11-15,27-31");
    begin(two_sockets, "0-31", 16, "");
    assert_memory_equal(bound("core"), "0,16|1,17|2,18|3,19|", 20);
}

static void cores_follow_nodes_not_numbers(void **state)
{
    (void)state;
    begin(taking_turns, "0-15", 2, "");
    assert_string_equal(bound("core"), "0,2,4,6,8,10,12,14|1,3,5,7,9,11,13,15");
    begin(taking_turns, "0-15", 8, "");
    assert_string_equal(bound("core"), "0,2|4,6|8,10|12,14|1,3|5,7|9,11|13,15");
}

static void no_cpu_is_given_that_ctrun_may_not_use(void **state)
{
    (void)state;
    begin(two_sockets, "1-2,17,24-25", 2, "");
    assert_string_equal(bound("core"), "1-2,17|24-25"); /* half a core is one, too */
    begin(two_sockets, "1-2,17,24-25", 2, "");
    assert_string_equal(bound("numa"), "1-2,17|24-25");
}

static void more_workers_than_cores_are_refused(void **state)
{
    (void)state;
    begin(two_sockets, "0-1,16-17", 3, "");
    assert_string_equal(bound("core"),
                        "ctrun: --bind=core: 3 workers, but ctrun may use 2 cores only (4 CPUs); "
                        "start fewer, or let them share with --bind=numa or none");
}

static void nodes_are_filled_in_blocks(void **state)
{
    (void)state;
    begin(two_sockets, "0-31", 5, "");
    assert_string_equal(bound("numa"), "0-3,16-19|0-3,16-19|4-7,20-23|8-11,24-27|12-15,28-31");
    begin(two_sockets, "0-31", 2, "");
    assert_string_equal(bound("numa"), "0-3,16-19|8-11,24-27"); /* one in each socket */
    begin(two_sockets, "0-31", 2, "");
    assert_int_equal(place_bind(&machine, "numa"), 0);
    assert_int_equal(machine.place[1].memory, 2);
    end();
}

#define CROSSED "3 3 1 1 0 0 2 2"

static void workers_are_near_their_gpus(void **state)
{
    (void)state;
    begin(many_caches, "0-31", 8, CROSSED);
    assert_string_equal(bound("gpu"), "12-13,28-29|14-15,30-31|4-5,20-21|6-7,22-23|"
                                      "0-1,16-17|2-3,18-19|8-9,24-25|10-11,26-27");
    begin(many_caches, "0-31", 1, CROSSED);
    assert_string_equal(bound("gpu"), "12-15,28-31"); /* nobody else is there */
    begin(many_caches, "0-31", 1, CROSSED);
    assert_int_equal(place_bind(&machine, "gpu"), 0);
    assert_int_equal(machine.place[0].memory, 3);
    end();
}

static void workers_that_share_gpus_go_round(void **state)
{
    (void)state;
    begin(two_sockets, "0-31", 4, "0 2");
    assert_string_equal(bound("gpu"), "0-1,16-17|8-9,24-25|2-3,18-19|10-11,26-27");
    begin(two_sockets, "0-1,16-17", 3, "0"); /* 2 cores for 3: all share them */
    assert_string_equal(bound("gpu"), "0-1,16-17|0-1,16-17|0-1,16-17");
}

static void a_gpu_whose_node_is_unknown_is_near_all_cpus(void **state)
{
    (void)state;
    begin(two_sockets, "0-31", 2, "-1 -1");
    assert_string_equal(bound("gpu"), "0-7,16-23|8-15,24-31");
}

static void near_a_gpu_there_must_be_a_cpu(void **state)
{
    (void)state;
    begin(two_sockets, "0-3", 2, "0 1");
    assert_string_equal(bound("gpu"), "ctrun: GPU 1 is at NUMA node 1, of which ctrun may use no "
                                      "CPU (taskset, a cpuset)");
    begin(two_sockets, "0-3", 1, "");
    assert_non_null(strstr(bound("gpu"), "--bind=gpu: No accelerator available"));
}

static void a_list_is_by_local_rank(void **state)
{
    (void)state;
    begin(two_sockets, "0-31", 2, "");
    assert_string_equal(bound("0-3,8;4"), "0-3,8|4");
    begin(two_sockets, "0-31", 2, "");
    assert_string_equal(bound("7;6;5"), "7|6");
    begin(two_sockets, "0-31", 2, "");
    assert_string_equal(bound("0-3"), "ctrun: --bind=0-3 has CPUs for 1 worker, but there are 2 "
                                      "workers");
    begin(two_sockets, "0-3", 2, "");
    assert_string_equal(
        bound("0;3-4"),
        "ctrun: --bind gives local rank 1 the CPUs 3-4, but ctrun may use 0-3 only");
}

static void torchruns_node_and_socket(void **state)
{
    (void)state;
    begin(two_sockets, "0-31", 2, "3 0");
    assert_string_equal(numa_bound(NUMA_NODE), "12-15,28-31|0-3,16-19");
    begin(two_sockets, "0-31", 2, "3 0");
    assert_string_equal(numa_bound(NUMA_SOCKET), "8-15,24-31|0-7,16-23");
    begin(two_sockets, "0-31", 1, "-1");
    assert_string_equal(numa_bound(NUMA_NODE), "0-3,16-19"); /* unknown is node 0 */
    begin(taking_turns, "3-6", 2, "0 1");
    assert_string_equal(numa_bound(NUMA_SOCKET), "4,6|3,5");
    begin(two_sockets, "0-31", 1, "3");
    assert_int_equal(place_numa(&machine, NUMA_NODE), 0);
    assert_int_equal(machine.place[0].memory, 0); /* as begin() left it: not touched */
    end();
}

static void torchruns_exclusive_divides_by_gpus_not_by_workers(void **state)
{
    (void)state;
    begin(two_sockets, "0-31", 2, "0 0 0");
    assert_string_equal(numa_bound(NUMA_EXCLUSIVE), "0-1,16-17|2,18");
    begin(two_sockets, "0-31", 3, "0 1 0");
    assert_string_equal(numa_bound(NUMA_EXCLUSIVE), "0-1,16-17|4-7,20-23|2-3,18-19");
    begin(two_sockets, "0-1,16-17", 1, "0 0 0");
    assert_string_equal(numa_bound(NUMA_EXCLUSIVE),
                        "ctrun: --numa-binding=exclusive: 3 GPUs are at NUMA node 0, of which "
                        "ctrun may use 2 cores only");
}

static void torchruns_core_complexes_are_the_larger_first(void **state)
{
    (void)state;
    begin(many_caches, "0-31", 3, "1 1 1");
    assert_string_equal(numa_bound(NUMA_CORE_COMPLEX), "4-5,20-21|6-7,22-23|4-5,20-21");
    begin(many_caches, "4,6-7", 2, "1 1");
    assert_string_equal(numa_bound(NUMA_CORE_COMPLEX), "6-7|4");
}

static void numa_binding_wants_a_gpu_for_each_worker(void **state)
{
    (void)state;
    begin(two_sockets, "0-31", 1, "");
    assert_non_null(strstr(numa_bound(NUMA_NODE), "No accelerator available"));
    begin(two_sockets, "0-31", 3, "0 1");
    assert_string_equal(numa_bound(NUMA_NODE),
                        "ctrun: --numa-binding: local rank 2 has no GPU: 2 are visible");
}

/* ---- GPUs ------------------------------------------------------------------------ */

static struct placement *made;

static int create(const struct options *options, int size)
{
    int old, fd = begin_listening(&old), code;

    code = placement_create(&made, options, size, root);
    end_listening(fd, old);
    return code;
}

static void nothing_asked_is_no_placement(void **state)
{
    const struct options none = { 0 }, said_none = { .bind = "none" };

    (void)state;
    assert_int_equal(create(&none, 2), 0);
    assert_null(made);
    assert_int_equal(create(&said_none, 2), 0);
    assert_null(made);
    assert_null(placement_visible(NULL, 0));
}

static const char *seen_by(const struct options *options, int size)
{
    static char text[256];
    char *at = text;
    const int code = create(options, size);

    if (code != 0)
        return said;
    for (int i = 0; i < size; i++)
        at += sprintf(at, "%s%s", i ? "|" : "", placement_visible(made, i));
    if (made->hip)
        strcpy(at, " hip");
    placement_destroy(made);
    return text;
}

static void a_virtual_local_rank_is_an_item_of_the_list(void **state)
{
    const struct options options = { .virtual_local_rank = 1 };

    (void)state;
    assert_string_equal(seen_by(&options, 2), "0|1");
    setenv("CUDA_VISIBLE_DEVICES", "4, 5,6", 1);
    assert_string_equal(seen_by(&options, 2), "4|5");
    setenv("CUDA_VISIBLE_DEVICES", "4", 1);
    assert_string_equal(seen_by(&options, 2),
                        "ctrun: local_rank 1 exceeds available GPUs in CUDA_VISIBLE_DEVICES=4");
    setenv("CUDA_VISIBLE_DEVICES", "", 1);
    assert_string_equal(seen_by(&options, 1), ""); /* torchrun counts an empty item */
    setenv("HIP_VISIBLE_DEVICES", "2,3", 1);
    assert_string_equal(seen_by(&options, 2), "2|3 hip");
    setenv("HIP_VISIBLE_DEVICES", "", 1);
    setenv("CUDA_VISIBLE_DEVICES", "7", 1);
    assert_string_equal(seen_by(&options, 1), "7");
    unsetenv("HIP_VISIBLE_DEVICES");
    unsetenv("CUDA_VISIBLE_DEVICES");
}

static void gpus_of_the_option_are_for_all_workers_or_one_each(void **state)
{
    struct options options = { .gpus = "1,0" };

    (void)state;
    setenv("CUDA_VISIBLE_DEVICES", "4,5", 1);
    assert_string_equal(seen_by(&options, 2), "5,4|5,4");
    options.virtual_local_rank = 1;
    assert_string_equal(seen_by(&options, 2), "5|4");
    assert_string_equal(seen_by(&options, 3),
                        "ctrun: local_rank 2 exceeds available GPUs in --gpus=1,0");
    options.gpus = "2";
    assert_string_equal(seen_by(&options, 1),
                        "ctrun: --gpus: there is no GPU 2 here: 2 are visible");
    unsetenv("CUDA_VISIBLE_DEVICES");
}

static void the_job_files_list_counts_where_the_environment_has_none(void **state)
{
    struct jobfile_entry lines[] = { { "env", "CUDA_VISIBLE_DEVICES", "6,7", 2 } };
    const struct options options = { .virtual_local_rank = 1, .file = { NULL, lines, 1 } };

    (void)state;
    setenv("CUDA_VISIBLE_DEVICES", "", 1);
    assert_string_equal(seen_by(&options, 2), "6|7");
    setenv("CUDA_VISIBLE_DEVICES", "4,5", 1);
    assert_string_equal(seen_by(&options, 2), "4|5");
    unsetenv("CUDA_VISIBLE_DEVICES");
}

/* ---- The report ------------------------------------------------------------------ */

static const struct place_row rows[] = {
    { 8, 0, 4711, "node\"7", "0", "0000:1b:00.0", "GPU-a", "3", "12-13,28-29", "1", "shm+tcp" },
    { 9, 1, 4712, "node\"7", "1", "0000:1c:00.0", "", "3", "14", NULL, "shm+tcp" },
};

static void the_table_is_aligned(void **state)
{
    struct text out = { 0 };

    (void)state;
    place_report_text(&out, rows, 2);
    text_add(&out, "", 1);
    assert_string_equal(out.data,
                        "RANK  LOCAL  PID   HOST    GPU  PCI           UUID   NUMA  CPUS       "
                        "  THREADS  TRANSPORT\n"
                        "8     0      4711  node\"7  0    0000:1b:00.0  GPU-a  3     "
                        "12-13,28-29  1        shm+tcp\n"
                        "9     1      4712  node\"7  1    0000:1c:00.0  -      3     14     "
                        "      -        shm+tcp\n");
    free(out.data);
}

static void columns_of_gpus_need_gpus(void **state)
{
    struct place_row row = rows[0];
    struct text out = { 0 };

    (void)state;
    row.gpu = row.pci = row.uuid = "";
    place_report_text(&out, &row, 1);
    text_add(&out, "", 1);
    assert_string_equal(out.data,
                        "RANK  LOCAL  PID   HOST    NUMA  CPUS         THREADS  TRANSPORT\n"
                        "8     0      4711  node\"7  3     12-13,28-29  1        shm+tcp\n");
    free(out.data);
}

static void json_is_an_object_a_line(void **state)
{
    struct text out = { 0 };

    (void)state;
    place_report_json(&out, rows, 2);
    text_add(&out, "", 1);
    assert_string_equal(
        out.data,
        "{\"rank\":8,\"local_rank\":0,\"pid\":4711,\"host\":\"node\\\"7\",\"gpu\":\"0\","
        "\"pci\":\"0000:1b:00.0\",\"uuid\":\"GPU-a\",\"numa\":\"3\",\"cpus\":\"12-13,28-29\","
        "\"omp_num_threads\":\"1\",\"transport\":\"shm+tcp\"}\n"
        "{\"rank\":9,\"local_rank\":1,\"pid\":4712,\"host\":\"node\\\"7\",\"gpu\":\"1\","
        "\"pci\":\"0000:1c:00.0\",\"uuid\":null,\"numa\":\"3\",\"cpus\":\"14\","
        "\"omp_num_threads\":null,\"transport\":\"shm+tcp\"}\n");
    free(out.data);
}

static int begin_empty(void **state)
{
    (void)state;
    machine_create(0, NULL);
    return 0;
}

static int end_empty(void **state)
{
    (void)state;
    machine_remove();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cores_are_given_whole_and_all),
        cmocka_unit_test(cores_follow_nodes_not_numbers),
        cmocka_unit_test(no_cpu_is_given_that_ctrun_may_not_use),
        cmocka_unit_test(more_workers_than_cores_are_refused),
        cmocka_unit_test(nodes_are_filled_in_blocks),
        cmocka_unit_test(workers_are_near_their_gpus),
        cmocka_unit_test(workers_that_share_gpus_go_round),
        cmocka_unit_test(a_gpu_whose_node_is_unknown_is_near_all_cpus),
        cmocka_unit_test(near_a_gpu_there_must_be_a_cpu),
        cmocka_unit_test(a_list_is_by_local_rank),
        cmocka_unit_test(torchruns_node_and_socket),
        cmocka_unit_test(torchruns_exclusive_divides_by_gpus_not_by_workers),
        cmocka_unit_test(torchruns_core_complexes_are_the_larger_first),
        cmocka_unit_test(numa_binding_wants_a_gpu_for_each_worker),
        cmocka_unit_test(nothing_asked_is_no_placement),
        cmocka_unit_test(a_virtual_local_rank_is_an_item_of_the_list),
        cmocka_unit_test(gpus_of_the_option_are_for_all_workers_or_one_each),
        cmocka_unit_test(the_job_files_list_counts_where_the_environment_has_none),
        cmocka_unit_test(the_table_is_aligned),
        cmocka_unit_test(columns_of_gpus_need_gpus),
        cmocka_unit_test(json_is_an_object_a_line),
    };

    log_setup("ctrun", LOG_WARN);
    unsetenv("CUDA_VISIBLE_DEVICES");
    unsetenv("HIP_VISIBLE_DEVICES");
    return cmocka_run_group_tests(tests, begin_empty, end_empty);
}
