/* SPDX-License-Identifier: Apache-2.0 */
/* test_own_address.c - of several interfaces the one at which peers reach a rank, and by which
 * hosts are told apart.  In a network of the test's own, where `ip` makes them. */
#include "tests/harness.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/bootstrap/own_address.h"
#include "runtime/bootstrap/peer_info.h"

static int ip(const char *words)
{
    char command[400];

    snprintf(command, sizeof command, "PATH=$PATH:/sbin:/usr/sbin; ip %s 2>/dev/null >&2", words);
    return system(command);
}

/* As where Docker is: its bridge comes first. */
static int makes_a_network(void)
{
    return unshare(CLONE_NEWNET) == 0 && ip("link add docker0 type bridge") == 0
           && ip("addr add 172.17.0.1/16 dev docker0") == 0 && ip("link set docker0 up") == 0
           && ip("link add eth0 type veth peer name there0") == 0
           && ip("addr add 10.1.0.1/24 dev eth0") == 0 && ip("link set eth0 up") == 0
           && ip("link set there0 up") == 0;
}

static void is_reached_at(ct_store *store, const char *wanted)
{
    char address[64] = "";

    if (EXPECT_OK(own_address(store, 0, address, sizeof address)) && strcmp(address, wanted) != 0)
        expect_fails(__FILE__, __LINE__, "%s instead of %s", address, wanted);
}

static void says_where(ct_group *unused, void *arg)
{
    char address[64];
    ct_store *store;

    (void)unused;
    (void)arg;
    unsetenv("GLOO_SOCKET_IFNAME");
    EXPECT(makes_a_network());
    EXPECT_OK(ct_store_hash(&store)); /* no socket says which interface it was */
    is_reached_at(store, "10.1.0.1");
    EXPECT(ip("link add ens9 type veth peer name there9") == 0);
    EXPECT(ip("addr add 10.9.0.1/24 dev ens9") == 0 && ip("link set ens9 up") == 0);
    EXPECT(ip("link set there9 up") == 0 && ip("route add default via 10.9.0.2") == 0);
    is_reached_at(store, "10.9.0.1");
    setenv("GLOO_SOCKET_IFNAME", "ib0,eth0", 1);
    is_reached_at(store, "10.1.0.1");
    setenv("CT_INTERFACE", "docker0", 1);
    is_reached_at(store, "172.17.0.1");
    setenv("CT_INTERFACE", "10.9.0.1", 1);
    is_reached_at(store, "10.9.0.1");
    setenv("CT_INTERFACE", "eth7", 1);
    EXPECT_ERROR(own_address(store, 0, address, sizeof address), CT_ERR_INVALID,
                 "CT_INTERFACE=eth7|docker0, eth0, ens9");
    EXPECT_OK(ct_store_close(store));
}

/* The same boot, the same number of name space, another card. */
static void is_restored(ct_group *unused, void *arg)
{
    char before[MACHINE_TEXT], again[MACHINE_TEXT], after[MACHINE_TEXT];

    (void)unused;
    (void)arg;
    EXPECT(makes_a_network());
    EXPECT(ip("route add default via 10.1.0.2") == 0);
    machine_name(before, NULL);
    machine_name(again, NULL);
    EXPECT(ip("link set eth0 address 02:01:02:03:04:05") == 0);
    machine_name(after, NULL);
    EXPECT(before[0] && strcmp(before, again) == 0);
    EXPECT(strcmp(before, after) != 0);
}

static int may_make_networks(void)
{
    return system("PATH=$PATH:/sbin:/usr/sbin; unshare -n sh -c 'ip link add docker0 type bridge "
                  "&& ip "
                  "link add eth0 type veth peer name there0' >/dev/null 2>&1")
           == 0;
}

static void peers_reach_a_rank_where_the_host_is_reached_or_where_it_is_told(void **state)
{
    (void)state;
    if (!may_make_networks())
        skip(); /* without the right to, or without ip */
    run_programs(1, says_where, NULL);
}

static void machines_restored_from_one_snapshot_are_two(void **state)
{
    (void)state;
    if (!may_make_networks())
        skip();
    run_programs(1, is_restored, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(peers_reach_a_rank_where_the_host_is_reached_or_where_it_is_told),
        cmocka_unit_test(machines_restored_from_one_snapshot_are_two),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
