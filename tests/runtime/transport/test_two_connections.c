/* SPDX-License-Identifier: Apache-2.0 */
/* test_two_connections.c - two ranks have a connection each, and the peer's two end one after the
 * other. The end of the one is not the end of the peer while the other was not taken yet, however
 * late this rank comes to look. */
#include "tests/marks.h"

#include "runtime/group/group.h"
#include "runtime/messaging/messaging_internal.h"

enum { LARGE = 5000 }; /* goes on the sender's own connection */

/* Its own connection, and the peer's if it waits for that. */
static void connect_to(struct mesh *mesh, int peer, int both)
{
    const struct endpoint *endpoint = &mesh->transport->endpoints[peer];

    pthread_mutex_lock(&mesh->transport->lock);
    while (both && !endpoint->accepted)
        take_arrivals(mesh);
    EXPECT_OK(peer_connect(mesh, peer));
    while (!endpoint->own)
        take_arrivals(mesh);
    pthread_mutex_unlock(&mesh->transport->lock);
}

/* At the connections that are known: as three of four looks are. */
static void look_at_peer(struct mesh *mesh, int peer)
{
    pthread_mutex_lock(&mesh->transport->lock);
    mesh->transport->looks = 0;
    progress_for(mesh, peer, 0);
    pthread_mutex_unlock(&mesh->transport->lock);
}

static void speaks_and_goes(ct_group *group, int leaves)
{
    unsigned char values[LARGE];

    memset(values, 5, sizeof values);
    await("opened", 0);
    connect_to(group->mesh, 0, 1);
    EXPECT_OK(ct_send(group, values, LARGE, CT_U8, 0, 7));
    if (leaves)
        EXPECT_OK(ct_destroy_process_group(group));
    rank_leaves();
}

static void crosses(ct_group *group, void *arg)
{
    struct mesh *mesh = group->mesh;
    const struct endpoint *endpoint = &mesh->transport->endpoints[1];
    unsigned char values[LARGE] = { 0 };

    if (ct_rank(group) == 1)
        speaks_and_goes(group, *(const int *)arg);
    connect_to(mesh, 1, 0);
    mark("opened", 0);
    while (!endpoint->ended_one && endpoint->held == 0)
        look_at_peer(mesh, 1);
    EXPECT_OK(ct_recv(group, values, LARGE, CT_U8, 1, 7, NULL));
    EXPECT(values[0] == 5 && values[LARGE - 1] == 5);
}

static void what_a_peer_said_arrives_though_its_other_connection_ended_before(void **state)
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
        cmocka_unit_test(what_a_peer_said_arrives_though_its_other_connection_ended_before),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
