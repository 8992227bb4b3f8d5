/* SPDX-License-Identifier: Apache-2.0 */
/* test_mem_alloc.c - ct_mem_alloc: what a caller may rely on.  test_properties.c checks the results
 * of calls whose buffers lie there. */
#include "tests/marks.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/group/group.h"
#include "runtime/group/shm/shm_group_internal.h"

enum { MANY = 1 << 16 };

static void memory_is_there_and_empty(ct_group *group, void *arg)
{
    const size_t sizes[] = { 0, 1, 4096, 4097, (size_t)3 << 20 };
    unsigned char *at;

    (void)arg;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int sum = 0;

        if (!EXPECT_OK(ct_mem_alloc(group, sizes[i], (void **)&at)))
            return;
        EXPECT(at && (uintptr_t)at % 4096 == 0);
        for (size_t b = 0; b < sizes[i]; b++)
            sum |= at[b];
        EXPECT(sum == 0);
        memset(at, 0xff, sizes[i]); /* what comes next in its place is empty all the same */
        EXPECT_OK(ct_mem_free(group, at));
    }
}

static void memory_is_aligned_and_full_of_zeros(void **state)
{
    (void)state;
    run_sizes(memory_is_there_and_empty, NULL);
}

static void ranks_ask_for_different_sizes(ct_group *group, void *arg)
{
    const int p = ct_size(group), rank = ct_rank(group);
    void *at = group;
    int32_t one = 1;

    (void)arg;
    EXPECT_ERROR(ct_mem_alloc(group, rank == p - 1 ? 8192 : 4096, &at), CT_ERR_MISMATCH,
                 "asks for|8192|4096");
    EXPECT(at == NULL);
    EXPECT_OK(ct_all_reduce(group, &one, &one, 1, CT_I32, CT_SUM, NULL));
    EXPECT(one == p);
}

static void different_sizes_give_no_rank_memory_and_leave_the_group_sound(void **state)
{
    (void)state;
    run_ranks(3, ranks_ask_for_different_sizes, NULL);
}

/* One rank may map nothing more. */
static void one_cannot(ct_group *group, void *arg)
{
    struct rlimit little, before;
    void *at;
    int32_t one = 1;

    (void)arg;
    EXPECT_OK(ct_mem_alloc(group, 4096, &at)); /* what the ranks' messages need is there then */
    EXPECT_OK(ct_mem_free(group, at));
    getrlimit(RLIMIT_AS, &before);
    little = before;
    little.rlim_cur = 1 << 20;
    if (ct_rank(group) == 1) {
        setrlimit(RLIMIT_AS, &little);
        EXPECT_ERROR(ct_mem_alloc(group, (size_t)64 << 20, &at), CT_ERR_NOMEM,
                     "mem_alloc|of shared memory");
        setrlimit(RLIMIT_AS, &before);
    } else {
        EXPECT_ERROR(ct_mem_alloc(group, (size_t)64 << 20, &at), CT_ERR_NOMEM,
                     "rank 1 can't have the memory");
    }
    EXPECT(at == NULL);
    EXPECT_OK(ct_all_reduce(group, &one, &one, 1, CT_I32, CT_SUM, NULL));
    EXPECT(one == 3);
}

static void all_ranks_get_the_memory_or_none(void **state)
{
    (void)state;
    run_processes(3, one_cannot, NULL);
}

/* KiB that the memory of this host's ranks takes: the file behind it, whoever maps it. */
static long shared_kib(void)
{
    DIR *folder = opendir("/proc/self/fd");
    const struct dirent *entry;
    long blocks = 0;

    while (folder && (entry = readdir(folder))) {
        char target[64] = "";
        struct stat file;
        const int fd = atoi(entry->d_name);

        if (readlinkat(dirfd(folder), entry->d_name, target, sizeof target - 1) > 0
            && !strncmp(target, "/memfd:ct ", 10) && fstat(fd, &file) == 0)
            blocks += (long)file.st_blocks; /* of 512 bytes */
    }
    if (folder)
        closedir(folder);
    return blocks / 2;
}

static void again_and_again(ct_group *group, void *arg)
{
    const long before = shared_kib();
    void *at;

    (void)arg;
    for (int i = 0; i < 30; i++) {
        if (!EXPECT_OK(ct_mem_alloc(group, (size_t)1 << 20, &at)))
            return;
        EXPECT(shared_kib() >= before + 1024);
        if (!EXPECT_OK(ct_mem_free(group, at)))
            return;
    }
    EXPECT_OK(ct_barrier(group, NULL));
    EXPECT(shared_kib() <= before + 256);
}

static void what_is_freed_is_given_back(void **state)
{
    (void)state;
    run_processes(2, again_and_again, NULL);
}

static void not_ours(ct_group *group, void *arg)
{
    char *at, elsewhere;
    ct_group *pair;

    (void)arg;
    EXPECT_OK(ct_mem_alloc(group, 4096, (void **)&at));
    EXPECT_OK(ct_split_group(group, 0, 0, &pair));
    EXPECT_ERROR(ct_mem_free(group, &elsewhere), CT_ERR_INVALID, "is not memory of ct_mem_alloc");
    EXPECT_ERROR(ct_mem_free(group, at + 1), CT_ERR_INVALID, "is not memory of ct_mem_alloc");
    EXPECT_ERROR(ct_mem_free(pair, at), CT_ERR_INVALID, "is not memory of ct_mem_alloc");
    EXPECT_OK(ct_mem_free(group, NULL));
    EXPECT_OK(ct_mem_free(group, at));
    EXPECT_ERROR(ct_mem_free(group, at), CT_ERR_INVALID, "is not memory of ct_mem_alloc");
    EXPECT_ERROR(ct_mem_alloc(group, 4096, NULL), CT_ERR_INVALID, "NULL");
    EXPECT_ERROR(ct_mem_alloc(group, SIZE_MAX / 2, (void **)&at), CT_ERR_INVALID, "more than");
    EXPECT_OK(ct_destroy_process_group(pair));
}

/* A refused call frees nothing. */
static void while_collecting(ct_group *group, void *arg)
{
    char *at;

    (void)arg;
    EXPECT_OK(ct_mem_alloc(group, 4096, (void **)&at));
    EXPECT_OK(ct_coalesce_begin(group));
    EXPECT_ERROR(ct_mem_free(group, at), CT_ERR_INVALID, "mem_free|collects calls");
    EXPECT_OK(ct_coalesce_end(group, NULL));
    at[4095] = 1;
    EXPECT_OK(ct_mem_free(group, at));
}

static void memory_that_could_not_be_freed_is_still_there(void **state)
{
    (void)state;
    run_ranks(2, while_collecting, NULL);
}

static void only_what_the_group_was_given_can_be_freed(void **state)
{
    (void)state;
    run_ranks(2, not_ours, NULL);
}

/* Rank 1 is stopped while it folds into the buffers of rank 0, whose limit ends the call.  What it
 * writes when it goes on must not appear in memory that rank 0 uses for something else by then. */
static void stopped_at_anothers_buffer(ct_group *group, void *arg)
{
    int32_t *values;

    (void)arg;
    if (!EXPECT_OK(ct_mem_alloc(group, MANY * sizeof *values, (void **)&values)))
        return;
    for (int i = 0; i < MANY; i++)
        values[i] = 1;
    EXPECT_OK(ct_barrier(group, NULL)); /* from here on rank 1 has the time that rank 0 waits */
    if (ct_rank(group) == 1) {
        mark_number("pid", 1, getpid());
        EXPECT_OK(ct_all_reduce(group, values, values, MANY, CT_I32, CT_SUM, NULL));
        EXPECT(values[0] == 2 && values[MANY - 1] == 2); /* rank 0 had done its part */
        mark("went on", 1);
        return;
    }
    EXPECT_OK(ct_set_timeout(group, 2000));
    EXPECT_STATUS(ct_all_reduce(group, values, values, MANY, CT_I32, CT_SUM, NULL), CT_ERR_TIMEOUT);
    for (int i = 0; i < MANY; i++)
        values[i] = 7;
    kill((pid_t)number_of_mark("pid", 1), SIGCONT); /* it was marked before it was stopped */
    await("went on", 1);
    for (int i = 0; i < MANY; i++)
        if (!EXPECT(values[i] == 7))
            return;
}

static void a_buffer_is_ones_own_again_when_the_call_has_failed(void **state)
{
    (void)state;
    setenv("CT_FAULT", "rank:1,op:all_reduce,phase:2,stop", 1);
    run_processes(2, stopped_at_anothers_buffer, NULL);
    unsetenv("CT_FAULT");
}

/* An all_reduce of a second group, on a thread of its own. */
struct sound_call {
    ct_group *group;
    int32_t *values; /* [MANY]; the result behind them */
    ct_status status;
};

static void *make_sound_call(void *arg)
{
    struct sound_call *c = arg;

    c->status = ct_all_reduce(c->group, c->values, c->values + MANY, MANY, CT_I32, CT_SUM, NULL);
    return NULL;
}

static void await_rank_1_at_buffers(const ct_group *group)
{
    while (!atomic_load(&group->shm->members[1].touching))
        nap(1);
}

/* Of the group whose call fails, while rank 1 is at the buffers of both groups' calls.  Rank 0's
 * limit ends the call; rank 1 is stopped in it. */
static void fail_a_call(ct_group *group, int32_t *values, int count, int is_direct)
{
    ct_status status;

    if (ct_rank(group) == 1) {
        mark_number("pid", 1, getpid());
        status = ct_all_reduce(group, values, values, (size_t)count, CT_I32, CT_SUM, NULL);
        EXPECT(!is_direct || status == CT_OK); /* rank 0 had done its part */
        return;
    }
    EXPECT_OK(ct_set_timeout(group, 2000));
    EXPECT_STATUS(ct_all_reduce(group, values, values, (size_t)count, CT_I32, CT_SUM, NULL),
                  CT_ERR_TIMEOUT);
    kill((pid_t)number_of_mark("pid", 1), SIGCONT);
}

/* in_one_page: the buffers of both calls share a page; else each group has memory of its own. */
static void two_groups_of_which_one_fails(ct_group *group, void *in_one_page)
{
    const int p = ct_size(group), count = 2 * MANY - 100; /* which ends within a page */
    struct sound_call sound = { .status = CT_ERR_INVALID };
    int32_t *values;
    pthread_t thread;

    if (!EXPECT_OK(ct_split_group(group, 0, 0, &sound.group))
        || !EXPECT_OK(ct_mem_alloc(group, 4 * MANY * sizeof *values, (void **)&values)))
        return;
    sound.values = values + count;
    if (!in_one_page
        && !EXPECT_OK(ct_mem_alloc(sound.group, 2 * MANY * sizeof *values, (void **)&sound.values)))
        return;
    for (int i = 0; i < MANY; i++)
        sound.values[i] = ct_rank(group) + 1;
    EXPECT_OK(ct_barrier(group, NULL));
    pthread_create(&thread, NULL, make_sound_call, &sound);
    await_rank_1_at_buffers(sound.group);
    fail_a_call(group, values, count, !in_one_page);
    pthread_join(thread, NULL);
    if (EXPECT_OK(sound.status))
        for (int i = 0; i < MANY; i++)
            if (!EXPECT(sound.values[MANY + i] == p * (p + 1) / 2))
                break;
    EXPECT_OK(ct_destroy_process_group(sound.group));
}

static void run_two_groups_of_which_one_fails(const char *in_one_page)
{
    setenv("CT_FAULT",
           "rank:1,op:all_reduce,call:1,phase:2,delay:1500ms;"
           "rank:1,op:all_reduce,call:2,phase:2,stop",
           1);
    run_processes(2, two_groups_of_which_one_fails, (void *)(uintptr_t)in_one_page);
    unsetenv("CT_FAULT");
}

static void a_failed_call_leaves_the_buffers_of_another_groups_call_alone(void **state)
{
    (void)state;
    run_two_groups_of_which_one_fails(NULL);
}

static void also_where_both_have_a_part_of_one_page(void **state)
{
    (void)state;
    run_two_groups_of_which_one_fails("in one page");
}

/* A word that is counted up for as long as it takes. */
struct counted {
    volatile int64_t *word;
    _Atomic int over;
    int64_t count;
};

static void *count_up(void *arg)
{
    struct counted *c = arg;

    while (!atomic_load(&c->over))
        *c->word = ++c->count;
    return NULL;
}

/* All is cut off but half a page, the first word of which is written to meanwhile. */
static void cut_off_beside_a_word(ct_group *group, void *arg)
{
    const size_t bytes = (size_t)4 << 20;
    struct node *const node = &group->mesh->node;
    uint64_t members[NODE_SET_WORDS] = { 0 };
    char *memory;

    (void)arg;
    for (int i = 0; i < ct_size(group); i++)
        node_set_add(members, i);
    for (int i = 0; i < 10; i++) {
        struct region_offer offer = { .bytes = bytes - 2048 };
        struct counted c = { .count = 0 };
        pthread_t thread;

        if (!EXPECT_OK(ct_mem_alloc(group, bytes, (void **)&memory)))
            return;
        c.word = (int64_t *)(void *)memory;
        offer.data = memory + 2048;
        regions_offer(node, &offer, 1, members);
        EXPECT(offer.offset != 0);
        pthread_create(&thread, NULL, count_up, &c);
        nap(1);
        regions_cut_off(node, &offer, 1);
        atomic_store(&c.over, 1);
        pthread_join(thread, NULL);
        EXPECT(offer.offset == 0 && *c.word == c.count);
        EXPECT_OK(ct_mem_free(group, memory));
    }
}

static void what_is_written_while_its_page_is_cut_off_stays(void **state)
{
    (void)state;
#ifdef __SANITIZE_THREAD__
    skip(); /* it takes mmap() for a write to the page */
#endif
    run_processes(2, cut_off_beside_a_word, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_aligned_and_full_of_zeros),
        cmocka_unit_test(different_sizes_give_no_rank_memory_and_leave_the_group_sound),
        cmocka_unit_test(all_ranks_get_the_memory_or_none),
        cmocka_unit_test(what_is_freed_is_given_back),
        cmocka_unit_test(memory_that_could_not_be_freed_is_still_there),
        cmocka_unit_test(only_what_the_group_was_given_can_be_freed),
        cmocka_unit_test(a_buffer_is_ones_own_again_when_the_call_has_failed),
        cmocka_unit_test(a_failed_call_leaves_the_buffers_of_another_groups_call_alone),
        cmocka_unit_test(also_where_both_have_a_part_of_one_page),
        cmocka_unit_test(what_is_written_while_its_page_is_cut_off_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
