/* SPDX-License-Identifier: Apache-2.0 */
/* snippets.c - each function of libct in a few lines, which its page of the manual shows.
 *
 *     ctrun --nproc-per-node=2 build/bin/snippets
 *
 * The comment of an example names the functions that it is for.  The program runs all examples but
 * those that need a GPU. */
#include <ct.h>
#include <ct_cuda.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;

/* ct_strerror(), ct_last_error() */
static void check(ct_status status)
{
    if (status == CT_OK)
        return;
    fprintf(stderr, "rank %d: %s: %s\n", rank, ct_strerror(status), ct_last_error());
    exit(1);
}

/* ---- Start and end --------------------------------------------------------- */

/* ct_init_process_group(), ct_rank(), ct_size() */
static void start(void)
{
    ct_init_options options = CT_INIT_OPTIONS_INIT;

    options.timeout_ms = 60000;
    check(ct_init_process_group(&options));
    rank = ct_rank(CT_WORLD);
    size = ct_size(CT_WORLD);
}

/* ct_destroy_process_group(), ct_is_initialized() */
static void end(void)
{
    if (ct_is_initialized())
        check(ct_destroy_process_group(CT_WORLD));
}

/* ct_version(), ct_backend(), ct_local_rank(), ct_restart_count() */
static void facts(void)
{
    if (rank == 0)
        printf("libct %s, backend %s\n", ct_version(), ct_backend(CT_WORLD));
    if (ct_local_rank() == 0 && ct_restart_count() > 0)
        printf("start %d of the program\n", ct_restart_count() + 1);
}

/* The ranks that spawn() starts run this function. */
static int child(int number, int ranks, void *arg)
{
    (void)arg;
    printf("rank %d of %d was spawned\n", number, ranks);
    return 0;
}

/* ct_spawn() */
static void spawn(void)
{
    int code = ct_spawn(2, child, NULL);

    if (code != 0)
        fprintf(stderr, "exit code %d: %s\n", code, ct_last_error());
}

/* ct_set_timeout(), ct_set_next_timeout() */
static void timeouts(void)
{
    check(ct_set_timeout(CT_WORLD, 30000));       /* 30 s for each call */
    check(ct_set_next_timeout(CT_WORLD, 600000)); /* 10 min for the next */
    check(ct_barrier(CT_WORLD, NULL));
}

/* ---- Types ----------------------------------------------------------------- */

/* ct_convert(), ct_dtype_size() */
static void convert(void)
{
    const float from[3] = { 1, 2.5f, -3 };
    unsigned char to[6]; /* 3 * ct_dtype_size(CT_BF16) */

    check(ct_convert(from, CT_F32, to, CT_BF16, sizeof to / ct_dtype_size(CT_BF16)));
}

/* ct_op_premul(), ct_op_free() */
static void weighted_sum(void)
{
    const double weight = 1.0 / (rank + 1);
    double x = 12;
    ct_op op;

    check(ct_op_premul(&weight, CT_F64, &op));
    check(ct_all_reduce(CT_WORLD, &x, &x, 1, CT_F64, op, NULL)); /* 12 + 6 + 4 + ... */
    check(ct_op_free(op));
}

/* ---- Groups ---------------------------------------------------------------- */

/* ct_new_group() */
static void pair(void)
{
    const int ranks[2] = { 1, 0 }; /* rank 1 of the world is rank 0 of the group */
    int x = rank;
    ct_group *group;

    check(ct_new_group(ranks, 2, &group)); /* all ranks of the world call it */
    if (ct_rank(group) >= 0)
        check(ct_broadcast(group, &x, 1, CT_I32, 0, NULL));
    check(ct_destroy_process_group(group));
}

/* ct_new_group_with() */
static void named_pair(void)
{
    ct_group_options options = CT_GROUP_OPTIONS_INIT;
    const int ranks[2] = { 0, 1 };
    ct_group *group;

    options.name = "pair";
    options.timeout_ms = 5000;
    options.local_sync = 1; /* only ranks 0 and 1 call it */
    if (rank < 2) {
        check(ct_new_group_with(ranks, 2, &options, &group));
        check(ct_barrier(group, NULL));
        check(ct_destroy_process_group(group));
    }
}

/* ct_split_group(), ct_global_rank(), ct_group_rank(), ct_group_ranks() */
static void rows(void)
{
    const int columns = 2;
    ct_group *row;

    check(ct_split_group(CT_WORLD, rank / columns, rank, &row));
    printf("the first rank of my row is rank %d of the world\n", ct_global_rank(row, 0));
    if (ct_group_rank(row, 0) >= 0)
        printf("rank 0 of the world is in my row, like rank %d\n",
               ct_group_ranks(row)[ct_size(row) - 1]);
    check(ct_destroy_process_group(row));
}

/* ct_new_subgroups() */
static void subgroups(void)
{
    ct_group *group;

    check(ct_new_subgroups(2, &group)); /* ranks 0 and 1, ranks 2 and 3, ... */
    check(ct_barrier(group, NULL));
    check(ct_destroy_process_group(group));
}

/* ct_create_group(), ct_abort() */
static void separate_group(void)
{
    ct_store *store;
    ct_group *group;

    check(ct_store_prefix(ct_store_default(), "separate", &store));
    check(ct_create_group(store, rank, size, NULL, &group));
    check(ct_store_close(store));
    check(ct_abort(group)); /* CT_WORLD is not broken */
    check(ct_destroy_process_group(group));
}

/* ct_shrink_group() */
static void shrink(void)
{
    ct_group *survivors;

    check(ct_shrink_group(CT_WORLD, 5000, &survivors)); /* after a call returned CT_ERR_PEER */
    check(ct_barrier(survivors, NULL));
    check(ct_destroy_process_group(survivors));
}

/* ct_should_stop() */
static void train(void)
{
    for (int step = 0; step < 10; step++) {
        const int stop = ct_should_stop(CT_WORLD);

        if (stop < 0)
            check((ct_status)stop);
        if (stop)
            break; /* all ranks leave the loop at the same step; write a checkpoint here */
    }
}

/* ---- Collectives ------------------------------------------------------------- */

static int *ints(int count)
{
    int *memory = calloc((size_t)count, sizeof *memory);

    if (!memory)
        check(CT_ERR_NOMEM);
    return memory;
}

/* ct_broadcast(), ct_reduce(), ct_all_reduce() */
static void reductions(void)
{
    float x[4] = { 1, 2, 3, 4 }, sum[4];

    check(ct_broadcast(CT_WORLD, x, 4, CT_F32, 0, NULL));           /* from rank 0 */
    check(ct_reduce(CT_WORLD, x, sum, 4, CT_F32, CT_SUM, 0, NULL)); /* at rank 0 */
    check(ct_all_reduce(CT_WORLD, x, x, 4, CT_F32, CT_AVG, NULL));  /* in place */
}

/* ct_gather(), ct_all_gather(), ct_scatter() */
static void gathers(void)
{
    const int mine[2] = { rank, rank * rank };
    int *all = ints(2 * size), part[2];

    check(ct_gather(CT_WORLD, mine, rank == 0 ? all : NULL, 2, CT_I32, 0, NULL));
    check(ct_scatter(CT_WORLD, rank == 0 ? all : NULL, part, 2, CT_I32, 0, NULL));
    check(ct_all_gather(CT_WORLD, mine, all, 2, CT_I32, NULL)); /* all[2 * r] is r */
    free(all);
}

/* ct_reduce_scatter(), ct_all_to_all() */
static void exchanges(void)
{
    int *send = ints(size), *recv = ints(size), sum;

    check(ct_reduce_scatter(CT_WORLD, send, &sum, 1, CT_I32, CT_SUM, NULL));
    check(ct_all_to_all(CT_WORLD, send, recv, 1, CT_I32, NULL)); /* recv[r] is from rank r */
    free(send);
    free(recv);
}

/* ct_barrier(), ct_monitored_barrier() */
static void barriers(void)
{
    check(ct_barrier(CT_WORLD, NULL));
    check(ct_monitored_barrier(CT_WORLD, 10000, 1)); /* lists the ranks that are 10 s late */
}

/* ct_gather_v(), ct_all_gather_v(), ct_scatter_v() */
static void gathers_with_counts(void)
{
    const size_t count = (size_t)rank + 1; /* rank r has r + 1 elements */
    size_t *counts = calloc((size_t)size, sizeof *counts);
    int *mine = ints(rank + 1), *all = ints(size * (size + 1) / 2);

    for (int r = 0; r < size && counts; r++)
        counts[r] = (size_t)r + 1;
    check(ct_gather_v(CT_WORLD, mine, count, all, counts, NULL, CT_I32, 0, NULL));
    check(ct_all_gather_v(CT_WORLD, mine, count, all, counts, NULL, CT_I32, NULL));
    check(ct_scatter_v(CT_WORLD, all, counts, NULL, mine, count, CT_I32, 0, NULL));
    free(counts);
    free(mine);
    free(all);
}

/* ct_all_to_all_v(), ct_reduce_scatter_v() */
static void exchanges_with_counts(void)
{
    size_t *counts = calloc((size_t)size, sizeof *counts);
    int *send = ints(2 * size), *recv = ints(2 * size);

    for (int r = 0; r < size && counts; r++)
        counts[r] = 2;
    check(ct_all_to_all_v(CT_WORLD, send, counts, NULL, recv, counts, NULL, CT_I32, NULL));
    check(ct_reduce_scatter_v(CT_WORLD, send, recv, counts, CT_I32, CT_SUM, NULL));
    free(counts);
    free(send);
    free(recv);
}

/* ct_gather_list(), ct_all_gather_list(), ct_scatter_list(), ct_all_to_all_list(),
 * ct_reduce_scatter_list() */
static void lists(void)
{
    int *numbers = ints(2 * size), mine = rank;
    void **to = calloc((size_t)size, sizeof *to);
    const void **from = calloc((size_t)size, sizeof *from);

    for (int r = 0; r < size && to && from; r++) {
        to[r] = &numbers[r];
        from[r] = &numbers[size + r];
    }
    check(ct_gather_list(CT_WORLD, &mine, to, 1, CT_I32, 0, NULL));
    check(ct_all_gather_list(CT_WORLD, &mine, to, 1, CT_I32, NULL));
    check(ct_scatter_list(CT_WORLD, from, &mine, 1, CT_I32, 0, NULL));
    check(ct_all_to_all_list(CT_WORLD, from, to, 1, CT_I32, NULL));
    check(ct_reduce_scatter_list(CT_WORLD, from, &mine, 1, CT_I32, CT_SUM, NULL));
    free(numbers);
    free(to);
    free(from);
}

/* ct_coalesce_begin(), ct_coalesce_end() */
static void coalesce(void)
{
    float gradients[100][8] = { { 0 } };

    check(ct_coalesce_begin(CT_WORLD));
    for (int i = 0; i < 100; i++)
        check(ct_all_reduce(CT_WORLD, gradients[i], gradients[i], 8, CT_F32, CT_SUM, NULL));
    check(ct_coalesce_end(CT_WORLD, NULL)); /* a few calls instead of 100 */
}

/* ---- Messages and works -------------------------------------------------------- */

/* ct_send(), ct_recv() */
static void message(void)
{
    double x[3] = { 1, 2, 3 };
    int from;

    if (rank == 0)
        check(ct_send(CT_WORLD, x, 3, CT_F64, 1, 7));
    if (rank == 1)
        check(ct_recv(CT_WORLD, x, 3, CT_F64, CT_ANY_SOURCE, 7, &from));
}

/* ct_isend(), ct_irecv(), ct_wait(), ct_wait_from() */
static void ring(void)
{
    const int right = (rank + 1) % size, left = (rank + size - 1) % size;
    int mine = rank, other, from;
    ct_work *send, *recv;

    check(ct_irecv(CT_WORLD, &other, 1, CT_I32, left, 0, &recv));
    check(ct_isend(CT_WORLD, &mine, 1, CT_I32, right, 0, &send));
    check(ct_wait_from(recv, &from));
    check(ct_wait(send));
}

/* ct_batch_isend_irecv() */
static void batch(void)
{
    int mine = rank, other;
    const ct_p2p ops[2] = { { CT_P2P_SEND, &mine, 1, CT_I32, (rank + 1) % size, 0 },
                            { CT_P2P_RECV, &other, 1, CT_I32, (rank + size - 1) % size, 0 } };

    check(ct_batch_isend_irecv(CT_WORLD, ops, 2, NULL)); /* returns when both are done */
}

/* ct_probe(), ct_iprobe() */
static void probe(void)
{
    ct_message message;
    int number = rank, found;

    if (rank == 0)
        check(ct_send(CT_WORLD, &number, 1, CT_I32, 1, 3));
    if (rank == 1) {
        check(ct_iprobe(CT_WORLD, 0, 3, &found, &message)); /* found is 1 if the message is here */
        check(ct_probe(CT_WORLD, CT_ANY_SOURCE, CT_ANY_TAG, &message));
        check(ct_recv(CT_WORLD, &number, message.count, message.dtype, message.from, message.tag,
                      NULL));
    }
}

/* ct_test(), ct_wait_for() */
static void overlap(void)
{
    float x[1000] = { 0 };
    int done = 0;
    ct_work *work;

    check(ct_all_reduce(CT_WORLD, x, x, 1000, CT_F32, CT_SUM, &work));
    while (!done)
        check(ct_test(work, &done)); /* the program computes here, but must not touch x */
    check(ct_wait_for(work, 1000));
}

/* ct_watch(), ct_watched(), ct_watch_end() */
static void watch(void)
{
    float x[1000] = { 0 };
    int done;
    void *tag;
    ct_work *work;

    check(ct_all_reduce(CT_WORLD, x, x, 1000, CT_F32, CT_SUM, &work));
    check(ct_watch(work, x, &done));
    while (!done) { /* a thread that handles what is done */
        check(ct_watched(CT_WORLD, &tag));
        done = tag == x;
    }
    check(ct_wait(work));
    check(ct_watch_end(CT_WORLD));
}

/* ---- Stores ---------------------------------------------------------------------- */

/* ct_store_tcp(), ct_store_wait_workers(), ct_store_close() */
static void tcp_store(void)
{
    const char *host = getenv("MASTER_ADDR"), *port = getenv("MASTER_PORT");
    ct_store *store;

    if (!host || !port)
        return;
    check(ct_store_tcp(host, atoi(port), 0, 10000, &store));
    check(ct_store_wait_workers(store, size)); /* waits only where the store is served */
    check(ct_store_close(store));
}

/* ct_store_file(), ct_store_prefix() */
static void file_store(void)
{
    ct_store *file, *mine;

    check(ct_store_file("snippets.store", 10000, &file));
    check(ct_store_prefix(file, "job-7", &mine)); /* its key "a" is the file's key "job-7/a" */
    check(ct_store_close(file));
    check(ct_store_set(mine, "a", "1", 1));
    check(ct_store_close(mine));
}

/* ct_store_default(), ct_store_set(), ct_store_get() */
static void keys(void)
{
    ct_store *store = ct_store_default(); /* must not be closed */
    void *value;
    size_t bytes;

    if (rank == 0)
        check(ct_store_set(store, "name", "libct", 5));
    check(ct_store_get(store, "name", 10000, &value, &bytes)); /* waits up to 10 s */
    printf("%s has %zu bytes\n", (char *)value, bytes);
    free(value);
}

/* ct_store_add(), ct_store_wait(), ct_store_check() */
static void counter(void)
{
    const char *const names[2] = { "tickets", "open" };
    int64_t ticket;
    int present;

    check(ct_store_add(ct_store_default(), "tickets", 1, &ticket)); /* 1 for the first caller */
    if (ticket == 1)
        check(ct_store_set(ct_store_default(), "open", NULL, 0));
    check(ct_store_wait(ct_store_default(), names, 2, 10000));
    check(ct_store_check(ct_store_default(), names, 2, &present)); /* now 1 */
}

/* ct_store_hash(), ct_store_compare_set(), ct_store_append(), ct_store_delete(),
 * ct_store_num_keys(), ct_store_list_keys() */
static void own_store(void)
{
    int64_t number;
    int deleted, count;
    char **names;
    ct_store *store;

    check(ct_store_hash(&store));
    check(ct_store_compare_set(store, "leader", NULL, 0, "a", 1, NULL, NULL)); /* now "a" */
    check(ct_store_append(store, "leader", "b", 1));                           /* now "ab" */
    check(ct_store_num_keys(store, &number));                                  /* 1 */
    check(ct_store_list_keys(store, &names, &count));
    free(names);
    check(ct_store_delete(store, "leader", &deleted)); /* deleted is 1 */
    check(ct_store_close(store));
}

/* ct_store_multi_set(), ct_store_multi_get() */
static void many_keys(void)
{
    const char *const names[2] = { "host", "port" };
    const void *const values[2] = { "n1", "29500" };
    const size_t lengths[2] = { 2, 5 };
    void *got[2];
    size_t bytes[2];

    check(ct_store_multi_set(ct_store_default(), names, 2, values, lengths));
    check(ct_store_multi_get(ct_store_default(), names, 2, -1, got, bytes));
    free(got[0]);
    free(got[1]);
}

/* ct_store_queue_push(), ct_store_queue_pop(), ct_store_queue_len() */
static void queue(void)
{
    void *value;
    size_t bytes;
    int64_t length;

    check(ct_store_queue_push(ct_store_default(), "tasks", "a task", 6));
    check(ct_store_queue_len(ct_store_default(), "tasks", &length));
    check(ct_store_queue_pop(ct_store_default(), "tasks", 10000, &value, &bytes));
    free(value);
}

/* A store that the program implements.  It knows one key, "answer". */
static ct_status answer_set(void *arg, const char *key, const void *value, size_t bytes)
{
    (void)value;
    (void)bytes;
    return arg && !strcmp(key, "answer") ? CT_OK : CT_ERR_INVALID;
}

static ct_status answer_get(void *arg, const char *key, int timeout_ms, void **value, size_t *bytes)
{
    (void)timeout_ms;
    *value = arg && !strcmp(key, "answer") ? strdup(arg) : NULL;
    *bytes = *value ? strlen(*value) : 0;
    return *value ? CT_OK : CT_ERR_TIMEOUT;
}

static ct_status answer_add(void *arg, const char *key, int64_t delta, int64_t *result)
{
    *result = delta;
    return answer_set(arg, key, NULL, 0);
}

static ct_status answer_wait(void *arg, const char *const *names, int count, int timeout_ms)
{
    (void)timeout_ms;
    return count == 0 ? CT_OK : answer_set(arg, names[0], NULL, 0);
}

static ct_status answer_check(void *arg, const char *const *names, int count, int *present)
{
    *present = answer_wait(arg, names, count, 0) == CT_OK;
    return CT_OK;
}

static ct_status answer_compare_set(void *arg, const char *key, const void *expected,
                                    size_t expected_bytes, const void *desired,
                                    size_t desired_bytes, void **value, size_t *bytes)
{
    (void)expected;
    (void)expected_bytes;
    (void)desired;
    (void)desired_bytes;
    return answer_get(arg, key, 0, value, bytes);
}

/* ct_store_wrap() */
static void wrapped_store(void)
{
    static char answer[] = "42";
    const ct_store_ops ops = { .size = sizeof ops,
                               .set = answer_set, /* and other functions of this program */
                               .get = answer_get,
                               .add = answer_add,
                               .wait = answer_wait,
                               .check = answer_check,
                               .compare_set = answer_compare_set };
    void *value;
    ct_store *store;

    check(ct_store_wrap(&ops, answer, 10000, &store)); /* `arg` of the functions is `answer` */
    check(ct_store_get(store, "answer", -1, &value, NULL));
    free(value);
    check(ct_store_close(store));
}

/* ---- Algorithms, places, memory ---------------------------------------------------- */

/* ct_algorithm(), ct_last_algorithm(), ct_note_place() */
static void algorithms(void)
{
    const char *name;

    for (int i = 0; (name = ct_algorithm("all_reduce", i)) != NULL; i++)
        printf("all_reduce can use %s\n", name);
    check(ct_note_place(CT_WORLD, "train.py:88 (step)"));
    check(ct_barrier(CT_WORLD, NULL));
    printf("the barrier used %s\n", ct_last_algorithm(CT_WORLD));
}

/* ct_observer_open(), ct_observer_wait(), ct_observer_answer(), ct_observer_close() */
static void observe(void)
{
    const struct ct_observed_call call = { .operation = "all_reduce",
                                           .number = 1,
                                           .count = 1000,
                                           .dtype = CT_F32,
                                           .peer = -1,
                                           .state = CT_OBSERVED_RUNS,
                                           .age_ns = 1000000 };
    const struct ct_observed_group group = {
        .name = "mine", .id = 1, .rank = 0, .size = 2, .call_count = 1, .calls = &call
    };
    const struct ct_observation seen = { .size = sizeof seen,
                                         .phase = CT_OBSERVED_READY,
                                         .place = "train.c:88 (step)",
                                         .stacks_fd = -1,
                                         .group_count = 1,
                                         .groups = &group };
    ct_observer *observer;

    check(ct_observer_open(0, &observer));
    while (ct_observer_wait(observer, 10) == CT_OK) /* usually in a separate thread, with -1 */
        check(ct_observer_answer(observer, &seen));
    check(ct_observer_close(observer));
}

/* ct_mem_alloc(), ct_mem_free() */
static void shared_memory(void)
{
    void *memory;

    check(ct_mem_alloc(CT_WORLD, 1000 * sizeof(float), &memory)); /* zeros */
    check(ct_all_reduce(CT_WORLD, memory, memory, 1000, CT_F32, CT_SUM, NULL));
    check(ct_mem_free(CT_WORLD, memory));
}

/* ct_set_stream() */
static void in_stream(void *stream, void *on_gpu)
{
    check(ct_set_stream(CT_WORLD, stream));
    check(ct_all_reduce(CT_WORLD, on_gpu, on_gpu, 1000, CT_F32, CT_SUM, NULL));
    /* a kernel that is launched in `stream` now runs after the all-reduce */
}

/* ct_wait_on_stream() */
static void wait_in_stream(void *stream, void *on_gpu)
{
    ct_work *work;

    check(ct_all_reduce(CT_WORLD, on_gpu, on_gpu, 1000, CT_F32, CT_SUM, &work));
    check(ct_wait_on_stream(work, stream)); /* the host does not wait */
    check(ct_wait(work));
}

/* ct_nccl_comm() */
static void nccl(void)
{
    void *comm; /* an ncclComm_t */

    check(ct_nccl_comm(CT_WORLD, &comm));
}

int main(void)
{
    static void (*const examples[])(void) = { facts,
                                              timeouts,
                                              convert,
                                              weighted_sum,
                                              pair,
                                              named_pair,
                                              rows,
                                              subgroups,
                                              train,
                                              separate_group,
                                              reductions,
                                              gathers,
                                              exchanges,
                                              barriers,
                                              lists,
                                              coalesce,
                                              message,
                                              ring,
                                              batch,
                                              probe,
                                              overlap,
                                              watch,
                                              tcp_store,
                                              file_store,
                                              keys,
                                              counter,
                                              own_store,
                                              many_keys,
                                              queue,
                                              wrapped_store,
                                              algorithms,
                                              observe,
                                              shared_memory,
                                              gathers_with_counts,
                                              exchanges_with_counts };

    start();
    if (size < 2 || size % 2 != 0) {
        fprintf(stderr, "snippets: an even number of ranks, not %d\n", size);
        return 1;
    }
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++)
        examples[i]();
    (void)in_stream, (void)wait_in_stream, (void)nccl; /* need a GPU */
    shrink();
    end();
    if (rank == 0)
        spawn();
    return 0;
}
