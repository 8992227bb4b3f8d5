/* SPDX-License-Identifier: Apache-2.0 */
/* test_gpu_topology_report.c - whose GPUs --report says something between, and how. */
#include "tests/harness.h"

#include "launcher/placement/gpu_topology.c"
#include "launcher/placement/sysfs.c"
#include "launcher/report/gpu_topology_report.c"
#include "tests/launcher/placement/machine.h"

/* test_gpu_links.c is about these. */
void gpu_nvlinks_read(struct gpu_links *links)
{
    links->nvlinks_known = 1;
}

static struct placement machine;
static struct worker_place places[GPUS_MOST];

/* A node of `gpus` GPUs, on whose workers the items of `given` are: GPU numbers, -1 for none. */
static void begin_node(int gpus, int size, const int *given)
{
    machine = (struct placement){ .size = size, .place = places, .gpus = { .count = gpus } };
    for (int i = 0; i < gpus; i++) {
        snprintf(machine.gpus.gpu[i].pci, sizeof machine.gpus.gpu[i].pci, "0000:%02x:00.0", i + 1);
        machine.devices.device[i].gpu = i;
    }
    for (int i = 0; i < size; i++)
        places[i] =
            (struct worker_place){ .device =
                                       given[i] < 0 ? NULL : &machine.devices.device[given[i]] };
}

static const char *report(void (*say)(struct text *out, const struct placement *placement, int base,
                                      const char *host))
{
    static char said[20000];
    struct text out = { 0 };

    say(&out, &machine, 8, "node\"7");
    assert_true(out.used < sizeof said);
    snprintf(said, sizeof said, "%.*s", (int)out.used, out.used ? out.data : "");
    free(out.data);
    return said;
}

static void connect_by(int one, int other, struct between between)
{
    machine.links.between[one][other] = machine.links.between[other][one] = between;
}

/* Of four GPUs the workers have 0, 2 and 3, the last of them two. */
static void three_gpus(void)
{
    static const int given[] = { 3, 0, 2, 3, -1 };

    begin_node(4, 5, given);
    links_report_read(&machine, root);
    assert_int_equal(machine.links.count, 3);
    connect_by(0, 1, (struct between){ .way = WAY_NVLINK, 18, 1, "4.0" });
    connect_by(0, 2, (struct between){ .way = WAY_SYS });
    connect_by(1, 2, (struct between){ .way = WAY_SYS });
}

static void a_matrix_names_gpus_ranks_and_the_words_that_occur(void **state)
{
    (void)state;
    three_gpus();
    assert_string_equal(report(links_report_text),
                        "Between the GPUs of node\"7:\n"
                        "       GPU0   GPU2   GPU3   RANK\n"
                        "GPU0   X      NV18   SYS    9\n"
                        "GPU2   NV18   X      SYS    10\n"
                        "GPU3   SYS    SYS    X      8,11\n"
                        "  NV18: 18 NVLinks 4.0 by NVSwitch\n"
                        "  SYS: the link between the processor sockets\n");
}

static void json_has_the_same_in_one_line(void **state)
{
    (void)state;
    three_gpus();
    assert_string_equal(
        report(links_report_json),
        "{\"host\":\"node\\\"7\",\"gpus\":["
        "{\"number\":0,\"pci\":\"0000:01:00.0\",\"ranks\":[9],\"nvlink\":\"4.0\",\"nvswitch\":true}"
        ","
        "{\"number\":2,\"pci\":\"0000:03:00.0\",\"ranks\":[10],\"nvlink\":\"4.0\",\"nvswitch\":"
        "true}"
        ",{\"number\":3,\"pci\":\"0000:04:00.0\",\"ranks\":[8,11],\"nvlink\":null,"
        "\"nvswitch\":false}],\"left_out\":0,\"nvlinks_known\":true,"
        "\"between\":[[\"X\",\"NV18\",\"SYS\"],[\"NV18\",\"X\",\"SYS\"],[\"SYS\",\"SYS\",\"X\"]]}"
        "\n");
}

static void without_a_library_to_ask_it_says_so(void **state)
{
    (void)state;
    three_gpus();
    machine.links.nvlinks_known = 0;
    assert_non_null(
        strstr(report(links_report_text),
               "\n  NVLinks are not shown: libnvidia-ml.so.1 is missing or does not work\n"));
    assert_non_null(strstr(report(links_report_json), ",\"nvlinks_known\":false,"));
}

static void assert_nothing_is_said(void)
{
    links_report_read(&machine, root);
    assert_int_equal(machine.links.count, 0);
    assert_string_equal(report(links_report_text), "");
    assert_string_equal(report(links_report_json), "");
}

static void nothing_lies_between_fewer_than_two(void **state)
{
    static const int same[] = { 1, 1, -1 }, apart[] = { 0, 1 };

    (void)state;
    begin_node(0, 0, NULL);
    assert_nothing_is_said();
    begin_node(2, 3, same); /* two workers have one GPU */
    assert_nothing_is_said();
    begin_node(2, 2, apart);
    *machine.gpus.gpu[0].pci = '\0'; /* where it is can't be told */
    assert_nothing_is_said();
    begin_node(2, 2, apart);
    machine.devices.device[1].gpu = -1; /* a part of a GPU, or one that is not known */
    assert_nothing_is_said();
}

static void more_than_sixteen_are_counted(void **state)
{
    int given[20];

    (void)state;
    for (int i = 0; i < 20; i++)
        given[i] = i;
    begin_node(20, 20, given);
    links_report_read(&machine, root);
    assert_int_equal(machine.links.count, LINKED_GPUS_MOST);
    assert_non_null(
        strstr(report(links_report_text), "Between the GPUs of node\"7 (the first 16 of 20):\n"));
    assert_non_null(strstr(report(links_report_json), ",\"left_out\":4,"));
    assert_true(strlen(report(links_report_json)) < 5000); /* a host's line stays small */
}

static int begin(void **state)
{
    (void)state;
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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_matrix_names_gpus_ranks_and_the_words_that_occur),
        cmocka_unit_test(json_has_the_same_in_one_line),
        cmocka_unit_test(without_a_library_to_ask_it_says_so),
        cmocka_unit_test(nothing_lies_between_fewer_than_two),
        cmocka_unit_test(more_than_sixteen_are_counted),
    };

    return cmocka_run_group_tests(tests, begin, end);
}
