/* SPDX-License-Identifier: Apache-2.0 */
/* test_one_connection.c - a pair of ranks has one TCP connection, also if both open one at once: no
 * message is lost, doubled or overtaken by another one. */
#include "tests/marks.h"

#include "runtime/group/group.h"
#include "runtime/messaging/messaging_internal.h"

enum { LARGE = 100000, MESSAGES = 200, ROUNDS = 6 };

static int connections_to(ct_group *group, int peer)
{
    struct transport *t = group->mesh->transport;
    int count = 0;

    pthread_mutex_lock(&t->lock);
    for (const struct endpoint *open = t->open; open; open = open->next_open)
        count += open->peer == peer;
    pthread_mutex_unlock(&t->lock);
    return count;
}

static void send_bytes(ct_group *group, size_t bytes, int to, unsigned char value)
{
    unsigned char *data = malloc(bytes);

    memset(data, value, bytes);
    EXPECT_OK(ct_send(group, data, bytes, CT_U8, to, 0));
    free(data);
}

static void receive_bytes(ct_group *group, size_t bytes, int from, unsigned char value)
{
    unsigned char *data = calloc(bytes, 1);

    EXPECT_OK(ct_recv(group, data, bytes, CT_U8, from, 0, NULL));
    EXPECT(data[0] == value && data[bytes - 1] == value);
    free(data);
}

/* ---- The order ------------------------------------------------------------- */

/* Below and above what is sent eagerly, and what a socket takes at once. */
static size_t bytes_of(int i)
{
    static const size_t sizes[] = { 1, 5000, 8, 1300, 1301, 40, 300000, 3, 40000, 2, 900000 };

    return sizes[(size_t)i % (sizeof sizes / sizeof *sizes)];
}

static void all_sizes(ct_group *group, void *arg)
{
    const int p = ct_size(group), to = (ct_rank(group) + 1) % p,
              from = (ct_rank(group) + p - 1) % p;
    ct_work *sends[MESSAGES], *receives[MESSAGES];
    unsigned char *out[MESSAGES], *in[MESSAGES];

    (void)arg;
    for (int i = 0; i < MESSAGES; i++) {
        out[i] = malloc(bytes_of(i));
        in[i] = calloc(bytes_of(i), 1);
        memset(out[i], 1 + i, bytes_of(i));
        EXPECT_OK(ct_isend(group, out[i], bytes_of(i), CT_U8, to, 0, &sends[i]));
        if (i % 3)
            EXPECT_OK(ct_irecv(group, in[i], bytes_of(i), CT_U8, from, 0, &receives[i]));
        else
            EXPECT_OK(
                ct_recv(group, in[i], bytes_of(i), CT_U8, i % 2 ? from : CT_ANY_SOURCE, 0, NULL));
    }
    for (int i = 0; i < MESSAGES; i++) {
        EXPECT_OK(ct_wait(sends[i]));
        if (i % 3)
            EXPECT_OK(ct_wait(receives[i]));
        EXPECT(in[i][0] == (unsigned char)(1 + i) && memcmp(in[i], out[i], bytes_of(i)) == 0);
        free(out[i]);
        free(in[i]);
    }
    EXPECT(connections_to(group, to) == 1 && connections_to(group, from) == 1);
    EXPECT_OK(ct_barrier(group, NULL));
}

static void messages_of_all_sizes_keep_their_order(void **state)
{
    (void)state;
    run_processes(2, all_sizes, NULL);
    run_processes(3, all_sizes, NULL);
    run_threads(3, all_sizes, NULL);
}

static void both_sizes(ct_group *group, void *arg)
{
    const int me = ct_rank(group);

    (void)arg;
    for (int i = 0; i < 100; i++) {
        if (me == 1)
            receive_bytes(group, i % 2 ? LARGE : 8, 0, 1);
        send_bytes(group, i % 2 ? LARGE : 8, 1 - me, 1);
        if (me == 0)
            receive_bytes(group, i % 2 ? LARGE : 8, 1, 1);
    }
    EXPECT(connections_to(group, 1 - me) == 1);
    EXPECT_OK(ct_barrier(group, NULL));
}

static void small_and_large_messages_share_the_connection(void **state)
{
    (void)state;
    run_processes(2, both_sizes, NULL);
}

/* ---- Both open one at once -------------------------------------------------- */

/* No rank looks at its connections before all have begun to open theirs. */
static void open_to_all(ct_group *group)
{
    struct transport *t = group->mesh->transport;

    pthread_mutex_lock(&t->lock);
    for (int peer = 0; peer < ct_size(group); peer++)
        if (peer != ct_rank(group))
            EXPECT_OK(peer_connect(group->mesh, peer));
    pthread_mutex_unlock(&t->lock);
    all_marked(group, "opened");
}

static int value_of(int from, int to, int i)
{
    return (from * MAX_RANKS + to) * ROUNDS + i;
}

static void exchange_with_all(ct_group *group, void *arg)
{
    const int opens = *(const int *)arg, me = ct_rank(group), p = ct_size(group);
    int out[MAX_RANKS][ROUNDS], in[MAX_RANKS][ROUNDS], found;
    ct_work *sends[MAX_RANKS][ROUNDS];

    if (opens)
        open_to_all(group);
    for (int i = 0; i < ROUNDS; i++)
        for (int peer = 0; peer < p; peer++) {
            out[peer][i] = value_of(me, peer, i);
            if (peer != me)
                EXPECT_OK(ct_isend(group, &out[peer][i], 1, CT_I32, peer, 0, &sends[peer][i]));
        }
    if (!opens)
        all_marked(group, "sent");
    for (int i = 0; i < ROUNDS; i++)
        for (int peer = 0; peer < p; peer++) {
            if (peer == me)
                continue;
            EXPECT_OK(ct_recv(group, &in[peer][i], 1, CT_I32, peer, 0, NULL));
            EXPECT(in[peer][i] == value_of(peer, me, i));
            EXPECT_OK(ct_wait(sends[peer][i]));
        }
    EXPECT_OK(ct_barrier(group, NULL));
    EXPECT_OK(ct_iprobe(group, CT_ANY_SOURCE, 0, &found, NULL));
    EXPECT(!found);
    for (int peer = 0; peer < p; peer++)
        EXPECT(connections_to(group, peer) == (peer != me));
    EXPECT_OK(ct_barrier(group, NULL));
}

static void ranks_that_open_to_each_other_at_once_get_one_connection(void **state)
{
    int opens = 1;

    (void)state;
    for (int i = 0; i < 10; i++)
        run_processes(2, exchange_with_all, &opens);
    run_processes(8, exchange_with_all, &opens);
    run_threads(8, exchange_with_all, &opens);
}

static void messages_in_both_directions_before_there_is_a_connection_all_arrive(void **state)
{
    int opens = 0;

    (void)state;
    run_processes(2, exchange_with_all, &opens);
    run_processes(8, exchange_with_all, &opens);
    run_threads(8, exchange_with_all, &opens);
}

/* The rank that ends is the lower one or the higher one, and leaves the group first or does not. */
static void sends_and_ends(ct_group *group, void *arg)
{
    const int how = *(const int *)arg, ends = how & 1;

    open_to_all(group);
    if (ct_rank(group) == ends) {
        send_bytes(group, 5000, 1 - ends, 7);
        if (how & 2)
            EXPECT_OK(ct_destroy_process_group(group));
        rank_leaves();
    }
    receive_bytes(group, 5000, ends, 7);
}

static void what_a_rank_sent_before_its_end_arrives_though_both_opened_a_connection(void **state)
{
    (void)state;
    for (int how = 0; how < 4; how++)
        for (int i = 0; i < 5; i++)
            run_processes(2, sends_and_ends, &how);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_of_all_sizes_keep_their_order),
        cmocka_unit_test(small_and_large_messages_share_the_connection),
        cmocka_unit_test(ranks_that_open_to_each_other_at_once_get_one_connection),
        cmocka_unit_test(messages_in_both_directions_before_there_is_a_connection_all_arrive),
        cmocka_unit_test(what_a_rank_sent_before_its_end_arrives_though_both_opened_a_connection),
    };

    use_link("tcp");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
