/* SPDX-License-Identifier: Apache-2.0 */
/* test_gpu_links.c - what lies between GPUs of machines that we don't have: PCI's tree as files,
 * NVLinks as tests/fake/nvml has them. */
#include "tests/harness.h"

#include <dlfcn.h>
#include <unistd.h>

#include "launcher/placement/gpu_topology.c"
#include "launcher/placement/nvlink.c"
#include "launcher/placement/sysfs.c"
#include "tests/launcher/placement/machine.h"

static struct gpu_links links;

/* GPU i has the address 0000:0<i+1>:00.0, which is how tests/fake/nvml knows it, in a folder of
 * PCI's tree at a NUMA node. */
static void place(const char *folder, int node)
{
    char link[200], to[300], number[12];

    snprintf(links.gpu[links.count].pci, sizeof links.gpu->pci, "0000:0%d:00.0", links.count + 1);
    snprintf(number, sizeof number, "%d", node);
    write_file(number, "sys/devices/%s/%s/numa_node", folder, links.gpu[links.count].pci);
    write_file("", "sys/bus/pci/devices/none");
    snprintf(link, sizeof link, "%s/sys/bus/pci/devices/%s", root, links.gpu[links.count].pci);
    snprintf(to, sizeof to, "../../../devices/%s/%s", folder, links.gpu[links.count].pci);
    assert_int_equal(symlink(to, link), 0);
    links.count++;
}

static void add_word(void *to, const char *word, const char *words)
{
    strcat(strcat(strcat(strcat(to, word), "="), words), ";");
}

/* "X PIX|PIX X": what is between the GPUs that were placed, row by row. */
static const char *read_words(void)
{
    static char text[1024];
    char sys[100], word[16];

    snprintf(sys, sizeof sys, "%s/sys", root);
    gpu_links_read(&links, sys);
    *text = '\0';
    for (int from = 0; from < links.count; from++)
        for (int to = 0; to < links.count; to++) {
            way_word(&links.between[from][to], word);
            strcat(strcat(text, to ? " " : from ? "|" : ""), word);
        }
    return text;
}

static const char *legend(void)
{
    static char text[1024];

    *text = '\0';
    gpu_links_legend(&links, add_word, text);
    return text;
}

/* ---- PCI -------------------------------------------------------------------------------- */

static void a_switch_is_nearer_than_two_and_they_than_the_processor(void **state)
{
    (void)state;
    place("pci0000:00/0000:00:01.0/0000:a1:00.0/0000:a2:00.0", 0);
    place("pci0000:00/0000:00:01.0/0000:a1:00.0/0000:a2:01.0", 0);
    place("pci0000:00/0000:00:01.0/0000:a1:00.0/0000:a2:02.0/0000:a3:00.0/0000:a4:00.0", 0);
    place("pci0000:00/0000:00:02.0", 0);
    assert_string_equal(read_words(), "X PIX PXB PHB|PIX X PXB PHB|PXB PXB X PHB|PHB PHB PHB X");
    assert_string_equal(legend(), "PIX=one PCIe switch;PXB=several PCIe switches;"
                                  "PHB=a PCIe host bridge (the processor);");
}

/* Nodes 0 and 1 are of socket 0, 2 of socket 1. */
static void host_bridges_are_told_apart_by_socket_and_else_by_node(void **state)
{
    (void)state;
    for (int node = 0; node < 3; node++) {
        write_file(node == 0   ? "0-3"
                   : node == 1 ? "4-7"
                               : "8-11",
                   "sys/devices/system/node/node%d/cpulist", node);
        write_file(node < 2 ? "0" : "1",
                   "sys/devices/system/cpu/cpu%d/topology/physical_package_id", 4 * node);
    }
    place("pci0000:00/0000:00:01.0", 0);
    place("pci0000:40/0000:40:01.0", 1);
    place("pci0000:80/0000:80:01.0", 2);
    place("pci0000:c0/0000:c0:01.0", 3); /* a node that has no file */
    assert_string_equal(read_words(), "X NODE SYS SYS|NODE X SYS SYS|SYS SYS X SYS|SYS SYS SYS X");
}

static void what_sysfs_does_not_show_is_not_guessed(void **state)
{
    (void)state;
    place("pci0000:00/0000:00:01.0", 0);
    place("vmbus/0000:40:01.0", 0); /* no tree of PCI's */
    strcpy(links.gpu[links.count++].pci, "0000:09:00.0");
    assert_string_equal(read_words(), "X ? ?|? X ?|? ? X");
    assert_string_equal(legend(), "?=something that sysfs does not show;");
}

static void a_link_has_speed_and_width_or_is_not_said(void **state)
{
    (void)state;
    place("pci0000:00/0000:00:01.0", 0);
    place("pci0000:00/0000:00:02.0", 0);
    write_file("16.0 GT/s PCIe", "sys/devices/pci0000:00/0000:00:01.0/%s/current_link_speed",
               links.gpu[0].pci);
    write_file("8", "sys/devices/pci0000:00/0000:00:01.0/%s/current_link_width", links.gpu[0].pci);
    read_words();
    assert_string_equal(links.gpu[0].speed, "16.0 GT/s x8");
    assert_string_equal(links.gpu[1].speed, "");
}

/* ---- NVLinks ------------------------------------------------------------------------------ */

static void nvlinks_are_nearer_than_pcie(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++)
        place("pci0000:00/0000:00:01.0", 0);
    setenv("FAKE_NVML_LINKS", "0-1:2,2-s:17,3-s:12", 1);
    assert_string_equal(read_words(), "X NV2 PIX PIX|NV2 X PIX PIX|PIX PIX X NV12|PIX PIX NV12 X");
    assert_true(links.nvlinks_known);
    assert_string_equal(legend(), "NV2=2 NVLinks 4.0;PIX=one PCIe switch;"
                                  "NV12=12 NVLinks 4.0 by NVSwitch;");
}

static void a_word_that_means_two_things_is_explained_twice(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++)
        place("pci0000:00/0000:00:01.0", 0);
    setenv("FAKE_NVML_LINKS", "0-1:2,2-s:2,3-s:2", 1);
    setenv("FAKE_NVML_VERSION", "7", 1);
    read_words();
    assert_string_equal(legend(), "NV2=2 NVLinks 5.0;PIX=one PCIe switch;"
                                  "NV2=2 NVLinks 5.0 by NVSwitch;");
}

static void a_generation_that_we_have_no_name_for_is_unknown(void **state)
{
    (void)state;
    place("pci0000:00/0000:00:01.0", 0);
    place("pci0000:00/0000:00:02.0", 0);
    setenv("FAKE_NVML_LINKS", "0-1:1", 1);
    setenv("FAKE_NVML_VERSION", "99", 1);
    assert_string_equal(read_words(), "X NV1|NV1 X");
    assert_string_equal(legend(), "NV1=1 NVLink ?;");
}

/* The last of sixteen has its links at both: those from GPU to GPU count. */
static void a_full_machine_has_room(void **state)
{
    (void)state;
    for (int i = 0; i < 9; i++)
        place("pci0000:00/0000:00:01.0", 0);
    for (; links.count < LINKED_GPUS_MOST; links.count++)
        snprintf(links.gpu[links.count].pci, sizeof links.gpu->pci, "0000:%02x:00.0",
                 links.count + 1);
    setenv("FAKE_NVML_LINKS", "0-15:16,15-s:1", 1);
    read_words();
    assert_int_equal(links.between[0][15].links, 16);
    assert_int_equal(links.between[15][0].links, 16);
    assert_int_equal(links.between[1][15].way, WAY_UNKNOWN);
}

static int begin(void **state)
{
    (void)state;
    links = (struct gpu_links){ 0 };
    unsetenv("FAKE_NVML_LINKS");
    unsetenv("FAKE_NVML_VERSION");
    machine_create(0, NULL);
    return 0;
}

static int end(void **state)
{
    (void)state;
    machine_remove();
    return 0;
}

int main(void)
{
#define ON_A_MACHINE(test) cmocka_unit_test_setup_teardown(test, begin, end)
    const struct CMUnitTest tests[] = {
        ON_A_MACHINE(a_switch_is_nearer_than_two_and_they_than_the_processor),
        ON_A_MACHINE(host_bridges_are_told_apart_by_socket_and_else_by_node),
        ON_A_MACHINE(what_sysfs_does_not_show_is_not_guessed),
        ON_A_MACHINE(a_link_has_speed_and_width_or_is_not_said),
        ON_A_MACHINE(nvlinks_are_nearer_than_pcie),
        ON_A_MACHINE(a_word_that_means_two_things_is_explained_twice),
        ON_A_MACHINE(a_generation_that_we_have_no_name_for_is_unknown),
        ON_A_MACHINE(a_full_machine_has_room),
    };

    /* Loaded here, it is what is found by its name later, whatever the machine has. */
    if (!dlopen(FAKE_NVML, RTLD_NOW | RTLD_LOCAL))
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
