/* SPDX-License-Identifier: Apache-2.0 */
/* test_crossing.c - two ranks connect to each other at the same moment: each speaks on a connection
 * of its own, and the two end one after the other.  The end of the one is not the end of the peer
 * while the other still lies with the listener, however late this rank comes to look. */
#include "tests/collectives/marks.h"

#include "runtime/group.h"
#include "runtime/messages.h"

enum { WHILE_MS = 150 /* longer than who was never heard is waited for */ };

/* At the sockets that are known, not at the listener: as three of four looks are. */
static void look_at_peer(struct mesh *mesh, int peer)
{
    pthread_mutex_lock(&mesh->messages->lock);
    mesh->messages->looks = 0;
    progress_for(mesh, peer, 0);
    pthread_mutex_unlock(&mesh->messages->lock);
}

/* It leaves, and finds the other connection when it does; or ends. */
static void speaks_and_goes(ct_group *group, int leaves)
{
    int32_t value = 5;

    EXPECT_OK(ct_send(group, &value, 1, CT_I32, 0, 7));
    mark("spoke", 1);
    await("crossed", 0);
    if (leaves)
        EXPECT_OK(ct_destroy_process_group(group));
    rank_leaves();
}

static void crosses(ct_group *group, void *arg)
{
    struct mesh *mesh = group->mesh;
    const struct wire *wire = &mesh->messages->wires[1];
    int32_t value = 0;

    if (ct_rank(group) == 1)
        speaks_and_goes(group, *(const int *)arg);
    await("spoke", 1);
    pthread_mutex_lock(&mesh->messages->lock);
    say_here(mesh, 1); /* a call would look first, and find theirs */
    EXPECT(wire->streams == 1 && mesh->messages->strangers == 0);
    pthread_mutex_unlock(&mesh->messages->lock);
    mark("crossed", 0);
    while (wire->ended_ms == 0 && wire->held == 0)
        look_at_peer(mesh, 1);
    nap(WHILE_MS);
    look_at_peer(mesh, 1);
    EXPECT_OK(ct_recv(group, &value, 1, CT_I32, 1, 7, NULL));
    EXPECT(value == 5);
}

static void what_a_peer_said_arrives_though_its_other_connection_ended_long_before(void **state)
{
    int leaves = 1, ends = 0;

    (void)state;
    use_link("tcp");
    run_processes(2, crosses, &leaves);
    run_processes(2, crosses, &ends);
    use_link(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_peer_said_arrives_though_its_other_connection_ended_long_before),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
