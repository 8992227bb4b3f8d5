/* SPDX-License-Identifier: Apache-2.0 */
/* test_topology.c - what is read of a machine: CPUs, GPUs, and what control groups leave. */
#include "tests/harness.h"

#include <sched.h>

#include "launcher/placement/gpus.c"
#include "launcher/placement/sysfs.c"
#include "launcher/placement/topology.c"
#include "runtime/util/cgroup.h"
#include "tests/launcher/placement/machine.h"

/* ---- Sets ------------------------------------------------------------------------ */

static struct cpus set_of(const char *list)
{
    struct cpus set;

    assert_non_null(cpu_list(list, set.bytes, sizeof set.bytes));
    return set;
}

static void is_written(const char *list, const char *expected)
{
    const struct cpus set = set_of(list);
    char text[CPUS_TEXT];

    cpus_write(&set, text);
    assert_string_equal(text, expected);
}

static void sets_are_written_as_ranges(void **state)
{
    const struct cpus none = { { 0 } };
    char text[CPUS_TEXT];

    (void)state;
    is_written("0", "0");
    is_written("3,1,2", "1-3");
    is_written("0,2,4-7,8191", "0,2,4-7,8191");
    cpus_write(&none, text);
    assert_string_equal(text, "");
}

static void what_has_no_room_ends_in_dots(void **state)
{
    struct cpus set = { { 0 } };
    char text[CPUS_TEXT];

    (void)state;
    for (int cpu = 1; cpu < CPUS_MOST; cpu += 2)
        cpus_add(&set, cpu);
    cpus_write(&set, text);
    assert_true(strlen(text) < CPUS_TEXT);
    assert_string_equal(text + strlen(text) - 4, ",...");
    assert_int_equal(cpus_count(&set), CPUS_MOST / 2);
}

static void a_process_runs_where_it_is_put(void **state)
{
    struct cpus before, one = { { 0 } }, after;

    (void)state;
    assert_int_equal(cpus_of_process(0, &before), 0);
    cpus_add(&one, cpus_next(&before, 0));
    assert_int_equal(cpus_enter(&one), 0);
    assert_int_equal(cpus_of_process(0, &after), 0);
    assert_memory_equal(&after, &one, sizeof one);
    assert_int_equal(sched_getcpu(), cpus_next(&before, 0));
    assert_int_equal(cpus_enter(&before), 0);
}

/* ---- CPUs ------------------------------------------------------------------------ */

/* Every CPU of the list is found as it was described. */
static void reads_as_described(const char *list, describe_cpu *describe)
{
    static struct topology topology;
    const struct cpus allowed = set_of(list);

    topology_read(&topology, root, &allowed);
    for (int cpu = cpus_next(&allowed, 0); cpu >= 0; cpu = cpus_next(&allowed, cpu + 1)) {
        const struct cpu expected = describe(cpu);

        assert_int_equal(topology.cpu[cpu].core, expected.core);
        assert_int_equal(topology.cpu[cpu].cache, expected.cache);
        assert_int_equal(topology.cpu[cpu].socket, expected.socket);
        assert_int_equal(topology.cpu[cpu].node, expected.node);
    }
}

static void sysfs_tells_cores_caches_sockets_and_nodes(void **state)
{
    (void)state;
    machine_create(TWO_SOCKETS, two_sockets);
    reads_as_described("0-31", two_sockets);
    reads_as_described("5,9,16-19,31", two_sockets); /* a cpuset may split cores */
    machine_remove();
    machine_create(MANY_CACHES, many_caches);
    reads_as_described("0-31", many_caches);
    machine_remove();
    machine_create(TAKING_TURNS, taking_turns);
    reads_as_described("0-15", taking_turns);
    machine_remove();
}

/* High-bandwidth memory, CXL, the memory of a GPU: a node near CPUs that are another node's. */
static void a_node_of_memory_alone_has_no_cpus(void **state)
{
    (void)state;
    machine_create(TAKING_TURNS, taking_turns);
    write_file("0-2", "sys/devices/system/node/online");
    write_file("", "sys/devices/system/node/node2/cpulist");
    write_file("", "sys/devices/system/node/node2/access0/initiators/node0/cpulist");
    reads_as_described("0-15", taking_turns);
    machine_remove();
}

static struct cpu alone(int number)
{
    return (struct cpu){ .core = number, .cache = -1, .socket = -1, .node = 0 };
}

static void a_machine_that_shows_nothing_has_cores_of_one_cpu(void **state)
{
    (void)state;
    machine_create(0, NULL);
    reads_as_described("0-3", alone);
    machine_remove();
}

/* ---- GPUs ------------------------------------------------------------------------ */

/* As the driver describes it; uuid NULL: it has not woken it yet. */
static void write_gpu(const char *pci, int minor, const char *uuid, const char *node)
{
    char text[512];

    snprintf(text, sizeof text,
             "Model: \t\t NVIDIA H200\nIRQ:   \t\t 31\nGPU UUID: \t %s\nBus Type: \t PCIe\n"
             "Bus Location: \t %s\nDevice Minor: \t %d",
             uuid ? uuid : "GPU-????????", pci, minor);
    write_file(text, "proc/driver/nvidia/gpus/%s/information", pci);
    write_file(node, "sys/bus/pci/devices/%s/numa_node", pci);
    write_file("", "dev/nvidia%d", minor);
}

static void gpus_are_in_the_order_of_their_addresses(void **state)
{
    struct gpus gpus;

    (void)state;
    machine_create(0, NULL);
    write_gpu("0000:c1:00.0", 0, "GPU-c", "3");
    write_gpu("0000:1b:00.0", 1, NULL, "-1");
    write_file("", "dev/nvidiactl");
    write_file("", "dev/nvidia-uvm");
    gpus_read(&gpus, root);
    assert_int_equal(gpus.count, 2);
    assert_string_equal(gpus.gpu[0].pci, "0000:1b:00.0");
    assert_string_equal(gpus.gpu[0].uuid, "");
    assert_int_equal(gpus.gpu[0].node, -1);
    assert_string_equal(gpus.gpu[1].pci, "0000:c1:00.0");
    assert_string_equal(gpus.gpu[1].uuid, "GPU-c");
    assert_int_equal(gpus.gpu[1].node, 3);
    machine_remove();
}

static void gpus_of_other_containers_do_not_count(void **state)
{
    struct gpus gpus;
    char path[128];

    (void)state;
    machine_create(0, NULL);
    write_gpu("0000:1b:00.0", 0, "GPU-a", "0");
    write_gpu("0000:1c:00.0", 1, "GPU-b", "1");
    snprintf(path, sizeof path, "%s/dev/nvidia0", root);
    assert_int_equal(unlink(path), 0);
    gpus_read(&gpus, root);
    assert_int_equal(gpus.count, 1);
    assert_string_equal(gpus.gpu[0].uuid, "GPU-b");
    machine_remove();
}

static void write_pci(const char *address, const char *vendor, const char *class)
{
    write_file(vendor, "sys/bus/pci/devices/%s/vendor", address);
    write_file(class, "sys/bus/pci/devices/%s/class", address);
    write_file("1", "sys/bus/pci/devices/%s/numa_node", address);
}

static void without_the_drivers_folder_pci_tells_addresses(void **state)
{
    struct gpus gpus;

    (void)state;
    machine_create(0, NULL);
    write_pci("0000:02:00.0", "0x10de", "0x030200");
    write_pci("0000:01:00.0", "0x10de", "0x030000");
    write_pci("0000:01:00.1", "0x10de", "0x040300"); /* its sound */
    write_pci("0000:00:02.0", "0x8086", "0x030000");
    gpus_read(&gpus, root);
    assert_int_equal(gpus.count, 0); /* no driver */
    write_file("", "dev/nvidia0");
    gpus_read(&gpus, root);
    assert_int_equal(gpus.count, 1);
    assert_string_equal(gpus.gpu[0].pci, ""); /* one of two: which? */
    write_file("", "dev/nvidia1");
    gpus_read(&gpus, root);
    assert_int_equal(gpus.count, 2);
    assert_string_equal(gpus.gpu[0].pci, "0000:01:00.0");
    assert_string_equal(gpus.gpu[1].pci, "0000:02:00.0");
    assert_int_equal(gpus.gpu[1].node, 1);
    machine_remove();
}

static const struct gpus four = { 4,
                                  { { 0, "0000:1b:00.0", "GPU-aa1", 0 },
                                    { 1, "0000:1c:00.0", "GPU-aa2", 0 },
                                    { 2, "0000:c1:00.0", "GPU-b", 1 },
                                    { 3, "0000:c2:00.0", "GPU-c", 1 } } };
static const struct gpus none;

/* "1>0 GPU-b>2": each item and the GPU that it is. */
static const char *listed(const struct devices *devices)
{
    static char text[512];
    char *at = text;

    *text = '\0';
    for (int i = 0; i < devices->count; i++)
        at += sprintf(at, "%s%s>%d", i ? " " : "", devices->device[i].name, devices->device[i].gpu);
    return text;
}

static const char *visible(const struct gpus *gpus, const char *value)
{
    struct devices devices;

    gpus_visible(gpus, value, &devices);
    return listed(&devices);
}

static void cuda_visible_devices_is_read_as_cuda_reads_it(void **state)
{
    (void)state;
    assert_string_equal(visible(&four, NULL), "0>0 1>1 2>2 3>3");
    assert_string_equal(visible(&four, ""), "");
    assert_string_equal(visible(&four, "3, 1"), "3>3 1>1");
    assert_string_equal(visible(&four, "2,4,1"), "2>2"); /* it stops at what is not there */
    assert_string_equal(visible(&four, "-1,0"), "");
    assert_string_equal(visible(&four, "GPU-b,0"), "GPU-b>2 0>0");
    assert_string_equal(visible(&four, "GPU-aa,0"), ""); /* two have that name */
    assert_string_equal(visible(&four, "GPU-d"), "");
    assert_string_equal(visible(&four, "MIG-1,MIG-2"), "MIG-1>-1 MIG-2>-1");
    assert_string_equal(visible(&none, NULL), "");
    assert_string_equal(visible(&none, "4,GPU-x"), "4>-1 GPU-x>-1");
}

static const char *chosen(const struct gpus *gpus, const char *value, const char *list)
{
    static char error[256];
    struct devices shown, devices;

    gpus_visible(gpus, value, &shown);
    if (gpus_choose(gpus, &shown, list, &devices, error, sizeof error) < 0)
        return error;
    return listed(&devices);
}

static void numbers_of_gpus_count_in_what_is_visible(void **state)
{
    (void)state;
    assert_string_equal(chosen(&four, NULL, "2,0"), "2>2 0>0");
    assert_string_equal(chosen(&four, "1,3", "1"), "3>3");
    assert_string_equal(chosen(&four, "GPU-b,GPU-c", "1"), "GPU-c>3");
    assert_string_equal(chosen(&four, "1,3", "GPU-c"), "3>3");
    assert_string_equal(chosen(&none, "4,5", "1,0"), "5>-1 4>-1");
    assert_string_equal(chosen(&four, NULL, "MIG-x,1"), "MIG-x>-1 1>1");
}

static void gpus_that_are_not_there_are_refused(void **state)
{
    (void)state;
    assert_string_equal(chosen(&four, NULL, "0,4"),
                        "--gpus: there is no GPU 4 here: 4 are visible");
    assert_string_equal(chosen(&four, "2", "1"), "--gpus: there is no GPU 1 here: 1 is visible");
    assert_string_equal(chosen(&four, "0,1", "GPU-b"),
                        "--gpus: there is no GPU GPU-b here: 2 are visible");
    assert_string_equal(chosen(&none, NULL, "0"), "--gpus: there is no GPU 0 here: 0 are visible");
    assert_string_equal(chosen(&four, NULL, "1,GPU-aa2"), "--gpus: GPU GPU-aa2 is named twice");
}

/* ---- Control groups ---------------------------------------------------------------- */

static void the_least_quota_on_the_way_up_counts(void **state)
{
    (void)state;
    machine_create(0, NULL);
    assert_int_equal(cgroup_cpus(root), 0);
    write_file("0::/kube/pod/box", "proc/self/cgroup");
    assert_int_equal(cgroup_cpus(root), 0);
    write_file("max 100000", "sys/fs/cgroup/kube/pod/box/cpu.max");
    assert_int_equal(cgroup_cpus(root), 0);
    write_file("800000 100000", "sys/fs/cgroup/kube/cpu.max");
    assert_int_equal(cgroup_cpus(root), 8);
    write_file("250000 100000", "sys/fs/cgroup/kube/pod/cpu.max");
    assert_int_equal(cgroup_cpus(root), 3); /* a part of a CPU is one more worker's */
    write_file("50000 100000", "sys/fs/cgroup/kube/pod/box/cpu.max");
    assert_int_equal(cgroup_cpus(root), 1);
    machine_remove();
}

static void a_container_that_sees_its_own_group_only_is_limited_too(void **state)
{
    (void)state;
    machine_create(0, NULL);
    write_file("400000 100000", "sys/fs/cgroup/cpu.max");
    write_file("0::/", "proc/self/cgroup");
    assert_int_equal(cgroup_cpus(root), 4);
    write_file("0::/../other", "proc/self/cgroup");
    assert_int_equal(cgroup_cpus(root), 4);
    write_file("0::/not/below/the/mount", "proc/self/cgroup");
    assert_int_equal(cgroup_cpus(root), 4);
    machine_remove();
}

static void version_1_has_a_tree_for_cpu(void **state)
{
    (void)state;
    machine_create(0, NULL);
    write_file("5:cpuset:/box\n4:cpu,cpuacct:/box\n0::/", "proc/self/cgroup");
    write_file("-1", "sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us");
    write_file("100000", "sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_period_us");
    assert_int_equal(cgroup_cpus(root), 0);
    write_file("150000", "sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us");
    assert_int_equal(cgroup_cpus(root), 2);
    write_file("3:cpuset:/box\n2:cpuacct:/box", "proc/self/cgroup");
    assert_int_equal(cgroup_cpus(root), 0);
    write_file("3:cpu:/box", "proc/self/cgroup");
    write_file("300000", "sys/fs/cgroup/cpu/box/cpu.cfs_quota_us");
    write_file("100000", "sys/fs/cgroup/cpu/box/cpu.cfs_period_us");
    assert_int_equal(cgroup_cpus(root), 3);
    machine_remove();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sets_are_written_as_ranges),
        cmocka_unit_test(what_has_no_room_ends_in_dots),
        cmocka_unit_test(a_process_runs_where_it_is_put),
        cmocka_unit_test(sysfs_tells_cores_caches_sockets_and_nodes),
        cmocka_unit_test(a_node_of_memory_alone_has_no_cpus),
        cmocka_unit_test(a_machine_that_shows_nothing_has_cores_of_one_cpu),
        cmocka_unit_test(gpus_are_in_the_order_of_their_addresses),
        cmocka_unit_test(gpus_of_other_containers_do_not_count),
        cmocka_unit_test(without_the_drivers_folder_pci_tells_addresses),
        cmocka_unit_test(cuda_visible_devices_is_read_as_cuda_reads_it),
        cmocka_unit_test(numbers_of_gpus_count_in_what_is_visible),
        cmocka_unit_test(gpus_that_are_not_there_are_refused),
        cmocka_unit_test(the_least_quota_on_the_way_up_counts),
        cmocka_unit_test(a_container_that_sees_its_own_group_only_is_limited_too),
        cmocka_unit_test(version_1_has_a_tree_for_cpu),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
