/* SPDX-License-Identifier: Apache-2.0 */
/* test_measure_network.c - the network that the calls of a group measure: all ranks have the same
 * model, and so choose the same algorithms. */
#include "tests/harness.h"

#include <stdlib.h>
#include <string.h>

#include "collectives/core/algorithm_overrides.h"

enum { RANKS = 6, CALLS = 8, LARGEST = 1 << 18 }; /* elements */

/* us per byte: any measurement shows a slower network, or a faster one */
#define SPEED_OF_LIGHT 1e-12
#define SLOW 1e3

static struct network *network_of(ct_group *group)
{
    return (group ? group : default_group())->algorithms.network;
}

static void run_on_hosts(rank_body *body)
{
    setenv("CT_FAULT", "hosts:0.1.2.2.1.0", 1);
    run_processes(RANKS, body, NULL);
    unsetenv("CT_FAULT");
}

/* All-reduces, each followed by calls for which the model chooses an algorithm.  The ranks of odd
 * numbers make their calls ahead. */
static void make_calls(ct_group *group, size_t count)
{
    const int ahead = ct_rank(group) % 2;
    float *data = calloc(CALLS, count * sizeof *data);
    ct_work *works[3 * CALLS] = { 0 };

    for (size_t i = 0; i < CALLS; i++) {
        float *const at = data + i * count;

        at[count - 1] = 1;
        EXPECT_OK(
            ct_all_reduce(group, at, at, count, CT_F32, CT_SUM, ahead ? &works[3 * i] : NULL));
        EXPECT_OK(ct_broadcast(group, at, count, CT_F32, 1, ahead ? &works[3 * i + 1] : NULL));
        EXPECT_OK(
            ct_reduce(group, at, at, count, CT_F32, CT_MAX, 0, ahead ? &works[3 * i + 2] : NULL));
    }
    for (int i = 0; i < 3 * CALLS; i++)
        if (works[i])
            EXPECT_OK(ct_wait(works[i]));
    for (size_t i = 0; i < CALLS; i++)
        EXPECT(data[(i + 1) * count - 1] == RANKS);
    free(data);
}

static void measured(ct_group *group, void *arg)
{
    struct network *const network = network_of(group);
    double all[RANKS], before = SPEED_OF_LIGHT;

    (void)arg;
    network->claimed = SPEED_OF_LIGHT;
    network->model = (struct network_model){ .us_per_byte = SPEED_OF_LIGHT }; /* all time is wire */
    for (size_t count = LARGEST / 16; count <= LARGEST; count *= 4) {
        make_calls(group, count);
        EXPECT(network->bytes == count * sizeof(float));
        EXPECT_OK(ct_all_gather(group, &network->model.us_per_byte, all, 1, CT_F64, NULL));
        for (int r = 0; r < RANKS; r++)
            EXPECT(all[r] == all[0]);
        EXPECT(all[0] != before);
        before = all[0];
    }
}

static void ranks_agree_on_a_network_that_their_calls_measure(void **state)
{
    (void)state;
    run_on_hosts(measured);
}

static void not_faster(ct_group *group, void *arg)
{
    struct network *const network = network_of(group);

    (void)arg;
    network->claimed = network->model.us_per_byte = SLOW;
    make_calls(group, LARGEST / 16);
    EXPECT(network->calls > 0);
    EXPECT(network->model.us_per_byte == SLOW);
}

static void a_network_is_not_faster_than_its_driver_tells(void **state)
{
    (void)state;
    run_on_hosts(not_faster);
}

static void not_measured(ct_group *group, void *arg)
{
    (void)arg;
    make_calls(group, LARGEST);
    EXPECT(network_of(group)->calls == 0);
    EXPECT(network_of(group)->model.us_per_byte == 1e-6);
}

static void a_network_that_the_user_describes_is_not_measured(void **state)
{
    (void)state;
    setenv("CT_NETWORK", "10us,1000GB/s", 1);
    run_on_hosts(not_measured);
    unsetenv("CT_NETWORK");
}

/* Doubling takes the fewest steps, so a program's calls of 16 KiB go by it.  A rank need not wait
 * in it, so it can't be measured. */
static void measured_by_small_calls(ct_group *group, void *arg)
{
    enum { COUNT = 4096 };
    struct network *const network = network_of(group);
    float data[COUNT] = { 0 };

    (void)arg;
    network->claimed = network->model.us_per_byte = SPEED_OF_LIGHT;
    for (int i = 0; i < 4; i++) {
        EXPECT(!network->is_measured);
        EXPECT_OK(ct_all_reduce(group, data, data, COUNT, CT_F32, CT_SUM, NULL));
        EXPECT(strcmp(ct_last_algorithm(group), "nodes_doubling") != 0);
    }
    EXPECT(network->is_measured);
    network->model.us_per_byte = SPEED_OF_LIGHT;
    EXPECT_OK(ct_all_reduce(group, data, data, COUNT, CT_F32, CT_SUM, NULL));
    EXPECT(!strcmp(ct_last_algorithm(group), "nodes_doubling"));
}

static void a_program_measures_though_another_algorithm_takes_fewer_steps(void **state)
{
    (void)state;
    setenv("CT_FAULT", "hosts:0.1.2.3", 1);
    run_processes(4, measured_by_small_calls, NULL);
    unsetenv("CT_FAULT");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_agree_on_a_network_that_their_calls_measure),
        cmocka_unit_test(a_network_is_not_faster_than_its_driver_tells),
        cmocka_unit_test(a_program_measures_though_another_algorithm_takes_fewer_steps),
        cmocka_unit_test(a_network_that_the_user_describes_is_not_measured),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
