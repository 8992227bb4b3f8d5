/* SPDX-License-Identifier: Apache-2.0 */
/* test_group.c - groups made from groups: their members, the order of these, which ranks may call,
 * and what is left when the groups are destroyed.
 *
 * A group is known to work when every member r gives r + 1 and all get p(p+1)/2 of that group. */
#include "tests/harness.h"

#include <pthread.h>
#include <string.h>

static int works(ct_group *group)
{
    const int p = ct_size(group);
    int32_t value = ct_rank(group) + 1;

    return EXPECT_OK(ct_all_reduce(group, &value, &value, 1, CT_I32, CT_SUM, NULL))
           && EXPECT(value == p * (p + 1) / 2);
}

static ct_group_options inside(ct_group *parent)
{
    ct_group_options options = CT_GROUP_OPTIONS_INIT;

    options.parent = parent;
    return options;
}

/* ---- Who is in ------------------------------------------------------------ */

static void nothing_works(ct_group *group)
{
    int32_t a = 1, b = 2;
    ct_work *work = NULL;

    EXPECT(ct_rank(group) == -1);
    EXPECT_ERROR(ct_barrier(group, NULL), CT_ERR_NOT_MEMBER, "barrier");
    EXPECT_ERROR(ct_all_reduce(group, &a, &b, 1, CT_I32, CT_SUM, NULL), CT_ERR_NOT_MEMBER,
                 "all_reduce");
    EXPECT_STATUS(ct_broadcast(group, &a, 1, CT_I32, 0, &work), CT_ERR_NOT_MEMBER);
    EXPECT_STATUS(ct_send(group, &a, 1, CT_I32, 0, 0), CT_ERR_NOT_MEMBER);
    EXPECT_STATUS(ct_irecv(group, &a, 1, CT_I32, 0, 0, &work), CT_ERR_NOT_MEMBER);
    EXPECT_STATUS(ct_abort(group), CT_ERR_NOT_MEMBER);
    EXPECT(a == 1 && b == 2 && work == NULL);
}

static void even_ranks(ct_group *world, void *arg)
{
    const int p = ct_size(world), me = ct_rank(world);
    const ct_group_options options = inside(world);
    int list[MAX_RANKS], n = 0;
    ct_group *even = NULL;

    (void)arg;
    for (int r = 0; r < p; r += 2)
        list[n++] = r;
    if (!EXPECT_OK(ct_new_group_with(list, n, &options, &even)))
        return;
    EXPECT(ct_size(even) == n);
    EXPECT(ct_group_rank(even, 2) == 1 && ct_group_rank(even, 1) == -1);
    EXPECT(ct_global_rank(even, 1) == 2 && ct_global_rank(even, n) == -1);
    EXPECT(memcmp(ct_group_ranks(even), list, (size_t)n * sizeof *list) == 0);
    if (me % 2 == 0)
        EXPECT(ct_rank(even) == me / 2 && works(even));
    else
        nothing_works(even);
    EXPECT_OK(ct_destroy_process_group(even));
    works(world);
}

static void a_rank_not_on_the_list_gets_a_handle_that_refuses_all(void **state)
{
    (void)state;
    run_ranks(5, even_ranks, NULL);
}

/* The list is p-1 ... 0, so rank r is p-1-r there, and root 0 is the last rank. */
static void reversed(ct_group *world, void *arg)
{
    const int p = ct_size(world), me = ct_rank(world);
    const ct_group_options options = inside(world);
    int list[MAX_RANKS];
    int32_t root = me;
    ct_group *group = NULL;

    (void)arg;
    for (int i = 0; i < p; i++)
        list[i] = p - 1 - i;
    if (!EXPECT_OK(ct_new_group_with(list, p, &options, &group)))
        return;
    EXPECT(ct_rank(group) == p - 1 - me && ct_global_rank(group, 0) == p - 1);
    EXPECT_OK(ct_broadcast(group, &root, 1, CT_I32, 0, NULL));
    EXPECT(root == p - 1);
    works(group);
    EXPECT_OK(ct_destroy_process_group(group));
}

static void the_order_of_the_list_is_the_order_of_the_ranks(void **state)
{
    (void)state;
    run_ranks(4, reversed, NULL);
}

/* Of 0..5 the odd ones {1,3,5}; of those the last two, {3,5}: ranks 1 and 2 there. */
static void group_of_group(ct_group *world, void *arg)
{
    static const int odd[] = { 1, 3, 5 }, last[] = { 1, 2 };
    ct_group_options options = inside(world);
    ct_group *outer = NULL, *inner = NULL;

    (void)arg;
    if (!EXPECT_OK(ct_new_group_with(odd, 3, &options, &outer)))
        return;
    options.parent = outer;
    if (ct_rank(outer) < 0) {
        EXPECT_STATUS(ct_new_group_with(last, 2, &options, &inner), CT_ERR_NOT_MEMBER);
    } else if (EXPECT_OK(ct_new_group_with(last, 2, &options, &inner))) {
        EXPECT(ct_rank(inner) == ct_rank(outer) - 1 || ct_rank(outer) == 0);
        EXPECT(ct_global_rank(inner, 0) == 3 && ct_global_rank(inner, 1) == 5);
        if (ct_rank(inner) >= 0)
            works(inner);
        EXPECT_OK(ct_destroy_process_group(inner));
        works(outer);
    }
    EXPECT_OK(ct_destroy_process_group(outer));
}

static void a_group_is_made_of_a_group(void **state)
{
    (void)state;
    run_ranks(6, group_of_group, NULL);
}

/* Key -r: the groups of both colors are in falling order; the last rank is in none. */
static void split(ct_group *world, void *arg)
{
    const int p = ct_size(world), me = ct_rank(world), color = me == p - 1 ? -1 : me % 2;
    ct_group *group = NULL, *same = NULL;

    (void)arg;
    if (!EXPECT_OK(ct_split_group(world, color, -me, &group)))
        return;
    if (color < 0) {
        nothing_works(group);
    } else {
        EXPECT(ct_size(group) == (p - color) / 2);
        for (int r = 0; r < ct_size(group); r++)
            EXPECT(ct_global_rank(group, r) % 2 == color
                   && (r == 0 || ct_global_rank(group, r) < ct_global_rank(group, r - 1)));
        works(group);
    }
    EXPECT_OK(ct_split_group(world, 7, 0, &same)); /* equal keys: by rank */
    EXPECT(ct_rank(same) == me && ct_size(same) == p && works(same));
    EXPECT_OK(ct_destroy_process_group(same));
    EXPECT_OK(ct_destroy_process_group(group));
}

static void a_split_orders_each_color_by_key_then_rank(void **state)
{
    (void)state;
    run_ranks(5, split, NULL);
}

static void subgroups(ct_group *unused, void *arg)
{
    ct_group *pair = NULL;

    (void)unused;
    (void)arg;
    if (!EXPECT_OK(ct_init_process_group(NULL)))
        return;
    EXPECT_OK(ct_new_subgroups(2, &pair));
    EXPECT(ct_size(pair) == 2 && ct_rank(pair) == program_rank() % 2 && works(pair));
    EXPECT_ERROR(ct_new_subgroups(3, &pair), CT_ERR_INVALID, "3|4");
    EXPECT_OK(ct_destroy_process_group(CT_WORLD)); /* and the pair with it */
}

static void subgroups_cut_the_world_into_consecutive_pieces(void **state)
{
    (void)state;
    run_programs(4, subgroups, NULL);
}

/* ---- Who calls ------------------------------------------------------------ */

/* Ranks 0 and 2 make two groups of the same list while rank 1 makes none. */
static void members_only(ct_group *world, void *arg)
{
    static const int list[] = { 2, 0 };
    ct_group_options options = inside(world);
    ct_group *one = NULL, *two = NULL;

    (void)arg;
    options.local_sync = 1;
    options.name = "ends";
    if (ct_rank(world) != 1 && EXPECT_OK(ct_new_group_with(list, 2, &options, &one))
        && EXPECT_OK(ct_new_group_with(list, 2, &options, &two))) {
        EXPECT(ct_rank(one) == (ct_rank(world) == 0));
        works(two);
        works(one);
        EXPECT_OK(ct_destroy_process_group(one));
        EXPECT_OK(ct_destroy_process_group(two));
    }
    works(world);
}

static void with_local_sync_only_the_members_call(void **state)
{
    (void)state;
    run_ranks(3, members_only, NULL);
}

static void wrong_lists(ct_group *world, void *arg)
{
    static const int twice[] = { 0, 1, 0 }, outside[] = { 0, 3 }, negative[] = { -1 };
    const ct_group_options options = inside(world);
    ct_group *group = NULL;

    (void)arg;
    EXPECT_ERROR(ct_new_group_with(twice, 3, &options, &group), CT_ERR_INVALID, "rank 0|twice");
    EXPECT_ERROR(ct_new_group_with(outside, 2, &options, &group), CT_ERR_INVALID, "rank 3");
    EXPECT_ERROR(ct_new_group_with(negative, 1, &options, &group), CT_ERR_INVALID, "rank -1");
    EXPECT_STATUS(ct_new_group_with(twice, 0, &options, &group), CT_ERR_INVALID);
    EXPECT_STATUS(ct_new_group_with(NULL, 2, &options, &group), CT_ERR_INVALID);
    EXPECT(group == NULL);
    works(world);
}

static void a_rank_twice_or_outside_is_refused_and_nothing_broken(void **state)
{
    (void)state;
    run_ranks(3, wrong_lists, NULL);
}

/* Rank 2 lists {1,0}, the others {0,1}. */
static void other_lists(ct_group *world, void *arg)
{
    static const int here[] = { 0, 1 }, there[] = { 1, 0 };
    const ct_group_options options = inside(world);
    ct_group *group = NULL;

    (void)arg;
    EXPECT_ERROR(ct_new_group_with(ct_rank(world) == 2 ? there : here, 2, &options, &group),
                 CT_ERR_MISMATCH, "ct_new_group|list");
    EXPECT(group == NULL);
}

static void different_lists_are_a_mismatch(void **state)
{
    (void)state;
    run_ranks(3, other_lists, NULL);
}

/* ---- What stays ----------------------------------------------------------- */

/* The kernel lists a thread a moment longer than pthread_join() waits for it. */
static int threads_fall_to(int threads)
{
    for (int i = 0; i < 2000 && open_threads() > threads; i++)
        nap(1);
    return open_threads() <= threads;
}

static void many(ct_group *world, void *arg)
{
    static const int list[] = { 2, 1, 0 };
    const ct_group_options options = inside(world);
    int descriptors = 0, threads = 0;

    (void)arg;
    for (int i = 0; i < 200; i++) {
        ct_group *group = NULL;
        ct_work *work = NULL;

        if (i == 2) { /* what the first two needed is there to stay */
            descriptors = open_descriptors();
            threads = open_threads();
        }
        if (!EXPECT_OK(ct_new_group_with(list, i % 2 ? 3 : 2, &options, &group)))
            return;
        if (ct_rank(group) >= 0) {
            EXPECT_OK(ct_barrier(group, &work));
            EXPECT_OK(ct_wait(work));
            works(group);
        }
        EXPECT_OK(ct_destroy_process_group(group));
    }
    EXPECT(open_descriptors() <= descriptors);
    EXPECT(threads_fall_to(threads));
}

static void two_hundred_groups_leave_nothing_open(void **state)
{
    (void)state;
    run_processes(3, many, NULL);
    use_link("tcp");
    run_processes(3, many, NULL);
    use_link(NULL);
}

struct side {
    ct_group *group;
    int wrong; /* results that were not the expected one */
};

/* No EXPECT() here: it is not the rank's own thread. */
static void *three_hundred_sums(void *arg)
{
    struct side *side = arg;
    const int p = ct_size(side->group), me = ct_rank(side->group);

    for (int i = 0; i < 300; i++) {
        int32_t value = (me + 1) * (i + 1);

        side->wrong += ct_all_reduce(side->group, &value, &value, 1, CT_I32, CT_SUM, NULL) != CT_OK
                       || value != (i + 1) * p * (p + 1) / 2;
    }
    return NULL;
}

static void two_threads(ct_group *world, void *arg)
{
    struct side sides[2] = { { NULL, 0 }, { world, 0 } };
    pthread_t thread;

    (void)arg;
    if (!EXPECT_OK(ct_split_group(world, 0, 0, &sides[0].group)))
        return;
    if (EXPECT(pthread_create(&thread, NULL, three_hundred_sums, &sides[0]) == 0)) {
        three_hundred_sums(&sides[1]);
        pthread_join(thread, NULL);
    }
    EXPECT(sides[0].wrong == 0 && sides[1].wrong == 0);
    EXPECT_OK(ct_destroy_process_group(sides[0].group));
}

static void two_threads_use_two_groups_at_once(void **state)
{
    (void)state;
    run_ranks(3, two_threads, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rank_not_on_the_list_gets_a_handle_that_refuses_all),
        cmocka_unit_test(the_order_of_the_list_is_the_order_of_the_ranks),
        cmocka_unit_test(a_group_is_made_of_a_group),
        cmocka_unit_test(a_split_orders_each_color_by_key_then_rank),
        cmocka_unit_test(subgroups_cut_the_world_into_consecutive_pieces),
        cmocka_unit_test(with_local_sync_only_the_members_call),
        cmocka_unit_test(a_rank_twice_or_outside_is_refused_and_nothing_broken),
        cmocka_unit_test(different_lists_are_a_mismatch),
        cmocka_unit_test(two_hundred_groups_leave_nothing_open),
        cmocka_unit_test(two_threads_use_two_groups_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
