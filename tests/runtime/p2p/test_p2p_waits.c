/* SPDX-License-Identifier: Apache-2.0 */
/* test_p2p_waits.c - how long a receive waits, and a request takes, when other threads have the
 * lock, other ranks are gone, or there are thousands of groups; and what the progress thread does
 * meanwhile. */
#include "tests/marks.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "runtime/group/group.h"
#include "runtime/messaging/group_channel.h"
#include "runtime/messaging/messaging_internal.h"

/* ---- Another thread has the lock ------------------------------------------------- */

enum { ASLEEP_MS = 30, HELD_MS = 10, ROUNDS = 10 };

static struct transport *receivers; /* rank 0's */
static _Atomic int64_t let_go_us;

static int64_t now_us(void)
{
    return (int64_t)(now_ms() * 1000);
}

/* Rank 1 has rank 0's lock while it rings rank 0's bell, as a thread of rank 0 that had looked just
 * before and then leaves. */
static void held_up(ct_group *group, void *arg)
{
    int64_t late_us = 0;
    char byte = 0;

    (void)arg;
    if (ct_rank(group) == 0)
        receivers = group->mesh->transport;
    EXPECT_OK(ct_barrier(group, NULL));
    for (int i = 0; i < ROUNDS && ct_rank(group) == 1; i++) {
        nap(ASLEEP_MS);
        pthread_mutex_lock(&receivers->lock);
        EXPECT_OK(ct_send(group, &byte, 1, CT_U8, 0, i));
        nap(HELD_MS);
        atomic_store(&let_go_us, now_us());
        pthread_mutex_unlock(&receivers->lock);
        EXPECT_OK(ct_recv(group, &byte, 1, CT_U8, 0, i, NULL));
    }
    for (int i = 0; i < ROUNDS && ct_rank(group) == 0; i++) {
        EXPECT_OK(ct_recv(group, &byte, 1, CT_U8, 1, i, NULL));
        late_us += now_us() - atomic_load(&let_go_us);
        EXPECT_OK(ct_send(group, &byte, 1, CT_U8, 1, i));
    }
    EXPECT(late_us < ROUNDS * 45000); /* else some 90 ms each: the rest of a sleep */
    EXPECT_OK(ct_barrier(group, NULL));
}

static void a_look_that_finds_the_lock_taken_is_made_up_for(void **state)
{
    (void)state;
    use_link("shm");
    run_threads(2, held_up, NULL);
    use_link(NULL);
}

/* ---- Thousands of groups --------------------------------------------------------- */

enum { GROUPS = 20000, REQUESTS = 2000 };

/* Of one of them rank 1 has destroyed its part. */
static void among_many_groups(ct_group *group, void *arg)
{
    static const int ranks[] = { 0, 1 };
    const struct signature signature = { .operation = OPERATION_SEND, .op = -1, .root = -1 };
    struct channel *channels = calloc(GROUPS, sizeof *channels);
    struct messages *m = group->mesh->messages;
    struct frame leave = { .magic = FRAME_MAGIC, .kind = FRAME_GOODBYE };
    struct request request;
    double start;

    (void)arg;
    for (uint64_t i = 0; i < GROUPS; i++) { /* ids as hashes are */
        channels[i] =
            (struct channel){ .id = (i + 1) * 0x9e3779b97f4a7c15u * 2, .ranks = ranks, .size = 2 };
        channel_open(group->mesh, &channels[i]);
    }
    pthread_mutex_lock(&group->mesh->transport->lock);
    leave.channel = channels[1].id;
    goodbye_arrived(group->mesh, &leave, 1);
    EXPECT(m->left_channels == 1);
    pthread_mutex_unlock(&group->mesh->transport->lock);
    start = now_ms();
    for (int i = 0; i < REQUESTS; i++) {
        request_recv(group->mesh, &request, channels[0].id, 0, i, NULL, 0, &signature);
        EXPECT(!atomic_load(&request.done));
        request_cancel(group->mesh, &request);
    }
    EXPECT(now_ms() - start < 1000);
    for (int i = GROUPS; i-- > 0;)
        channel_close(group->mesh, &channels[i]);
    EXPECT(m->left_channels == 0 && channel_find(m, leave.channel) == NULL);
    free(channels);
}

static void a_group_that_a_member_left_makes_no_request_of_others_slow(void **state)
{
    (void)state;
    run_processes(1, among_many_groups, NULL);
}

/* ---- Others are gone ------------------------------------------------------------- */

enum { PATIENT_MS = 8000 };

/* They say nothing before: how they leave is all there is to see. */
static void only_one_is_left(ct_group *group, void *arg)
{
    const int dies = arg != NULL;
    double start;
    char byte = 0;

    EXPECT_OK(ct_barrier(group, NULL));
    if (ct_rank(group) > 0 && dies)
        rank_leaves();
    if (ct_rank(group) > 0)
        return;
    EXPECT_OK(ct_set_next_timeout(group, PATIENT_MS));
    start = now_ms();
    EXPECT_ERROR(ct_recv(group, &byte, 1, CT_U8, CT_ANY_SOURCE, 0, NULL), CT_ERR_PEER,
                 "recv|from anybody|no other rank of the group is left: rank");
    EXPECT(now_ms() - start < PATIENT_MS / 2);
}

static void a_receive_from_any_rank_ends_when_all_others_are_gone(void **state)
{
    static const char *const links[] = { "shm", "tcp" };

    (void)state;
    for (int i = 0; i < 2; i++) {
        use_link(links[i]);
        for (int p = 2; p <= 3; p++) {
            run_processes(p, only_one_is_left, NULL);
            run_processes(p, only_one_is_left, (void *)(uintptr_t) "they die");
        }
    }
    use_link(NULL);
}

/* One of the others lives, and is slow. */
static void one_may_still_send(ct_group *group, void *arg)
{
    int from = -1;
    char byte = 5;

    (void)arg;
    EXPECT_OK(ct_barrier(group, NULL));
    if (ct_rank(group) == 1)
        rank_leaves();
    if (ct_rank(group) == 2) {
        nap(500);
        EXPECT_OK(ct_send(group, &byte, 1, CT_U8, 0, 0));
        return;
    }
    EXPECT_OK(ct_recv(group, &byte, 1, CT_U8, CT_ANY_SOURCE, 0, &from));
    EXPECT(from == 2);
}

static void and_not_while_one_may_still_send(void **state)
{
    (void)state;
    use_link("shm");
    run_processes(3, one_may_still_send, NULL);
    use_link("tcp");
    run_processes(3, one_may_still_send, NULL);
    use_link(NULL);
}

/* Rank 1 has left when it is sent more than a ring takes; its process stays for a while, or not. */
static void destroys_last(ct_group *group, void *arg)
{
    enum { MESSAGES = 16, BYTES = 32 << 10 };
    char *data = calloc(MESSAGES, BYTES), path[128];
    ct_work *works[MESSAGES];
    double start;

    EXPECT_OK(ct_barrier(group, NULL));
    path_of(path, sizeof path, arg, 1);
    if (ct_rank(group) == 1) {
        EXPECT_OK(ct_destroy_process_group(group));
        close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
        nap(!strcmp(arg, "stays") ? 3000 : 0);
        rank_leaves();
    }
    while (access(path, F_OK) != 0)
        nap(2);
    nap(!strcmp(arg, "stays") ? 0 : 100);
    for (int i = 0; i < MESSAGES; i++)
        ct_isend(group, data + (size_t)i * BYTES, BYTES, CT_U8, 1, i, &works[i]);
    start = now_ms();
    EXPECT_OK(ct_destroy_process_group(group));
    EXPECT(now_ms() - start < 2500); /* 10 s, before */
    rank_leaves();
}

static void who_leaves_last_waits_for_none_that_left(void **state)
{
    (void)state;
    use_link("shm");
    run_processes(2, destroys_last, (void *)(uintptr_t) "stays");
    run_processes(2, destroys_last, (void *)(uintptr_t) "ends");
    use_link(NULL);
}

/* ---- A goodbye to a rank to which there is no connection --------------------------------- */

enum { NO_MATTER_MS = 1500, BEFORE = 1, AFTER = 2 };

/* Rank 2 destroys a group in which it never sent anything to rank 1, who waits for it, or begins to
 * wait later. */
static void leave_unheard(ct_group *group, void *arg)
{
    const int when = *(const int *)arg;
    const int all[] = { 0, 1, 2 };
    const ct_group_options options = { sizeof options, NULL, NULL, -1, group, 0, NULL };
    ct_group *sub = NULL;
    double start;
    char byte;

    EXPECT_OK(ct_new_group_with(all, 3, &options, &sub));
    EXPECT_OK(ct_barrier(group, NULL));
    nap((ct_rank(group) == 2) == (when == AFTER) ? 0 : 50);
    if (ct_rank(group) == 1) {
        start = now_ms();
        EXPECT_ERROR(ct_recv(sub, &byte, 1, CT_U8, 2, 0, NULL), CT_ERR_PEER,
                     "rank 2 (pid|has destroyed the group");
        EXPECT(now_ms() - start < NO_MATTER_MS);
    }
    EXPECT_OK(ct_destroy_process_group(sub));
    EXPECT_OK(ct_barrier(group, NULL));
    if (ct_rank(group) != 1)
        return; /* the harness destroys its group */
    start = now_ms();
    EXPECT_ERROR(ct_recv(group, &byte, 1, CT_U8, 2, 0, NULL), CT_ERR_PEER,
                 "rank 2 (pid|has destroyed the group");
    EXPECT(now_ms() - start < NO_MATTER_MS);
}

static void a_rank_that_never_sent_anything_is_heard_to_leave(void **state)
{
    int when[] = { BEFORE, AFTER };

    (void)state;
    use_link("shm");
    for (int i = 0; i < 2; i++) {
        run_processes(3, leave_unheard, &when[i]);
        run_threads(3, leave_unheard, &when[i]);
    }
    use_link(NULL);
}

/* What was sent before a goodbye is received, also if it is the first that was ever sent. */
static void send_and_leave(ct_group *group, void *arg)
{
    int32_t value = 7;

    (void)arg;
    if (ct_rank(group) == 1) {
        EXPECT_OK(ct_send(group, &value, 1, CT_I32, 0, 0));
        return;
    }
    nap(50);
    value = 0;
    EXPECT_OK(ct_recv(group, &value, 1, CT_I32, 1, 0, NULL));
    EXPECT(value == 7);
    EXPECT_ERROR(ct_recv(group, &value, 1, CT_I32, 1, 0, NULL), CT_ERR_PEER, "rank 1 (pid");
}

static void what_it_sent_before_it_left_is_received(void **state)
{
    (void)state;
    run_ranks(2, send_and_leave, NULL);
}

/* ---- A send that timed out ------------------------------------------------------- */

enum { THE_END = 255, MOST_SENDS = 250 };

/* While rank 1 reads nothing, rank 0 sends the numbers 0, 1, ... until a send times out.  Then it
 * sends that number again. */
static void again(ct_group *group, void *arg)
{
    const size_t bytes = *(const size_t *)arg;
    unsigned char *data = malloc(bytes);
    ct_status status = CT_OK;
    int next = 0;

    if (ct_rank(group) == 1)
        await("gave up", 0);
    while (ct_rank(group) == 0 && status == CT_OK && next < MOST_SENDS) {
        memset(data, next, bytes);
        EXPECT_OK(ct_set_next_timeout(group, 100));
        status = ct_send(group, data, bytes, CT_U8, 1, 0);
        next += status == CT_OK;
    }
    if (ct_rank(group) == 0)
        mark("gave up", 0);
    if (ct_rank(group) == 0) {
        EXPECT(status == CT_ERR_TIMEOUT);
        for (int i = 0; i < 2; i++) {
            memset(data, i == 0 ? next : THE_END, bytes);
            EXPECT_OK(ct_send(group, data, bytes, CT_U8, 1, 0));
        }
    } else {
        do {
            EXPECT_OK(ct_recv(group, data, bytes, CT_U8, 0, 0, NULL));
        } while (data[0] != THE_END && EXPECT(data[0] == next++ && data[bytes - 1] == data[0]));
    }
    free(data);
}

static void a_send_that_timed_out_is_not_received(void **state)
{
    static const size_t sizes[] = { 20000,  EAGER_BYTES, EAGER_BYTES + 1, 100000,
                                    200000, EAGER_MOST,  EAGER_MOST + 1 };

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        use_link("shm");
        run_processes(2, again, (void *)(uintptr_t)&sizes[i]);
        use_link("tcp");
        run_processes(2, again, (void *)(uintptr_t)&sizes[i]);
    }
    use_link(NULL);
}

/* ---- The progress thread ---------------------------------------------------------- */

enum { EXCHANGES = 10000, EXCHANGE_BYTES = 16384 };

/* How often the threads of this process, except the calling one, have gone to sleep. */
static long sleeps_of_other_threads(void)
{
    struct rusage process, thread;

    getrusage(RUSAGE_SELF, &process);
    getrusage(RUSAGE_THREAD, &thread);
    return process.ru_nvcsw - thread.ru_nvcsw;
}

static void exchange_at_once(ct_group *group, void *arg)
{
    static char in[EXCHANGE_BYTES], out[EXCHANGE_BYTES];
    const int other = 1 - ct_rank(group);
    long slept = sleeps_of_other_threads();
    const double began = now_ms();

    (void)arg;
    for (int i = 0; i < EXCHANGES; i++) {
        ct_work *receive, *send;

        EXPECT_OK(ct_irecv(group, in, sizeof in, CT_U8, other, 0, &receive));
        EXPECT_OK(ct_isend(group, out, sizeof out, CT_U8, other, 0, &send));
        EXPECT_OK(ct_wait(receive));
        EXPECT_OK(ct_wait(send));
    }
    slept = sleeps_of_other_threads() - slept;
    EXPECT(slept < 100 + 5 * (long)(now_ms() - began)); /* else one in two to five exchanges */
}

static void the_progress_thread_rests_while_requests_are_waited_for_at_once(void **state)
{
    (void)state;
    use_link("shm");
    run_processes(2, exchange_at_once, NULL);
    use_link("tcp");
    run_processes(2, exchange_at_once, NULL);
    use_link(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_look_that_finds_the_lock_taken_is_made_up_for),
        cmocka_unit_test(a_group_that_a_member_left_makes_no_request_of_others_slow),
        cmocka_unit_test(a_receive_from_any_rank_ends_when_all_others_are_gone),
        cmocka_unit_test(and_not_while_one_may_still_send),
        cmocka_unit_test(who_leaves_last_waits_for_none_that_left),
        cmocka_unit_test(a_rank_that_never_sent_anything_is_heard_to_leave),
        cmocka_unit_test(what_it_sent_before_it_left_is_received),
        cmocka_unit_test(a_send_that_timed_out_is_not_received),
        cmocka_unit_test(the_progress_thread_rests_while_requests_are_waited_for_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
