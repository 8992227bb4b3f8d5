/* SPDX-License-Identifier: Apache-2.0 */
/* test_store_table.c - the store's engine, without sockets: bytes in, replies out. */
#include "tests/harness.h"

#include <string.h>

#include "runtime/store_table.h"

/* What a client was answered so far. */
struct replies {
    unsigned char bytes[4096];
    size_t size;
};

static int take(void *owner, const void *data, size_t bytes)
{
    struct replies *replies = owner;

    assert_true(replies->size + bytes <= sizeof replies->bytes);
    memcpy(replies->bytes + replies->size, data, bytes);
    replies->size += bytes;
    return 0;
}

static int take_value(void *owner, struct value *value)
{
    return take(owner, value->data, value->size);
}

static const struct table_owner owner = { .reply = take, .reply_value = take_value };

static struct table *new_table(void)
{
    return table_create(&owner, (size_t)1 << 30, (size_t)1 << 20);
}

/* All of it, in as many turns as that needs. */
static enum table_state feed(struct table_client *client, const void *data, size_t bytes,
                             const char **why)
{
    enum table_state state;
    size_t used;

    do {
        state = table_feed(client, data, bytes, &used, why);
        data = (const char *)data + used;
        bytes -= used;
    } while (state == TABLE_BUSY);
    return state;
}

/* ---- Requests by hand: the wire is fixed, so its bytes stand here ------------- */

struct wire {
    unsigned char bytes[4096];
    size_t size;
};

static void u8(struct wire *w, uint8_t value)
{
    w->bytes[w->size++] = value;
}

static void u64(struct wire *w, uint64_t value)
{
    memcpy(w->bytes + w->size, &value, sizeof value);
    w->size += sizeof value;
}

static void blob(struct wire *w, const char *text)
{
    u64(w, strlen(text));
    memcpy(w->bytes + w->size, text, strlen(text));
    w->size += strlen(text);
}

static void hello(struct wire *w)
{
    static const unsigned char validate[] = { 0, 0xce, 0xf7, 0x85, 0x3c };

    memcpy(w->bytes + w->size, validate, sizeof validate);
    w->size += sizeof validate;
}

/* Every command once; the wait is released by what comes behind it. */
static void a_whole_conversation(struct wire *w)
{
    hello(w);
    u8(w, 13), memcpy(w->bytes + w->size, "nonc", 4), w->size += 4; /* PING */
    u8(w, 6), u64(w, 1), blob(w, "/late");                          /* WAIT */
    u8(w, 1), blob(w, "/k"), blob(w, "val");                        /* SET */
    u8(w, 3), blob(w, "/k");                                        /* GET */
    u8(w, 4), blob(w, "/n"), u64(w, 5);                             /* ADD */
    u8(w, 5), u64(w, 2), blob(w, "/k"), blob(w, "/n");              /* CHECK */
    u8(w, 2), blob(w, "/c"), blob(w, ""), blob(w, "first");         /* COMPARE_SET */
    u8(w, 9), blob(w, "/k"), blob(w, "ue");                         /* APPEND */
    u8(w, 11), u64(w, 2), blob(w, "/late"), blob(w, "x"), blob(w, "/y"),
        blob(w, "");                                       /* MULTI_SET */
    u8(w, 10), u64(w, 2), blob(w, "/k"), blob(w, "/none"); /* MULTI_GET */
    u8(w, 14), blob(w, "/q"), blob(w, "e1");               /* QUEUE_PUSH */
    u8(w, 16), blob(w, "/q");                              /* QUEUE_LEN */
    u8(w, 15), blob(w, "/q");                              /* QUEUE_POP */
    u8(w, 8), blob(w, "/y");                               /* DELETE_KEY */
    u8(w, 7);                                              /* GETNUMKEYS */
    u8(w, 18), blob(w, "/b"), u64(w, 1);                   /* BARRIER */
    u8(w, 12);                                             /* CANCEL_WAIT */
}

static struct replies converse(const struct wire *wire, size_t piece)
{
    struct table *table = new_table();
    struct replies replies = { .size = 0 };
    struct table_client *client = table_client_create(table, &replies);
    const char *why = NULL;

    for (size_t at = 0; at < wire->size; at += piece) {
        const size_t n = wire->size - at < piece ? wire->size - at : piece;

        assert_int_equal(feed(client, wire->bytes + at, n, &why), TABLE_READY);
    }
    table_client_destroy(client);
    table_destroy(table);
    return replies;
}

static void a_conversation_cut_anywhere_is_the_same(void **state)
{
    struct wire wire = { .size = 0 };
    struct replies whole;

    (void)state;
    a_whole_conversation(&wire);
    whole = converse(&wire, wire.size);
    assert_memory_equal(whole.bytes, "nonc\3\0\0\0\0\0\0\0val", 15);
    assert_int_equal(whole.bytes[whole.size - 1], 1); /* of CANCEL_WAIT */
    for (size_t piece = 1; piece < 60; piece++) {
        const struct replies cut = converse(&wire, piece);

        assert_int_equal(cut.size, whole.size);
        assert_memory_equal(cut.bytes, whole.bytes, whole.size);
    }
}

static void a_set_releases_every_waiter_and_a_push_one(void **state)
{
    struct table *table = new_table();
    struct replies replies[3] = { { .size = 0 } };
    struct table_client *clients[3];
    struct wire wait = { .size = 0 }, push = { .size = 0 }, set = { .size = 0 };
    const char *why;

    (void)state;
    hello(&wait), u8(&wait, 6), u64(&wait, 1), blob(&wait, "/x");
    for (int i = 0; i < 3; i++)
        clients[i] = table_client_create(table, &replies[i]);
    for (int i = 0; i < 2; i++)
        assert_int_equal(feed(clients[i], wait.bytes, wait.size, &why), TABLE_READY);
    hello(&push), u8(&push, 14), blob(&push, "/x"), blob(&push, "v");
    assert_int_equal(feed(clients[2], push.bytes, push.size, &why), TABLE_READY);
    assert_int_equal(replies[0].size, 1);
    assert_int_equal(replies[1].size, 0);
    u8(&set, 1), blob(&set, "/x"), blob(&set, "v");
    assert_int_equal(feed(clients[2], set.bytes, set.size, &why), TABLE_READY);
    assert_int_equal(replies[0].size, 1);
    assert_int_equal(replies[1].size, 1);
    assert_true(table_has(table, "/x"));
    table_clear(table);
    assert_false(table_has(table, "/x"));
    for (int i = 0; i < 3; i++)
        table_client_destroy(clients[i]);
    table_destroy(table);
}

/* Each breaks the protocol: the client is to be closed, with a reason. */
static void refused(const struct wire *wire)
{
    struct table *table = new_table();
    struct replies replies = { .size = 0 };
    struct table_client *client = table_client_create(table, &replies);
    const char *why = NULL;

    assert_int_equal(feed(client, wire->bytes, wire->size, &why), TABLE_BROKEN);
    assert_non_null(why);
    assert_int_equal(replies.size, 0);
    table_client_destroy(client);
    table_destroy(table);
}

static void what_is_no_request_closes_the_client(void **state)
{
    struct wire w = { .size = 0 };

    (void)state;
    memcpy(w.bytes, "GET / HTTP/1.1\r\n", w.size = 16);
    refused(&w);
    w.size = 0, u8(&w, 0), u8(&w, 1), u8(&w, 2), u8(&w, 3), u8(&w, 4); /* a wrong magic */
    refused(&w);
    w.size = 0, hello(&w), u8(&w, 19); /* no such command */
    refused(&w);
    w.size = 0, hello(&w), u8(&w, 1), u64(&w, UINT64_MAX); /* lengths nobody has */
    refused(&w);
    w.size = 0, hello(&w), u8(&w, 6), u64(&w, (uint64_t)1 << 44);
    refused(&w);
    w.size = 0, hello(&w), u8(&w, 1), blob(&w, "/k"), blob(&w, "no number");
    u8(&w, 4), blob(&w, "/k"), u64(&w, 1);
    refused(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_conversation_cut_anywhere_is_the_same),
        cmocka_unit_test(a_set_releases_every_waiter_and_a_push_one),
        cmocka_unit_test(what_is_no_request_closes_the_client),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
