/* SPDX-License-Identifier: Apache-2.0 */
/* test_store.c - one body over every kind of store, then what only a server can get wrong. */
#include "tests/harness.h"

#include <event2/event.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/net/socket.h"
#include "runtime/store/server/server_thread.h"
#include "runtime/store/tcp_store.h"
#include "runtime/util/clock.h"

/* ---- A server, and clients of it ------------------------------------------- */

static struct store_thread *host;
static int port;

static ct_store *client(void)
{
    ct_store *store = NULL;

    assert_int_equal(store_client_connect("127.0.0.1", port, deadline_after(5000), 5000, &store),
                     CT_OK);
    return store;
}

static int start_server(void **state)
{
    int fd;

    (void)state;
    if (socket_listen("127.0.0.1", 0, &fd) != CT_OK)
        return -1;
    port = socket_port(fd);
    return store_thread_start(fd, &host);
}

static int stop_server(void **state)
{
    (void)state;
    store_thread_stop(host);
    return 0;
}

/* ---- Every kind -------------------------------------------------------------- */

static void value_is(ct_store *store, const char *key, const char *value)
{
    void *got;
    size_t bytes;

    assert_int_equal(ct_store_get(store, key, 1000, &got, &bytes), CT_OK);
    assert_int_equal(bytes, strlen(value));
    assert_memory_equal(got, value, bytes + 1); /* the 0 behind it too */
    free(got);
}

static void values(ct_store *store)
{
    static const char binary[] = "a\0b";
    const char *two[] = { "m1", "m2" };
    const void *contents[] = { "one", "" };
    const size_t sizes[] = { 3, 0 };
    void *got[2];
    size_t bytes[2];
    int64_t sum;
    int present, deleted;

    assert_int_equal(ct_store_set(store, "k", binary, sizeof binary), CT_OK);
    assert_int_equal(ct_store_get(store, "k", 0, &got[0], &bytes[0]), CT_OK);
    assert_int_equal(bytes[0], sizeof binary);
    assert_memory_equal(got[0], binary, sizeof binary);
    free(got[0]);
    assert_int_equal(ct_store_add(store, "n", 5, &sum), CT_OK);
    assert_int_equal(ct_store_add(store, "n", -7, &sum), CT_OK);
    assert_int_equal(sum, -2);
    value_is(store, "n", "-2");
    assert_int_equal(ct_store_append(store, "ap", "ab", 2), CT_OK);
    assert_int_equal(ct_store_append(store, "ap", "c", 1), CT_OK);
    value_is(store, "ap", "abc");
    assert_int_equal(ct_store_multi_set(store, two, 2, contents, sizes), CT_OK);
    assert_int_equal(ct_store_multi_get(store, two, 2, 1000, got, bytes), CT_OK);
    assert_string_equal(got[0], "one");
    assert_int_equal(bytes[1], 0);
    free(got[0]);
    free(got[1]);
    assert_int_equal(ct_store_check(store, two, 2, &present), CT_OK);
    assert_int_equal(present, 1);
    assert_int_equal(ct_store_delete(store, "m1", &deleted), CT_OK);
    assert_int_equal(deleted, 1);
    assert_int_equal(ct_store_check(store, two, 2, &present), CT_OK);
    assert_int_equal(present, 0);
}

/* The four cases of PyTorch's compare_set. */
static void compare_set(ct_store *store)
{
    static const struct {
        const char *expected, *desired, *answer;
    } cases[] = { { "x", "never", "x" }, /* missing: the expectation comes back */
                  { "", "first", "first" },
                  { "wrong", "second", "first" },
                  { "first", "second", "second" } };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        void *got;
        size_t bytes;

        assert_int_equal(ct_store_compare_set(store, "c", cases[i].expected,
                                              strlen(cases[i].expected), cases[i].desired,
                                              strlen(cases[i].desired), &got, &bytes),
                         CT_OK);
        assert_string_equal(got, cases[i].answer);
        free(got);
    }
}

static void a_wait_names_its_key_and_leaves_all_in_step(ct_store *store)
{
    const char *never = "never";

    assert_int_equal(ct_store_wait(store, &never, 1, 30), CT_ERR_TIMEOUT);
    assert_non_null(strstr(ct_last_error(), "never"));
    value_is(store, "n", "-2");
}

static void queues(ct_store *store)
{
    void *got;
    size_t bytes;
    int64_t length;

    assert_int_equal(ct_store_queue_pop(store, "q", 0, &got, &bytes), CT_ERR_TIMEOUT);
    assert_int_equal(ct_store_queue_push(store, "q", "e1", 2), CT_OK);
    assert_int_equal(ct_store_queue_push(store, "q", "e2", 2), CT_OK);
    assert_int_equal(ct_store_queue_len(store, "q", &length), CT_OK);
    assert_int_equal(length, 2);
    assert_int_equal(ct_store_queue_pop(store, "q", 1000, &got, &bytes), CT_OK);
    assert_string_equal(got, "e1");
    free(got);
}

static void keys_are_listed(ct_store *store, int expected)
{
    char **keys;
    int count, found = 0;

    assert_int_equal(ct_store_list_keys(store, &keys, &count), CT_OK);
    assert_int_equal(count, expected);
    for (int i = 0; i < count; i++)
        found += !strcmp(keys[i], "ap");
    assert_int_equal(found, 1);
    free(keys);
}

static void all_of_it(ct_store *store)
{
    values(store);
    compare_set(store);
    a_wait_names_its_key_and_leaves_all_in_step(store);
    keys_are_listed(store, 5); /* k n ap m2 c */
}

static void a_client_of_a_server_can_do_all_of_it(void **state)
{
    ct_store *store = client();

    (void)state;
    all_of_it(store);
    queues(store);
    assert_int_equal(ct_store_close(store), CT_OK);
}

static void a_hash_store_can_do_all_of_it(void **state)
{
    ct_store *store;

    (void)state;
    assert_int_equal(ct_store_hash(&store), CT_OK);
    all_of_it(store);
    queues(store);
    assert_int_equal(ct_store_close(store), CT_OK);
}

static void a_file_store_can_do_all_but_queues(void **state)
{
    char path[] = "/tmp/ct-store-XXXXXX";
    const int fd = mkstemp(path);
    ct_store *store, *other;

    (void)state;
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(ct_store_file(path, 5000, &store), CT_OK);
    all_of_it(store);
    assert_int_equal(ct_store_queue_push(store, "q", "e", 1), CT_ERR_UNSUPPORTED);
    assert_int_equal(ct_store_file(path, 5000, &other), CT_OK);
    value_is(other, "ap", "abc"); /* what one wrote the other reads */
    assert_int_equal(ct_store_close(other), CT_OK);
    assert_int_equal(ct_store_close(store), CT_OK);
    unlink(path);
}

/* ---- A store of the caller's: here one that passes all on to a hash store --------------- */

static ct_status on_set(void *arg, const char *key, const void *value, size_t bytes)
{
    return ct_store_set(arg, key, value, bytes);
}

static ct_status on_get(void *arg, const char *key, int timeout_ms, void **value, size_t *bytes)
{
    return ct_store_get(arg, key, timeout_ms, value, bytes);
}

static ct_status on_add(void *arg, const char *key, int64_t delta, int64_t *result)
{
    return ct_store_add(arg, key, delta, result);
}

static ct_status on_wait(void *arg, const char *const *keys, int count, int timeout_ms)
{
    return ct_store_wait(arg, keys, count, timeout_ms);
}

static ct_status on_check(void *arg, const char *const *keys, int count, int *present)
{
    return ct_store_check(arg, keys, count, present);
}

static ct_status on_compare_set(void *arg, const char *key, const void *expected,
                                size_t expected_bytes, const void *desired, size_t desired_bytes,
                                void **value, size_t *bytes)
{
    return ct_store_compare_set(arg, key, expected, expected_bytes, desired, desired_bytes, value,
                                bytes);
}

static ct_status on_delete(void *arg, const char *key, int *deleted)
{
    return ct_store_delete(arg, key, deleted);
}

static ct_status on_append(void *arg, const char *key, const void *value, size_t bytes)
{
    return ct_store_append(arg, key, value, bytes);
}

static void on_close(void *arg)
{
    ct_store_close(arg);
}

static const ct_store_ops passes_on = {
    sizeof(ct_store_ops), on_set,    on_get,    on_add,  on_wait, on_check,
    on_compare_set,       on_delete, on_append, on_close
};

static ct_store *wrap(void)
{
    ct_store *inner, *store;

    assert_int_equal(ct_store_hash(&inner), CT_OK);
    assert_int_equal(ct_store_wrap(&passes_on, inner, 5000, &store), CT_OK);
    return store;
}

static void a_store_of_the_caller_s_can_do_all_that_it_has_operations_for(void **state)
{
    ct_store *store = wrap(), *prefix;
    int64_t count;
    char **keys;
    int n;

    (void)state;
    values(store);
    compare_set(store);
    a_wait_names_its_key_and_leaves_all_in_step(store);
    assert_int_equal(ct_store_prefix(store, "p", &prefix), CT_OK);
    values(prefix);
    value_is(store, "p/ap", "abc");
    assert_int_equal(ct_store_close(store), CT_OK); /* the prefix holds it */
    value_is(prefix, "ap", "abc");
    assert_int_equal(ct_store_queue_push(prefix, "q", "e", 1), CT_ERR_UNSUPPORTED);
    assert_int_equal(ct_store_num_keys(prefix, &count), CT_ERR_UNSUPPORTED);
    assert_int_equal(ct_store_list_keys(prefix, &keys, &n), CT_ERR_UNSUPPORTED);
    assert_int_equal(ct_store_close(prefix), CT_OK);
}

static void a_store_of_the_caller_s_needs_six_operations(void **state)
{
    ct_store_ops few = passes_on, old = passes_on;
    ct_store *inner, *store;
    int deleted;

    (void)state;
    assert_int_equal(ct_store_hash(&inner), CT_OK);
    few.wait = NULL;
    assert_int_equal(ct_store_wrap(&few, inner, 5000, &store), CT_ERR_INVALID);
    old.size = 8;
    assert_int_equal(ct_store_wrap(&old, inner, 5000, &store), CT_ERR_INVALID);
    few = passes_on;
    few.delete_key = NULL;
    few.append = NULL;
    assert_int_equal(ct_store_wrap(&few, inner, 5000, &store), CT_OK);
    assert_int_equal(ct_store_delete(store, "k", &deleted), CT_ERR_UNSUPPORTED);
    assert_non_null(strstr(ct_last_error(), "delete_key"));
    assert_int_equal(ct_store_append(store, "k", "v", 1), CT_ERR_UNSUPPORTED);
    assert_int_equal(ct_store_close(store), CT_OK);
}

static void *make_group(void *store)
{
    ct_group *group = NULL;
    int value = 1, sum = 0;

    assert_int_equal(ct_create_group(store, 1, 2, NULL, &group), CT_OK);
    assert_int_equal(ct_all_reduce(group, &value, &sum, 1, CT_I32, CT_SUM, NULL), CT_OK);
    assert_int_equal(sum, 3);
    assert_int_equal(ct_destroy_process_group(group), CT_OK);
    return NULL;
}

static void ranks_meet_at_a_store_of_the_caller_s(void **state)
{
    ct_store *store = wrap();
    ct_group *group = NULL;
    int value = 2, sum = 0;
    pthread_t other;

    (void)state;
    assert_int_equal(pthread_create(&other, NULL, make_group, store), 0);
    assert_int_equal(ct_create_group(store, 0, 2, NULL, &group), CT_OK);
    assert_int_equal(ct_all_reduce(group, &value, &sum, 1, CT_I32, CT_SUM, NULL), CT_OK);
    assert_int_equal(sum, 3);
    assert_int_equal(ct_destroy_process_group(group), CT_OK);
    pthread_join(other, NULL);
    assert_int_equal(ct_store_close(store), CT_OK);
}

static void prefixes_nest_as_in_pytorch(void **state)
{
    ct_store *base, *inner, *outer;

    (void)state;
    assert_int_equal(ct_store_hash(&base), CT_OK);
    assert_int_equal(ct_store_prefix(base, "a", &inner), CT_OK);
    assert_int_equal(ct_store_prefix(inner, "b", &outer), CT_OK);
    assert_int_equal(ct_store_set(outer, "k", "v", 1), CT_OK);
    value_is(base, "a/b/k", "v");
    assert_int_equal(ct_store_delete(outer, "k", NULL), CT_OK);
    all_of_it(outer);
    ct_store_close(outer);
    ct_store_close(inner);
    ct_store_close(base);
}

/* ---- Together ----------------------------------------------------------------- */

static void *set_go(void *store)
{
    ct_store_set(store, "go", "!", 1);
    return NULL;
}

static void a_waiter_is_released_by_another_client(void **state)
{
    ct_store *waiting = client(), *setting = client();
    const char *go = "go";
    pthread_t thread;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, set_go, setting), 0);
    assert_int_equal(ct_store_wait(waiting, &go, 1, 5000), CT_OK);
    pthread_join(thread, NULL);
    ct_store_close(waiting);
    ct_store_close(setting);
}

/* Longer than the handshake may take: its timer must be off by then. */
static void a_client_may_be_silent_for_long(void **state)
{
    ct_store *store = client();
    const char *never = "never";
    int64_t sum;

    (void)state;
    assert_int_equal(ct_store_add(store, "idle", 1, &sum), CT_OK);
    assert_int_equal(ct_store_wait(store, &never, 1, 11000), CT_ERR_TIMEOUT);
    assert_int_equal(ct_store_add(store, "idle", 1, &sum), CT_OK);
    assert_int_equal(sum, 2);
    ct_store_close(store);
}

static void half_a_frame_hinders_nobody(void **state)
{
    static const char set_of_a_huge_key[] = "\x00\xce\xf7\x85\x3c\x01\x00\x00\x00\x10";
    ct_store *store = client();
    int fd;

    (void)state;
    assert_int_equal(socket_connect("127.0.0.1", port, deadline_after(5000), &fd), CT_OK);
    assert_int_equal(socket_write_all(fd, set_of_a_huge_key, 10, deadline_after(5000)), CT_OK);
    assert_int_equal(ct_store_set(store, "k", "v", 1), CT_OK);
    value_is(store, "k", "v");
    close(fd);
    ct_store_close(store);
}

static void a_store_that_is_gone_is_named_with_the_request(void **state)
{
    ct_store *store = client();
    char where[32];
    int64_t sum;

    (void)state;
    snprintf(where, sizeof where, "127.0.0.1:%d", port);
    store_thread_stop(host);
    host = NULL;
    assert_int_equal(ct_store_add(store, "k", 1, &sum), CT_ERR_PEER);
    assert_non_null(strstr(ct_last_error(), where));
    assert_non_null(strstr(ct_last_error(), "add"));
    assert_int_equal(ct_store_add(store, "k", 1, &sum), CT_ERR_PEER); /* and stays gone */
    ct_store_close(store);
}

/* Says hello and then nothing: what a stopped server is like. */
static void *answers_only_the_ping(void *listener)
{
    unsigned char hello[10], next;
    int fd;

    if (socket_accept(*(int *)listener, deadline_after(5000), &fd) != CT_OK)
        return NULL;
    if (socket_read_all(fd, hello, sizeof hello, deadline_after(5000)) == CT_OK
        && socket_write_all(fd, hello + 6, 4, deadline_after(5000)) == CT_OK)
        while (socket_read_all(fd, &next, 1, deadline_after(5000)) == CT_OK)
            continue;
    close(fd);
    return NULL;
}

static void a_silent_server_is_given_up(void **state)
{
    pthread_t thread;
    ct_store *store;
    int64_t sum;
    int fd;

    (void)state;
    assert_int_equal(socket_listen("127.0.0.1", 0, &fd), CT_OK);
    assert_int_equal(pthread_create(&thread, NULL, answers_only_the_ping, &fd), 0);
    assert_int_equal(
        store_client_connect("127.0.0.1", socket_port(fd), deadline_after(5000), 50, &store),
        CT_OK);
    assert_int_equal(ct_store_add(store, "k", 1, &sum), CT_ERR_TIMEOUT);
    assert_non_null(strstr(ct_last_error(), "add"));
    assert_int_equal(ct_store_add(store, "k", 1, &sum), CT_ERR_PEER);
    ct_store_close(store);
    pthread_join(thread, NULL);
    close(fd);
}

static void a_unix_socket_serves_as_well(void **state)
{
    struct store_thread *other;
    char name[64], at[66];
    ct_store *store;
    int fd;

    (void)state;
    assert_int_equal(socket_listen_unix(NULL, &fd), CT_OK);
    assert_int_equal(socket_unix_name(fd, name, sizeof name), CT_OK);
    assert_int_equal(store_thread_start(fd, &other), CT_OK);
    snprintf(at, sizeof at, "@%s", name);
    assert_int_equal(store_client_connect(at, 0, deadline_after(5000), 5000, &store), CT_OK);
    all_of_it(store);
    ct_store_close(store);
    store_thread_stop(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_client_of_a_server_can_do_all_of_it, start_server,
                                        stop_server),
        cmocka_unit_test(a_hash_store_can_do_all_of_it),
        cmocka_unit_test(a_file_store_can_do_all_but_queues),
        cmocka_unit_test(a_store_of_the_caller_s_can_do_all_that_it_has_operations_for),
        cmocka_unit_test(a_store_of_the_caller_s_needs_six_operations),
        cmocka_unit_test(ranks_meet_at_a_store_of_the_caller_s),
        cmocka_unit_test(prefixes_nest_as_in_pytorch),
        cmocka_unit_test_setup_teardown(a_waiter_is_released_by_another_client, start_server,
                                        stop_server),
        cmocka_unit_test_setup_teardown(a_client_may_be_silent_for_long, start_server, stop_server),
        cmocka_unit_test_setup_teardown(half_a_frame_hinders_nobody, start_server, stop_server),
        cmocka_unit_test_setup_teardown(a_store_that_is_gone_is_named_with_the_request,
                                        start_server, stop_server),
        cmocka_unit_test(a_silent_server_is_given_up),
        cmocka_unit_test(a_unix_socket_serves_as_well),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
