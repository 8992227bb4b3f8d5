/* SPDX-License-Identifier: Apache-2.0 */
/* test_store_client.c - a client of a server that dies, lies or stutters.
 *
 * The server is the other end of a socketpair: what it answers is mostly written
 * before it is asked, and closing it is its death.  No test waits for luck. */
#include "tests/harness.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/net/socket.h"
#include "runtime/store/tcp_store.h"
#include "runtime/util/clock.h"

/* ---- A server that has said all it will say ----------------------------------- */

static int server;

static ct_store *client_of(const void *answers, size_t bytes, int timeout_ms)
{
    ct_store *store = NULL;
    int ends[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    server = ends[1];
    assert_int_equal(socket_write_all(server, answers, bytes, deadline_after(5000)), CT_OK);
    assert_int_equal(store_client_over(ends[0], "10.0.0.1:29500", timeout_ms, &store), CT_OK);
    return store;
}

static void is_dead(void)
{
    assert_int_equal(shutdown(server, SHUT_WR), 0);
}

static void over(ct_store *store)
{
    ct_store_close(store);
    close(server);
}

static void said(const char *words)
{
    if (!strstr(ct_last_error(), words))
        fail_msg("\"%s\" is not in: %s", words, ct_last_error());
}

static ct_status get(ct_store *store, void **value, size_t *bytes)
{
    *value = NULL;
    return ct_store_get(store, "key", 5000, value, bytes);
}

/* A string literal's bytes, without the 0 behind. */
#define ANSWERS(text) "" text, sizeof(text) - 1

#define THERE "\0"
#define U64(n) n "\0\0\0\0\0\0\0"

/* ---- Dying -------------------------------------------------------------------- */

static void a_server_that_closes_inside_a_value_is_gone(void **state)
{
    ct_store *store = client_of(ANSWERS(THERE U64("\144") "some of it"), 5000);
    void *value;
    size_t bytes;

    (void)state;
    is_dead();
    assert_int_equal(get(store, &value, &bytes), CT_ERR_PEER);
    assert_null(value);
    said("the store at 10.0.0.1:29500 is gone: it closed the connection during get \"key\", ");
    said(" s after its last answer");
    over(store);
}

static void later_calls_repeat_the_cause(void **state)
{
    ct_store *store = client_of(ANSWERS(""), 5000);
    int64_t count;

    (void)state;
    is_dead();
    assert_int_equal(ct_store_num_keys(store, &count), CT_ERR_PEER);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ct_store_set(store, "x", "v", 1), CT_ERR_PEER);
        said("the store at 10.0.0.1:29500 has been gone for ");
        said(" s (it closed the connection during num_keys); set \"x\" was not sent");
    }
    over(store);
}

static void a_set_to_a_server_that_is_gone_is_an_error(void **state)
{
    ct_store *store = client_of(ANSWERS(""), 5000);

    (void)state;
    assert_int_equal(ct_store_set(store, "before", "v", 1), CT_OK);
    is_dead();
    assert_int_equal(ct_store_set(store, "after", "v", 1), CT_ERR_PEER);
    said("it closed the connection during set \"after\"");
    said("; 1 earlier request without an answer may be lost");
    over(store);
}

static void so_are_the_others_without_an_answer(void **state)
{
    const char *keys[] = { "a", "b" };
    const void *values[] = { "1", "2" };
    const size_t bytes[] = { 1, 1 };

    (void)state;
    for (int i = 0; i < 3; i++) {
        ct_store *store = client_of(ANSWERS(""), 5000);

        is_dead();
        assert_int_equal(i == 0   ? ct_store_append(store, "a", "1", 1)
                         : i == 1 ? ct_store_queue_push(store, "a", "1", 1)
                                  : ct_store_multi_set(store, keys, 2, values, bytes),
                         CT_ERR_PEER);
        said(i == 0   ? "append \"a\""
             : i == 1 ? "queue_push \"a\""
                      : "multi_set \"a\" and 1 other,");
        over(store);
    }
}

static void silence_ends_with_the_timeout(void **state)
{
    ct_store *store = client_of(ANSWERS(""), 30);
    int64_t sum;

    (void)state;
    assert_int_equal(ct_store_add(store, "n", 1, &sum), CT_ERR_TIMEOUT);
    said("it did not answer in 30 ms during add \"n\"");
    assert_int_equal(ct_store_add(store, "n", 1, &sum), CT_ERR_PEER);
    over(store);
}

/* ---- Lying -------------------------------------------------------------------- */

static void a_claim_of_2_to_the_40_bytes_is_refused(void **state)
{
    ct_store *store = client_of(ANSWERS(THERE "\0\0\0\0\0\1\0\0"), 5000);
    void *value;
    size_t bytes;

    (void)state;
    assert_int_equal(get(store, &value, &bytes), CT_ERR_PEER);
    said("10.0.0.1:29500");
    said("it claims a value of 1099511627776 bytes");
    said("get \"key\"");
    assert_int_equal(get(store, &value, &bytes), CT_ERR_PEER);
    said("1099511627776");
    over(store);
}

/* ASan's allocator would say so if a gigabyte were asked for under CI's limits. */
static void a_claim_of_a_gigabyte_takes_what_came(void **state)
{
    ct_store *store = client_of(ANSWERS(THERE "\0\0\0\100\0\0\0\0few"), 5000);
    void *value;
    size_t bytes;

    (void)state;
    is_dead();
    assert_int_equal(get(store, &value, &bytes), CT_ERR_PEER);
    over(store);
}

static void answers_that_cannot_be_break_the_connection(void **state)
{
    static const char minus_one[] = "\377\377\377\377\377\377\377\377";
    ct_store *store = client_of(minus_one, 8, 5000);
    const char *key = "k";
    char **keys;
    void *value;
    size_t bytes;
    int count;

    (void)state;
    assert_int_equal(ct_store_list_keys(store, &keys, &count), CT_ERR_PEER);
    said("it counted -1 during list_keys");
    over(store);
    store = client_of(minus_one, 8, 5000);
    assert_int_equal(ct_store_queue_pop(store, "q", 0, &value, &bytes), CT_ERR_PEER);
    said("it counted -1 during queue_pop \"q\"");
    over(store);
    store = client_of(ANSWERS("\7"), 5000);
    assert_int_equal(ct_store_wait(store, &key, 1, 5000), CT_ERR_PEER);
    said("it answered 7 instead of 0 during wait \"k\"");
    over(store);
}

static void a_long_or_strange_key_is_cut_and_cleaned(void **state)
{
    ct_store *store = client_of(ANSWERS(""), 5000);
    char key[200], wanted[80];
    int64_t sum;

    (void)state;
    memset(key, 'x', sizeof key - 1);
    key[sizeof key - 1] = 0;
    key[0] = '\n';
    snprintf(wanted, sizeof wanted, "add \"?%.59s...\"", key + 1);
    is_dead();
    assert_int_equal(ct_store_add(store, key, 1, &sum), CT_ERR_PEER);
    said(wanted);
    over(store);
}

/* ---- Waiting ------------------------------------------------------------------ */

/* Reads a WAIT, and answers only the CANCEL_WAIT and what comes after it. */
struct script {
    const char *answers;
    size_t bytes;
    size_t asked; /* bytes of the WAIT */
};

static void *answers_the_cancel(void *arg)
{
    const struct script *script = arg;
    char request[256];

    if (socket_read_all(server, request, script->asked + 1, deadline_after(10000)) == CT_OK)
        socket_write_all(server, script->answers, script->bytes, deadline_after(10000));
    return NULL;
}

static ct_status wait_until_cancelled(ct_store *store, int count, const char *answers, size_t bytes)
{
    static const char *const keys[] = { "k0", "k1", "k2", "k3", "k4", "k5",
                                        "k6", "k7", "k8", "k9", "ka", "kb" };
    struct script script = { answers, bytes, 1 + 8 + (size_t)count * (8 + 3) };
    pthread_t thread;
    ct_status status;

    assert_int_equal(pthread_create(&thread, NULL, answers_the_cancel, &script), 0);
    status = ct_store_wait(store, keys, count, 20);
    pthread_join(thread, NULL);
    return status;
}

static void a_wait_names_the_missing_keys(void **state)
{
    static const struct {
        int count;
        const char *answers; /* to the CANCEL_WAIT, then to a CHECK of each key */
        size_t bytes;
        const char *words;
    } cases[] = {
        { 1, ANSWERS("\1"), "the store at 10.0.0.1:29500: key \"k0\" is not there after " },
        { 4, ANSWERS("\1\0\1\0\0"), ": key \"k1\" is not there after " },
        { 3, ANSWERS("\1\1\0\1"), ": keys \"k0\", \"k2\" are not there after " },
        { 10, ANSWERS("\1\1\1\1\1\1\1\1\1\1\1"), "\"k6\", \"k7\" and 2 others are not there" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ct_store *store = client_of(ANSWERS(""), 10000);
        int64_t count;

        assert_int_equal(
            wait_until_cancelled(store, cases[i].count, cases[i].answers, cases[i].bytes),
            CT_ERR_TIMEOUT);
        said(cases[i].words);
        assert_int_equal(socket_write_all(server, ANSWERS(U64("\5")), deadline_after(5000)), CT_OK);
        assert_int_equal(ct_store_num_keys(store, &count), CT_OK); /* in step again */
        assert_int_equal(count, 5);
        over(store);
    }
}

static void a_pop_that_is_always_too_late_ends_with_its_deadline(void **state)
{
    ct_store *store = client_of(ANSWERS(U64("\0") THERE U64("\0") THERE U64("\0")), 5000);
    void *value;
    size_t bytes;

    (void)state;
    assert_int_equal(ct_store_queue_pop(store, "q", 0, &value, &bytes), CT_ERR_TIMEOUT);
    said("other clients took what was in the queue \"q\"");
    over(store);
}

static void keys_that_come_at_the_last_moment_are_there(void **state)
{
    ct_store *store = client_of(ANSWERS(""), 10000);

    (void)state;
    assert_int_equal(wait_until_cancelled(store, 2, ANSWERS("\1\0\0")), CT_OK);
    over(store);
    store = client_of(ANSWERS(""), 10000);
    assert_int_equal(wait_until_cancelled(store, 2, ANSWERS("\0\1")), CT_OK); /* just released */
    over(store);
}

/* ---- Cut anywhere ------------------------------------------------------------- */

static const char session[] = THERE U64("\5") "value" THERE U64("\1") "x" U64("\0") U64("\2")
    U64("\2") "/a" U64("\3") "/bc" U64("\7");

/* Gives how many of the operations went well; what failed left nothing behind. */
static int whole_session(ct_store *store)
{
    const char *one = "one";
    char **keys;
    void *value;
    size_t bytes;
    int64_t sum;
    int count;

    if (get(store, &value, &bytes) != CT_OK)
        return 0;
    assert_string_equal(value, "value");
    free(value);
    if (ct_store_multi_get(store, &one, 1, 5000, &value, &bytes) != CT_OK)
        return 1;
    assert_string_equal(value, "x");
    free(value);
    if (ct_store_queue_len(store, "q", &sum) != CT_OK)
        return 2;
    if (ct_store_list_keys(store, &keys, &count) != CT_OK)
        return 3;
    assert_int_equal(count, 2);
    assert_string_equal(keys[1], "bc");
    free(keys);
    if (ct_store_add(store, "n", 1, &sum) != CT_OK)
        return 4;
    assert_int_equal(sum, 7);
    return 5;
}

static void answers_that_end_at_any_byte_are_an_error(void **state)
{
    int before = 0;

    (void)state;
    for (size_t cut = 0; cut < sizeof session; cut++) {
        ct_store *store = client_of(session, cut, 5000);
        int done;

        is_dead();
        done = whole_session(store);
        assert_true(done >= before);
        assert_int_equal(done == 5, cut == sizeof session - 1);
        assert_true(done == 5 || strstr(ct_last_error(), "it closed the connection"));
        before = done;
        over(store);
    }
}

static void *says_the_rest(void *from)
{
    const size_t cut = *(const size_t *)from;

    nap(1);
    socket_write_all(server, session + cut, sizeof session - 1 - cut, deadline_after(5000));
    return NULL;
}

static void answers_may_come_in_pieces(void **state)
{
    (void)state;
    for (size_t cut = 0; cut < sizeof session; cut++) {
        ct_store *store = client_of(session, cut, 5000);
        pthread_t thread;

        assert_int_equal(pthread_create(&thread, NULL, says_the_rest, &cut), 0);
        assert_int_equal(whole_session(store), 5);
        pthread_join(thread, NULL);
        over(store);
    }
}

static void a_large_value_comes_whole(void **state)
{
    const size_t size = (5 << 20) + 3; /* several times what is allocated ahead */
    char *large = malloc(size);
    const int port = free_port();
    ct_store *store;
    void *value;
    size_t bytes;

    (void)state;
    assert_non_null(large);
    for (size_t i = 0; i < size; i++)
        large[i] = (char)(i * 31 >> 3);
    assert_int_equal(ct_store_tcp("127.0.0.1", port, 1, 10000, &store), CT_OK);
    assert_int_equal(ct_store_set(store, "key", large, size), CT_OK);
    assert_int_equal(get(store, &value, &bytes), CT_OK);
    assert_int_equal(bytes, size);
    assert_memory_equal(value, large, size);
    free(value);
    free(large);
    ct_store_close(store);
}

/* ---- Workers ------------------------------------------------------------------ */

static void the_host_waits_for_its_workers(void **state)
{
    const int port = free_port();
    ct_store *host, *worker, *prefix;

    (void)state;
    assert_int_equal(ct_store_tcp("127.0.0.1", port, 1, 100, &host), CT_OK);
    assert_int_equal(ct_store_wait_workers(host, 2), CT_ERR_TIMEOUT);
    said("1 of 2 workers came");
    assert_int_equal(ct_store_tcp("127.0.0.1", port, 0, 5000, &worker), CT_OK);
    assert_int_equal(ct_store_prefix(worker, "p", &prefix), CT_OK);
    assert_int_equal(ct_store_wait_workers(prefix, 9), CT_OK); /* others go on at once */
    assert_int_equal(ct_store_wait_workers(host, 3), CT_OK);
    ct_store_close(prefix);
    ct_store_close(worker);
    ct_store_close(host);
}

static void other_kinds_have_no_workers(void **state)
{
    ct_store *store;

    (void)state;
    assert_int_equal(ct_store_hash(&store), CT_OK);
    assert_int_equal(ct_store_wait_workers(store, 1), CT_ERR_UNSUPPORTED);
    said("hash");
    ct_store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_that_closes_inside_a_value_is_gone),
        cmocka_unit_test(later_calls_repeat_the_cause),
        cmocka_unit_test(a_set_to_a_server_that_is_gone_is_an_error),
        cmocka_unit_test(so_are_the_others_without_an_answer),
        cmocka_unit_test(silence_ends_with_the_timeout),
        cmocka_unit_test(a_claim_of_2_to_the_40_bytes_is_refused),
        cmocka_unit_test(a_claim_of_a_gigabyte_takes_what_came),
        cmocka_unit_test(answers_that_cannot_be_break_the_connection),
        cmocka_unit_test(a_long_or_strange_key_is_cut_and_cleaned),
        cmocka_unit_test(a_wait_names_the_missing_keys),
        cmocka_unit_test(a_pop_that_is_always_too_late_ends_with_its_deadline),
        cmocka_unit_test(keys_that_come_at_the_last_moment_are_there),
        cmocka_unit_test(answers_that_end_at_any_byte_are_an_error),
        cmocka_unit_test(answers_may_come_in_pieces),
        cmocka_unit_test(a_large_value_comes_whole),
        cmocka_unit_test(the_host_waits_for_its_workers),
        cmocka_unit_test(other_kinds_have_no_workers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
