/* SPDX-License-Identifier: Apache-2.0 */
/* test_lanes.c - a pair has one connection for what is small, both ways, and each side one of
 * its own for what is large; what comes on both keeps its order. */
#include "tests/marks.h"

#include <sys/resource.h>
#include <time.h>

#include "runtime/group/group.h"
#include "runtime/messaging/messaging_internal.h"

enum { LARGE = 100000, MESSAGES = 200 };

static struct endpoint *endpoint_to(ct_group *group, int peer)
{
    return &group->mesh->transport->endpoints[peer];
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

/* Below and above what is small, what goes unasked, and what a socket takes at once. */
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
    EXPECT_OK(ct_barrier(group, NULL));
}

static void messages_of_all_sizes_keep_their_order(void **state)
{
    (void)state;
    run_processes(2, all_sizes, NULL);
    run_processes(3, all_sizes, NULL);
    run_threads(3, all_sizes, NULL);
}

/* Rank 0 speaks first, so rank 1 opens none before it has something large. */
static void get_two(ct_group *group)
{
    unsigned char more = 1;

    if (ct_rank(group) == 0)
        send_bytes(group, 8, 1, 1);
    else
        receive_bytes(group, 8, 0, 1);
    while (more && ct_rank(group) == 0) {
        receive_bytes(group, LARGE, 1, 2);
        EXPECT_OK(ct_recv(group, &more, 1, CT_U8, 1, 0, NULL));
        send_bytes(group, 8, 1, 3);
    }
    while (more && ct_rank(group) == 1) {
        send_bytes(group, LARGE, 0, 2);
        more = !endpoint_to(group, 0)->own;
        EXPECT_OK(ct_send(group, &more, 1, CT_U8, 0, 0));
        receive_bytes(group, 8, 0, 3);
    }
}

static void two_of_them(ct_group *group, void *arg)
{
    const struct endpoint *endpoint = endpoint_to(group, 1 - ct_rank(group));

    (void)arg;
    get_two(group);
    EXPECT_OK(ct_barrier(group, NULL));
    if (ct_rank(group) == 0) {
        send_bytes(group, LARGE, 1, 4); /* on its own: it opened the first */
        messages_look(group->mesh);     /* for the one that rank 1 opened */
        EXPECT(endpoint->out == endpoint->own && endpoint->accepted);
    } else {
        receive_bytes(group, LARGE, 0, 4);
        EXPECT(endpoint->out == endpoint->accepted && endpoint->own);
    }
    EXPECT(endpoint->streams == 2);
    EXPECT_OK(ct_barrier(group, NULL));
}

static void who_is_connected_opens_one_for_what_is_large(void **state)
{
    (void)state;
    run_processes(2, two_of_them, NULL);
}

static void small_ones(ct_group *group, void *arg)
{
    (void)arg;
    for (int i = 0; i < 100; i++) {
        if (ct_rank(group) == 1)
            receive_bytes(group, 1 + (size_t)i, 0, 1);
        send_bytes(group, 1 + (size_t)i, 1 - ct_rank(group), 1);
        if (ct_rank(group) == 0)
            receive_bytes(group, 1 + (size_t)i, 1, 1);
    }
    EXPECT(endpoint_to(group, 1 - ct_rank(group))->streams == 1);
    EXPECT_OK(ct_barrier(group, NULL));
}

static void what_is_small_needs_one(void **state)
{
    (void)state;
    run_processes(2, small_ones, NULL);
}

/* Neither has looked when it opens its own. */
static void at_once(ct_group *group, void *arg)
{
    const int me = ct_rank(group);
    const struct endpoint *endpoint = endpoint_to(group, 1 - me);
    struct transport *t = group->mesh->transport;

    (void)arg;
    pthread_mutex_lock(&t->lock);
    EXPECT_OK(peer_connect(group->mesh, 1 - me));
    pthread_mutex_unlock(&t->lock);
    mark("opened", me);
    await("opened", 1 - me);
    for (int i = 0; i < 3; i++)
        EXPECT_OK(ct_barrier(group, NULL));
    for (int i = 0; i < 3; i++) {
        if (me)
            send_bytes(group, LARGE, 0, 1);
        else
            receive_bytes(group, LARGE, 1, 1);
        EXPECT_OK(ct_barrier(group, NULL));
    }
    while (endpoint->streams < 2)
        messages_look(group->mesh);
    EXPECT(endpoint->out == (me ? endpoint->accepted : endpoint->own)); /* the lower rank's */
    EXPECT_OK(ct_barrier(group, NULL));
}

static void of_two_opened_at_once_the_lower_ranks_is_for_what_is_small(void **state)
{
    (void)state;
    run_processes(2, at_once, NULL);
}

/* As behind a firewall that lets rank 1 open no connections. */
static void nobody_lets_it_in(ct_group *group, void *arg)
{
    const struct endpoint *endpoint = endpoint_to(group, 1 - ct_rank(group));

    (void)arg;
    if (ct_rank(group) == 0) {
        send_bytes(group, 8, 1, 1);
        receive_bytes(group, LARGE, 1, 2);
    } else {
        receive_bytes(group, 8, 0, 1);
        group->mesh->peers[0].port = 1; /* no process listens there */
        EXPECT_ERROR(ct_send(group, "", 1, CT_U8, 99, 0), CT_ERR_INVALID, "99");
        send_bytes(group, LARGE, 0, 2);
        EXPECT(strstr(ct_last_error(), "99") != NULL);
    }
    for (int i = 0; i < 3; i++)
        EXPECT_OK(ct_barrier(group, NULL));
    while (endpoint->opening)
        messages_look(group->mesh);
    EXPECT(endpoint->streams == 1 && endpoint->own_tried);
    EXPECT_OK(ct_barrier(group, NULL));
}

static void where_no_second_one_can_be_made_what_is_large_shares_the_first(void **state)
{
    (void)state;
    run_processes(2, nobody_lets_it_in, NULL);
}

/* Rank 0 looks where the second message is. */
static void out_of_turn(ct_group *group, void *arg)
{
    struct transport *t = group->mesh->transport;
    struct endpoint *endpoint = endpoint_to(group, 1);

    (void)arg;
    get_two(group);
    EXPECT_OK(ct_barrier(group, NULL));
    if (ct_rank(group) == 1) {
        await("accepted", 0);
        send_bytes(group, 1, 0, 4);
        send_bytes(group, LARGE, 0, 5);
        mark("said", 1);
    } else {
        pthread_mutex_lock(&t->lock);
        while (!endpoint->accepted)
            progress(group->mesh);
        mark("accepted", 0);
        await("said", 1);
        t->looks = 0;
        progress_for(group->mesh, 1, LARGE);
        EXPECT(endpoint->held == 1);
        progress(group->mesh); /* it is held still where all are looked at: both go on */
        EXPECT(endpoint->held == 0);
        pthread_mutex_unlock(&t->lock);
        receive_bytes(group, 1, 1, 4);
        receive_bytes(group, LARGE, 1, 5);
    }
    EXPECT_OK(ct_barrier(group, NULL));
}

static void a_message_waits_for_the_one_before_it_on_the_other_connection(void **state)
{
    (void)state;
    run_processes(2, out_of_turn, NULL);
}

/* As if what it said before had been on a connection that broke. */
static void lost(ct_group *group, void *arg)
{
    const int large = *(const int *)arg;
    unsigned char byte;

    get_two(group);
    EXPECT_OK(ct_barrier(group, NULL));
    if (ct_rank(group) == 1) {
        pthread_mutex_lock(&group->mesh->transport->lock);
        endpoint_to(group, 0)->sent++;
        pthread_mutex_unlock(&group->mesh->transport->lock);
        send_bytes(group, large ? LARGE : 1, 0, 4);
        rank_leaves();
    }
    EXPECT_ERROR(ct_recv(group, &byte, 1, CT_U8, 1, 0, NULL), CT_ERR_PEER, "rank 1");
    EXPECT(group->mesh->transport->ended == 0);
}

static void what_comes_behind_words_that_are_lost_is_no_message(void **state)
{
    int small = 0, large = 1;

    (void)state;
    run_processes(2, lost, &small);
    run_processes(2, lost, &large);
}

/* Rank 0 has no descriptor left for a second connection, and holds the first. */
static void no_descriptor_left(ct_group *group, void *arg)
{
    struct rlimit limit;
    int top;

    (void)arg;
    if (ct_rank(group) == 0) {
        send_bytes(group, 8, 1, 1);
        receive_bytes(group, 8, 1, 1);
        getrlimit(RLIMIT_NOFILE, &limit);
        top = dup(0);
        limit.rlim_cur = (rlim_t)top; /* none from here on; `top` itself was the lowest free one */
        close(top);
        EXPECT(setrlimit(RLIMIT_NOFILE, &limit) == 0);
        send_bytes(group, 8, 1, 2);
    } else {
        receive_bytes(group, 8, 0, 1);
        send_bytes(group, 8, 0, 1);
        receive_bytes(group, 8, 0, 2);
    }
    for (int i = 0; i < 6; i++) {
        if (ct_rank(group) == 1)
            send_bytes(group, LARGE, 0, 2);
        else
            receive_bytes(group, LARGE, 1, 2);
        EXPECT_OK(ct_barrier(group, NULL));
    }
    EXPECT(ct_rank(group) == 0 || !endpoint_to(group, 0)->own);
    EXPECT_OK(ct_barrier(group, NULL));
    if (ct_rank(group) == 0) {
        limit.rlim_cur = limit.rlim_max;
        EXPECT(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    }
    EXPECT_OK(ct_barrier(group, NULL));
}

static void nothing_is_said_on_a_second_one_that_the_other_can_not_accept(void **state)
{
    (void)state;
    run_processes(2, no_descriptor_left, NULL);
}

/* As if it had spoken on one that rank 0 can't accept.  unread: with bytes of ours, so that its end
 * resets the one that is held. */
static void ends_while_held(ct_group *group, void *arg)
{
    const int unread = *(const int *)arg;
    struct timespec used;
    unsigned char byte;

    if (ct_rank(group) == 1) {
        receive_bytes(group, 8, 0, 1);
        send_bytes(group, 8, 0, 1);
        endpoint_to(group, 0)->sent++;
        send_bytes(group, 1, 0, 2);
        if (unread)
            await("unread", 0);
        rank_leaves();
    }
    send_bytes(group, 8, 1, 1);
    receive_bytes(group, 8, 1, 1);
    if (unread) {
        send_bytes(group, 8, 1, 3);
        mark("unread", 0);
    }
    EXPECT_ERROR(ct_recv(group, &byte, 1, CT_U8, 1, 0, NULL), CT_ERR_PEER, "rank 1");
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    EXPECT(used.tv_sec < 2);
}

static void who_is_held_is_seen_to_end(void **state)
{
    int unread = 0;

    (void)state;
    run_processes(2, ends_while_held, &unread);
    unread = 1;
    run_processes(2, ends_while_held, &unread);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_of_all_sizes_keep_their_order),
        cmocka_unit_test(who_is_connected_opens_one_for_what_is_large),
        cmocka_unit_test(what_is_small_needs_one),
        cmocka_unit_test(of_two_opened_at_once_the_lower_ranks_is_for_what_is_small),
        cmocka_unit_test(where_no_second_one_can_be_made_what_is_large_shares_the_first),
        cmocka_unit_test(a_message_waits_for_the_one_before_it_on_the_other_connection),
        cmocka_unit_test(what_comes_behind_words_that_are_lost_is_no_message),
        cmocka_unit_test(nothing_is_said_on_a_second_one_that_the_other_can_not_accept),
        cmocka_unit_test(who_is_held_is_seen_to_end),
    };

    use_link("tcp");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
