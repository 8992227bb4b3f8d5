/* SPDX-License-Identifier: Apache-2.0 */
/* test_network_figures.c - what the kernel tells of the way to other hosts. */
#include "tests/harness.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collectives/read_overrides.h"
#include "runtime/bootstrap/network_figures.h"

static void of_hosts(const struct network_figures *wires, int count, uint32_t round_trip_us,
                     uint32_t mbit_per_s)
{
    struct peer_host hosts[8] = { 0 };
    struct network_figures all;

    for (int i = 0; i < count; i++)
        hosts[i].network = wires[i];
    all = network_figures_of_hosts(hosts, count);
    assert_int_equal(all.round_trip_us, round_trip_us);
    assert_int_equal(all.mbit_per_s, mbit_per_s);
}

static void the_slowest_wire_counts_and_the_median_of_the_round_trips(void **state)
{
    static const struct network_figures wires[] = {
        { 0, 25000 }, { 19, 25000 }, { 9000, 25000 }, { 30, 10000 }, { 17, 25000 },
    };

    (void)state;
    of_hosts(wires, 5, 24, 10000); /* 16 to 31: its middle */
}

static void what_no_host_knows_stays_unknown(void **state)
{
    static const struct network_figures nothing[2] = { 0 }, one[] = { { 0, 0 }, { 1, 0 } },
                                        most[] = { { UINT32_MAX, UINT32_MAX } };

    (void)state;
    of_hosts(nothing, 2, 0, 0);
    of_hosts(one, 2, 1, 0);
    of_hosts(most, 1, UINT32_C(3) << 30, UINT32_MAX);
}

static void the_model_takes_the_figures_and_where_there_are_none_10_gbit(void **state)
{
    const struct network_figures far = { 200, 100000 }, none = { 0 };

    (void)state;
    assert_float_equal(network_model_of(&far).alpha_us, 124, 1e-9);
    assert_float_equal(1e-3 / network_model_of(&far).us_per_byte, 12, 1e-9); /* GB/s */
    assert_float_equal(network_model_of(&none).alpha_us, 30, 1e-9);
    assert_float_equal(1e-3 / network_model_of(NULL).us_per_byte, 1.2, 1e-9);
}

/* ---- A wire between two networks ------------------------------------------------- */

static int sh(const char *commands)
{
    char script[600];

    snprintf(script, sizeof script, "PATH=$PATH:/sbin:/usr/sbin; { %s; } >/dev/null 2>&1",
             commands);
    return system(script) == 0;
}

/* The other host: a store at 10.1.0.2 until the pipe ends. */
static void serve(int from, int to)
{
    ct_store *store = NULL;
    char byte = 0;

    EXPECT(unshare(CLONE_NEWNET) == 0 && write(to, &byte, 1) == 1 && read(from, &byte, 1) == 1);
    EXPECT(sh("ip link set lo up && ip addr add 10.1.0.2/24 dev there0 && "
              "ip link set there0 up"));
    EXPECT_OK(ct_store_tcp("10.1.0.2", 29500, 1, 10000, &store));
    EXPECT(write(to, &byte, 1) == 1 && read(from, &byte, 1) == 0);
    EXPECT_OK(ct_store_close(store));
    _exit(0);
}

static void reads_a_wire(ct_group *unused, void *arg)
{
    struct network_figures wire;
    int there[2], back[2];
    char byte = 0, move[80];
    ct_store *store = NULL;
    pid_t child;

    (void)unused;
    (void)arg;
    EXPECT(unshare(CLONE_NEWNET) == 0 && pipe(there) == 0 && pipe(back) == 0);
    EXPECT(sh("ip link add eth0 type veth peer name there0 && ip addr add 10.1.0.1/24 dev eth0 && "
              "ip link set eth0 up"));
    child = fork();
    if (child == 0) {
        close(there[1]);
        serve(there[0], back[1]);
    }
    close(there[0]);
    close(back[1]);
    EXPECT(read(back[0], &byte, 1) == 1);
    snprintf(move, sizeof move, "ip link set there0 netns %d", (int)child);
    EXPECT(sh(move) && write(there[1], &byte, 1) == 1 && read(back[0], &byte, 1) == 1);
    EXPECT_OK(ct_store_tcp("10.1.0.2", 29500, 0, 10000, &store));
    wire = network_figures_read(store, "10.1.0.1");
    EXPECT(wire.round_trip_us > 0 && wire.round_trip_us < 10000000);
    EXPECT(wire.mbit_per_s == 10000); /* as veth's driver says */
    wire = network_figures_read(store, "10.1.0.3");
    EXPECT(wire.round_trip_us == 0 && wire.mbit_per_s == 0);
    EXPECT_OK(ct_store_close(store));
    close(there[1]);
    close(back[0]);
    EXPECT(waitpid(child, NULL, 0) == child);
}

static void the_kernel_knows_the_way_to_the_store_and_the_wire_that_it_takes(void **state)
{
    (void)state;
    if (!sh("unshare -n ip link add eth0 type veth peer name there0"))
        skip(); /* without the right to make networks, or without ip */
    run_programs(1, reads_a_wire, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_slowest_wire_counts_and_the_median_of_the_round_trips),
        cmocka_unit_test(what_no_host_knows_stays_unknown),
        cmocka_unit_test(the_model_takes_the_figures_and_where_there_are_none_10_gbit),
        cmocka_unit_test(the_kernel_knows_the_way_to_the_store_and_the_wire_that_it_takes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
