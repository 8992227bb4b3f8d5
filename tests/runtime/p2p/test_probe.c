/* SPDX-License-Identifier: Apache-2.0 */
/* test_probe.c - a probe says which message is there, of any size and link, and leaves it there. */
#include "tests/harness.h"

#include <stdlib.h>
#include <string.h>

enum { EAGER = 50000, LARGE = 1 << 20 }; /* elements: over sockets in pieces; an RTS comes first */

static int is(const ct_message *m, int from, int tag, size_t count, ct_dtype dtype)
{
    return m->from == from && m->tag == tag && m->count == count && m->dtype == dtype;
}

/* Rank 0 sends, rank 1 asks before it receives, once with and once without waiting. */
static void probe_then_receive(ct_group *group, void *arg)
{
    static const size_t counts[] = { 0, 1, 1000, EAGER, LARGE };
    const int tags[] = { 3, 0, 7, 8, 2147483647 };
    int32_t *block = calloc(LARGE, sizeof *block);

    (void)arg;
    for (int i = 0; i < 5; i++) { /* one at a time */
        ct_message m = { -9, -9, 9, CT_U8 };
        int found = 0;

        if (ct_rank(group) == 0) {
            for (size_t j = 0; j < counts[i]; j++)
                block[j] = (int32_t)j + i;
            EXPECT_OK(ct_send(group, block, counts[i], CT_I32, 1, tags[i]));
            EXPECT_OK(ct_barrier(group, NULL));
            continue;
        }
        EXPECT_OK(ct_probe(group, i % 2 ? 0 : CT_ANY_SOURCE, i < 2 ? tags[i] : CT_ANY_TAG, &m));
        EXPECT(is(&m, 0, tags[i], counts[i], CT_I32));
        m = (ct_message){ -9, -9, 9, CT_U8 };
        EXPECT_OK(ct_iprobe(group, CT_ANY_SOURCE, CT_ANY_TAG, &found, &m));
        EXPECT(found && is(&m, 0, tags[i], counts[i], CT_I32));
        EXPECT_OK(ct_iprobe(group, 0, tags[i] / 2 + 1, &found, NULL)); /* another tag */
        EXPECT(!found);
        EXPECT_OK(ct_recv(group, block, m.count, m.dtype, m.from, m.tag, NULL));
        EXPECT(counts[i] == 0 || block[counts[i] - 1] == (int32_t)counts[i] - 1 + i);
        EXPECT_OK(ct_iprobe(group, CT_ANY_SOURCE, CT_ANY_TAG, &found, NULL));
        EXPECT(!found);
        EXPECT_OK(ct_barrier(group, NULL));
    }
    free(block);
}

static void a_probe_describes_the_message_and_leaves_it(void **state)
{
    (void)state;
    run_ranks(2, probe_then_receive, NULL);
    use_link("tcp");
    run_ranks(2, probe_then_receive, NULL);
    use_link(NULL);
}

/* A server that is sent requests of unlike sizes by all, and an end. */
static void serve(ct_group *group, void *arg)
{
    const int p = ct_size(group), me = ct_rank(group);
    int64_t block[64] = { me, me };
    int ended = 0;

    (void)arg;
    for (int i = 1; i <= 10 && me > 0; i++)
        EXPECT_OK(ct_send(group, block, (size_t)(6 * me % 60 + 1), CT_I64, 0, i));
    if (me > 0)
        EXPECT_OK(ct_send(group, NULL, 0, CT_U8, 0, 99));
    for (int got = 0, last[MAX_RANKS] = { 0 }; me == 0 && ended < p - 1;) {
        ct_message m;

        if (!EXPECT_OK(ct_probe(group, CT_ANY_SOURCE, CT_ANY_TAG, &m)))
            break;
        EXPECT_OK(ct_recv(group, block, m.count, m.dtype, m.from, m.tag, NULL));
        ended += m.tag == 99;
        if (m.tag == 99)
            continue;
        EXPECT(m.count == (size_t)(6 * m.from % 60 + 1) && block[0] == m.from);
        EXPECT(m.tag == ++last[m.from]);
        EXPECT(++got <= 10 * (p - 1));
    }
    EXPECT_OK(ct_barrier(group, NULL));
}

static void a_server_needs_to_know_neither_sender_nor_size(void **state)
{
    (void)state;
    run_ranks(4, serve, NULL);
}

/* A receive that was posted takes its message: a probe does not see it. */
static void posted_first(ct_group *group, void *arg)
{
    int32_t in = 0, out = 5;
    ct_message m;
    ct_work *work;
    int found;

    (void)arg;
    if (ct_rank(group) == 1)
        EXPECT_OK(ct_irecv(group, &in, 1, CT_I32, 0, 1, &work));
    EXPECT_OK(ct_barrier(group, NULL));
    if (ct_rank(group) == 0) {
        EXPECT_OK(ct_send(group, &out, 1, CT_I32, 1, 1));
        out = 6;
        EXPECT_OK(ct_send(group, &out, 1, CT_I32, 1, 2));
    } else {
        EXPECT_OK(ct_probe(group, 0, CT_ANY_TAG, &m)); /* the second came behind the first */
        EXPECT(is(&m, 0, 2, 1, CT_I32));
        EXPECT_OK(ct_wait(work));
        EXPECT(in == 5);
        EXPECT_OK(ct_recv(group, &in, 1, CT_I32, 0, 2, NULL));
        EXPECT(in == 6);
    }
    if (ct_rank(group) == 0) { /* to itself */
        EXPECT_OK(ct_isend(group, &out, 1, CT_I32, 0, 4, &work));
        EXPECT_OK(ct_iprobe(group, 0, CT_ANY_TAG, &found, &m));
        EXPECT(found && is(&m, 0, 4, 1, CT_I32));
        EXPECT_OK(ct_recv(group, &in, 1, CT_I32, 0, 4, NULL));
        EXPECT_OK(ct_wait(work));
    }
    EXPECT_OK(ct_barrier(group, NULL));
}

static void a_message_that_a_receive_waits_for_is_not_seen(void **state)
{
    (void)state;
    run_ranks(2, posted_first, NULL);
}

static void what_fails(ct_group *group, void *arg)
{
    int found = 7;

    (void)arg;
    if (ct_rank(group) == 0) {
        EXPECT_ERROR(ct_probe(group, 2, 0, NULL), CT_ERR_INVALID, "probe: rank 2 is not in 0..1");
        EXPECT_ERROR(ct_probe(group, 1, -2, NULL), CT_ERR_INVALID, "CT_ANY_TAG");
        EXPECT_ERROR(ct_iprobe(group, 1, 0, NULL, NULL), CT_ERR_INVALID,
                     "iprobe: the pointer for the result is NULL");
        EXPECT_ERROR(ct_recv(group, &found, 1, CT_I32, 1, CT_ANY_TAG, NULL), CT_ERR_INVALID,
                     "tag -1");
        EXPECT_OK(ct_set_next_timeout(group, 20));
        EXPECT_ERROR(ct_probe(group, 1, CT_ANY_TAG, NULL), CT_ERR_TIMEOUT,
                     "probe for a message from rank 1 (tag any) on group|timed out after");
        EXPECT_OK(ct_set_next_timeout(group, 20));
        EXPECT_ERROR(ct_probe(group, CT_ANY_SOURCE, 4, NULL), CT_ERR_TIMEOUT,
                     "probe for a message from anybody (tag 4)");
    }
    EXPECT_OK(ct_barrier(group, NULL));
    if (ct_rank(group) == 1)
        rank_leaves();
    EXPECT_ERROR(ct_probe(group, 1, 0, NULL), CT_ERR_PEER,
                 "probe for a message from rank 1|is gone");
    EXPECT_ERROR(ct_iprobe(group, 1, 0, &found, NULL), CT_ERR_PEER, "rank 1");
    EXPECT(found == 0);
}

static void a_timeout_breaks_nothing_and_a_death_is_said(void **state)
{
    (void)state;
    run_processes(2, what_fails, NULL);
    use_link("tcp");
    run_processes(2, what_fails, NULL);
    use_link(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_probe_describes_the_message_and_leaves_it),
        cmocka_unit_test(a_server_needs_to_know_neither_sender_nor_size),
        cmocka_unit_test(a_message_that_a_receive_waits_for_is_not_seen),
        cmocka_unit_test(a_timeout_breaks_nothing_and_a_death_is_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
