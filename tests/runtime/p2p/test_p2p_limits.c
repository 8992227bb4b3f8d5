/* SPDX-License-Identifier: Apache-2.0 */
/* test_p2p_limits.c - large messages that one side gave up: nothing of them is left that a later
 * call could match, and a message whose send succeeded can be received. */
#include "tests/marks.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/group/group.h"
#include "runtime/messaging/messaging_internal.h"
#include "runtime/p2p/work.h"
#include "runtime/util/clock.h"

enum { LARGE = 1 << 20, HUGE_ONE = 24 << 20, TAG = 7, SOON_MS = 150, PATIENT_MS = 8000 };

static unsigned char *filled(size_t bytes, int value)
{
    unsigned char *data = malloc(bytes);

    if (EXPECT(data != NULL))
        memset(data, value, bytes);
    return data;
}

static int is_full_of(const unsigned char *data, size_t bytes, int value)
{
    size_t right = 0;

    while (right < bytes && data[right] == value)
        right++;
    return right == bytes;
}

static struct signature signature_of(size_t bytes)
{
    return (struct signature){
        .count = bytes, .operation = OPERATION_SEND, .dtype = CT_U8, .op = -1, .root = -1
    };
}

/* A send that nothing moves until its owner says so: ct_isend() has a thread. */
static void start_send(ct_group *group, struct request *request, const void *data, size_t bytes)
{
    const struct signature signature = signature_of(bytes);

    request_send(group->mesh, request, group_channel(group, 1), group->ranks[1], TAG, data, bytes,
                 &signature);
}

/* ---- The sender gives up --------------------------------------------------------- */

static void send_again(ct_group *group, void *arg)
{
    unsigned char *data = filled(LARGE, 9);

    (void)arg;
    EXPECT_OK(ct_barrier(group, NULL)); /* there is a connection */
    if (ct_rank(group) == 0) {
        memset(data, 1, LARGE);
        EXPECT_OK(ct_set_next_timeout(group, SOON_MS));
        EXPECT_ERROR(ct_send(group, data, LARGE, CT_U8, 1, TAG), CT_ERR_TIMEOUT, "send|limit");
    }
    EXPECT_OK(ct_barrier(group, NULL));
    EXPECT_OK(ct_set_next_timeout(group, PATIENT_MS));
    if (ct_rank(group) == 0) {
        memset(data, 2, LARGE);
        EXPECT_OK(ct_send(group, data, LARGE, CT_U8, 1, TAG));
    } else {
        EXPECT_OK(ct_recv(group, data, LARGE, CT_U8, 0, TAG, NULL));
        EXPECT(is_full_of(data, LARGE, 2));
    }
    EXPECT_OK(ct_barrier(group, NULL));
    free(data);
}

static void a_send_whose_limit_ended_takes_no_receive_with_it(void **state)
{
    (void)state;
    run_ranks(2, send_again, NULL);
}

/* Rank 1 has accepted the first message when rank 0, which has not looked since, gives it up.  Of
 * the two receives the one that was posted first gets what is sent first. */
static void given_up_when_accepted(ct_group *group, void *arg)
{
    const char *name = arg;
    unsigned char *data = filled(2 * LARGE, 9);
    struct request request;
    ct_work *works[2];

    EXPECT_OK(ct_barrier(group, NULL));
    if (ct_rank(group) == 0) {
        memset(data, 1, LARGE);
        start_send(group, &request, data, LARGE);
        await(name, 1);
        request_cancel(group->mesh, &request);
        EXPECT(request.status == CT_ERR_ABORTED);
        for (int i = 0; i < 2; i++) {
            memset(data, 2 + i, LARGE);
            EXPECT_OK(ct_set_next_timeout(group, PATIENT_MS));
            EXPECT_OK(ct_send(group, data, LARGE, CT_U8, 1, TAG));
        }
    } else {
        for (int i = 0; i < 2; i++)
            EXPECT_OK(ct_irecv(group, data + (size_t)i * LARGE, LARGE, CT_U8, i ? 0 : CT_ANY_SOURCE,
                               TAG, &works[i]));
        while (request_peer(group->mesh, works[0]->request) == CT_ANY_SOURCE)
            messages_look(group->mesh);
        mark(name, 1);
        for (int i = 0; i < 2; i++) {
            EXPECT_OK(ct_set_next_timeout(group, PATIENT_MS));
            EXPECT_OK(ct_wait(works[i]));
            EXPECT(is_full_of(data + (size_t)i * LARGE, LARGE, 2 + i));
        }
    }
    EXPECT_OK(ct_barrier(group, NULL));
    free(data);
}

static void a_receive_whose_message_was_given_up_takes_the_next_one(void **state)
{
    (void)state;
    use_link("shm");
    run_processes(2, given_up_when_accepted, (void *)(uintptr_t) "accepted");
    use_link("tcp");
    run_processes(2, given_up_when_accepted, (void *)(uintptr_t) "accepted");
    use_link(NULL);
}

/* ---- The receiver gives up ------------------------------------------------------- */

enum when { BEFORE_IT_COMES, IN_THE_MIDDLE, WHEN_THE_REST_IS_THERE };

static const char *step_of(enum when again, const char *step)
{
    static char name[40];

    snprintf(name, sizeof name, "%s %d", step, (int)again);
    return name;
}

/* As much as there is room for: rank 1 does not look meanwhile. */
static void send_a_part(ct_group *group, const struct request *request)
{
    while (request->out.frame.kind != FRAME_DATA
           || request->out.written <= sizeof request->out.frame)
        messages_look(group->mesh);
    EXPECT(!atomic_load(&request->done));
}

/* Some of it, and no more. */
static void receive_a_part(ct_group *group, enum when again, void *data)
{
    const struct signature signature = signature_of(HUGE_ONE);
    struct request request;

    request_recv(group->mesh, &request, group_channel(group, 1), group->ranks[0], TAG, data,
                 HUGE_ONE, &signature);
    while (request.list != &group->mesh->messages->active)
        messages_look(group->mesh);
    mark(step_of(again, "accepted"), 1);
    await(step_of(again, "a part is sent"), 0);
    while (((unsigned char *)data)[0] != 1)
        messages_look(group->mesh);
    EXPECT(!atomic_load(&request.done));
    request_cancel(group->mesh, &request);
    EXPECT(request.status == CT_ERR_ABORTED);
}

static void send_in_part(ct_group *group, enum when again)
{
    unsigned char *large = filled(HUGE_ONE, 1), small = 2;
    struct request request, behind;

    start_send(group, &request, large, HUGE_ONE);
    start_send(group, &behind, &small, 1); /* it may not overtake */
    if (again != BEFORE_IT_COMES) {
        await(step_of(again, "accepted"), 1);
        send_a_part(group, &request);
        mark(step_of(again, "a part is sent"), 0);
    }
    await(step_of(again, "gave up"), 1);
    if (again == IN_THE_MIDDLE)
        nap(SOON_MS);
    EXPECT_OK(request_wait(group->mesh, &request, deadline_after(PATIENT_MS), NULL));
    EXPECT_OK(request_wait(group->mesh, &behind, deadline_after(PATIENT_MS), NULL));
    EXPECT_OK(ct_send(group, &small, 1, CT_U8, 1, TAG + 1));
    free(large);
}

static void receive_in_vain(ct_group *group, enum when again)
{
    unsigned char *large = filled(HUGE_ONE, 9), small = 9;

    if (again == BEFORE_IT_COMES) {
        EXPECT_OK(ct_set_next_timeout(group, SOON_MS));
        EXPECT_ERROR(ct_recv(group, large, HUGE_ONE, CT_U8, 0, TAG, NULL), CT_ERR_TIMEOUT, "recv");
    } else {
        receive_a_part(group, again, large);
    }
    mark(step_of(again, "gave up"), 1);
    memset(large, 8, HUGE_ONE);
    if (again == WHEN_THE_REST_IS_THERE)
        EXPECT_OK(ct_recv(group, &small, 1, CT_U8, 0, TAG + 1, NULL));
    EXPECT_OK(ct_set_next_timeout(group, PATIENT_MS));
    EXPECT_OK(ct_recv(group, large, HUGE_ONE, CT_U8, 0, TAG, NULL));
    EXPECT(is_full_of(large, HUGE_ONE, 1));
    EXPECT_OK(ct_recv(group, &small, 1, CT_U8, 0, TAG, NULL));
    EXPECT(small == 2);
    if (again != WHEN_THE_REST_IS_THERE)
        EXPECT_OK(ct_recv(group, &small, 1, CT_U8, 0, TAG + 1, NULL));
    free(large);
}

static void receive_once_more(ct_group *group, void *arg)
{
    (void)arg;
    for (enum when again = BEFORE_IT_COMES; again <= WHEN_THE_REST_IS_THERE; again++) {
        EXPECT_OK(ct_barrier(group, NULL));
        if (ct_rank(group) == 0)
            send_in_part(group, again);
        else
            receive_in_vain(group, again);
    }
    EXPECT_OK(ct_barrier(group, NULL));
}

static void what_is_sent_can_be_received_though_a_receive_of_it_gave_up(void **state)
{
    (void)state;
    use_link("shm");
    run_processes(2, receive_once_more, NULL);
    use_link("tcp");
    run_processes(2, receive_once_more, NULL);
    use_link(NULL);
}

/* A part of the message has come when its receive gives up, and its group is destroyed. */
static void destroyed_in_the_middle(ct_group *group, void *arg)
{
    unsigned char *large = filled(HUGE_ONE, 1), small = 3;
    const int other = 1 - ct_rank(group);
    struct request request;
    ct_group *part;

    (void)arg;
    EXPECT_OK(ct_split_group(group, 0, ct_rank(group), &part));
    EXPECT_OK(ct_barrier(part, NULL));
    if (ct_rank(group) == 0) {
        start_send(part, &request, large, HUGE_ONE);
        await(step_of(IN_THE_MIDDLE, "accepted"), 1);
        send_a_part(group, &request);
        mark(step_of(IN_THE_MIDDLE, "a part is sent"), 0);
        await("gave up", 1);
        request_wait(group->mesh, &request, deadline_after(PATIENT_MS), NULL);
    } else {
        memset(large, 9, HUGE_ONE);
        receive_a_part(part, IN_THE_MIDDLE, large);
        EXPECT_OK(ct_destroy_process_group(part));
        mark("gave up", 1);
    }
    EXPECT_OK(ct_send(group, &small, 1, CT_U8, other, TAG));
    EXPECT_OK(ct_recv(group, &small, 1, CT_U8, other, TAG, NULL));
    if (ct_rank(group) == 0)
        EXPECT_OK(ct_destroy_process_group(part));
    EXPECT_OK(ct_barrier(group, NULL));
    free(large);
}

static void with_its_group_a_message_ends_that_was_given_up_in_the_middle(void **state)
{
    (void)state;
    use_link("shm");
    run_processes(2, destroyed_in_the_middle, NULL);
    use_link("tcp");
    run_processes(2, destroyed_in_the_middle, NULL);
    use_link(NULL);
}

/* Both receives are posted when the first one, which has met the first message, gives up. */
static void posted_behind(ct_group *group, void *arg)
{
    const struct signature signature = signature_of(LARGE);
    unsigned char *first = filled(LARGE, 1), *second = filled(LARGE, 2);
    struct request requests[2];

    (void)arg;
    EXPECT_OK(ct_barrier(group, NULL));
    if (ct_rank(group) == 0) {
        start_send(group, &requests[0], first, LARGE);
        await("gave up the first", 1);
        start_send(group, &requests[1], second, LARGE);
        for (int i = 0; i < 2; i++)
            EXPECT_OK(request_wait(group->mesh, &requests[i], deadline_after(PATIENT_MS), NULL));
    } else {
        for (int i = 0; i < 2; i++)
            request_recv(group->mesh, &requests[i], group_channel(group, 1), group->ranks[0], TAG,
                         i ? second : first, LARGE, &signature);
        while (requests[0].list != &group->mesh->messages->active)
            messages_look(group->mesh);
        EXPECT(requests[1].list == &group->mesh->messages->posted);
        request_cancel(group->mesh, &requests[0]);
        mark("gave up the first", 1);
        EXPECT_OK(request_wait(group->mesh, &requests[1], deadline_after(PATIENT_MS), NULL));
        EXPECT(is_full_of(second, LARGE, 1));
        EXPECT_OK(ct_set_next_timeout(group, PATIENT_MS));
        EXPECT_OK(ct_recv(group, first, LARGE, CT_U8, 0, TAG, NULL));
        EXPECT(is_full_of(first, LARGE, 2));
    }
    EXPECT_OK(ct_barrier(group, NULL));
    free(first);
    free(second);
}

static void what_a_receive_gave_up_goes_to_the_one_that_is_posted_behind_it(void **state)
{
    (void)state;
    use_link("shm");
    run_processes(2, posted_behind, NULL);
    use_link("tcp");
    run_processes(2, posted_behind, NULL);
    use_link(NULL);
}

/* ---- The sender is gone ---------------------------------------------------------- */

/* Its message was offered: the bytes will not come. */
static void offers_and_leaves(ct_group *group, void *arg)
{
    unsigned char *large = filled(LARGE, 1);
    struct request request;
    char word = 0;

    (void)arg;
    EXPECT_OK(ct_barrier(group, NULL));
    if (ct_rank(group) == 0) {
        start_send(group, &request, large, LARGE);
        EXPECT_OK(ct_send(group, &word, 1, CT_U8, 1, TAG + 1));
        rank_leaves();
    }
    EXPECT_OK(ct_recv(group, &word, 1, CT_U8, 0, TAG + 1, NULL));
    EXPECT_ERROR(ct_recv(group, &word, 1, CT_U8, 0, TAG + 2, NULL), CT_ERR_PEER, "rank 0|gone");
    EXPECT_OK(ct_set_next_timeout(group, PATIENT_MS));
    EXPECT_ERROR(ct_recv(group, large, LARGE, CT_U8, 0, TAG, NULL), CT_ERR_PEER, "rank 0|gone");
    free(large);
}

static void what_the_dead_offered_is_not_waited_for(void **state)
{
    (void)state;
    use_link("shm");
    run_processes(2, offers_and_leaves, NULL);
    use_link("tcp");
    run_processes(2, offers_and_leaves, NULL);
    use_link(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_send_whose_limit_ended_takes_no_receive_with_it),
        cmocka_unit_test(a_receive_whose_message_was_given_up_takes_the_next_one),
        cmocka_unit_test(what_is_sent_can_be_received_though_a_receive_of_it_gave_up),
        cmocka_unit_test(with_its_group_a_message_ends_that_was_given_up_in_the_middle),
        cmocka_unit_test(what_a_receive_gave_up_goes_to_the_one_that_is_posted_behind_it),
        cmocka_unit_test(what_the_dead_offered_is_not_waited_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
