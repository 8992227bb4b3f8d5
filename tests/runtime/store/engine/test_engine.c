/* SPDX-License-Identifier: Apache-2.0 */
/* test_engine.c - the store's engine, without sockets: bytes in, replies out. */
#include "tests/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/store/engine/engine.h"

#define WIRE_BYTES (160 << 10)
#include "tests/runtime/store/wire_request.h"

enum {
    MANY = 5000, /* keys or clients: more than one turn of the engine looks at */
    ROOM = 160 << 10
};

/* The replies to a client so far. */
struct replies {
    unsigned char bytes[ROOM];
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

static const struct reply_hooks owner = { .reply = take, .reply_value = take_value };

static struct engine *new_engine(void)
{
    return engine_create(&owner, (size_t)1 << 30, (size_t)1 << 20);
}

/* Feeds all bytes, in as many turns as needed. */
static enum session_state feed(struct session *client, const void *data, size_t bytes,
                               const char **why)
{
    enum session_state state;
    size_t used;

    do {
        state = session_feed(client, data, bytes, &used, why);
        data = (const char *)data + used;
        bytes -= used;
    } while (state == SESSION_BUSY);
    return state;
}

/* ---- Requests --------------------------------------------------------------- */

static void hello(struct store_wire *w)
{
    static const unsigned char validate[] = { 0, 0xce, 0xf7, 0x85, 0x3c };

    memcpy(w->bytes + w->size, validate, sizeof validate);
    w->size += sizeof validate;
}

/* Every command once; a later MULTI_SET releases the wait. */
static void a_whole_conversation(struct store_wire *w)
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

static struct replies converse(const struct store_wire *wire, size_t piece)
{
    struct engine *engine = new_engine();
    struct replies replies = { .size = 0 };
    struct session *client = session_create(engine, &replies);
    const char *why = NULL;

    for (size_t at = 0; at < wire->size; at += piece) {
        const size_t n = wire->size - at < piece ? wire->size - at : piece;

        assert_int_equal(feed(client, wire->bytes + at, n, &why), SESSION_READY);
    }
    session_destroy(client);
    engine_destroy(engine);
    return replies;
}

static void a_conversation_cut_anywhere_is_the_same(void **state)
{
    struct store_wire wire = { .size = 0 };
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
    struct engine *engine = new_engine();
    struct replies replies[3] = { { .size = 0 } };
    struct session *clients[3];
    struct store_wire wait = { .size = 0 }, push = { .size = 0 }, set = { .size = 0 };
    const char *why;

    (void)state;
    hello(&wait), u8(&wait, 6), u64(&wait, 1), blob(&wait, "/x");
    for (int i = 0; i < 3; i++)
        clients[i] = session_create(engine, &replies[i]);
    for (int i = 0; i < 2; i++)
        assert_int_equal(feed(clients[i], wait.bytes, wait.size, &why), SESSION_READY);
    hello(&push), u8(&push, 14), blob(&push, "/x"), blob(&push, "v");
    assert_int_equal(feed(clients[2], push.bytes, push.size, &why), SESSION_READY);
    assert_int_equal(replies[0].size, 1);
    assert_int_equal(replies[1].size, 0);
    u8(&set, 1), blob(&set, "/x"), blob(&set, "v");
    assert_int_equal(feed(clients[2], set.bytes, set.size, &why), SESSION_READY);
    assert_int_equal(replies[0].size, 1);
    assert_int_equal(replies[1].size, 1);
    assert_true(engine_has(engine, "/x"));
    engine_clear(engine);
    assert_false(engine_has(engine, "/x"));
    for (int i = 0; i < 3; i++)
        session_destroy(clients[i]);
    engine_destroy(engine);
}

/* Each breaks the protocol: the client must be closed, with a reason. */
static void refused(const struct store_wire *wire)
{
    struct engine *engine = new_engine();
    struct replies replies = { .size = 0 };
    struct session *client = session_create(engine, &replies);
    const char *why = NULL;

    assert_int_equal(feed(client, wire->bytes, wire->size, &why), SESSION_BROKEN);
    assert_non_null(why);
    assert_int_equal(replies.size, 0);
    session_destroy(client);
    engine_destroy(engine);
}

static void what_is_no_request_closes_the_client(void **state)
{
    struct store_wire w = { .size = 0 };

    (void)state;
    memcpy(w.bytes, "GET / HTTP/1.1\r\n", w.size = 16);
    refused(&w);
    w.size = 0, u8(&w, 0), u8(&w, 1), u8(&w, 2), u8(&w, 3), u8(&w, 4); /* a wrong magic */
    refused(&w);
    w.size = 0, hello(&w), u8(&w, 19); /* no such command */
    refused(&w);
    w.size = 0, hello(&w), u8(&w, 1), u64(&w, UINT64_MAX); /* an impossible length */
    refused(&w);
    w.size = 0, hello(&w), u8(&w, 6), u64(&w, (uint64_t)1 << 44);
    refused(&w);
    w.size = 0, hello(&w), u8(&w, 1), blob(&w, "/k"), blob(&w, "no number");
    u8(&w, 4), blob(&w, "/k"), u64(&w, 1);
    refused(&w);
}

/* ---- Requests that take several turns ---------------------------------------- */

static const char *numbered(int i)
{
    static char key[16];

    snprintf(key, sizeof key, "/k%04d", i);
    return key;
}

/* A command and the keys of 0 to MANY. */
static void many_keys(struct store_wire *w, uint8_t command)
{
    u8(w, command), u64(w, MANY);
    for (int i = 0; i < MANY; i++)
        blob(w, numbered(i));
}

static void many_pairs(struct store_wire *w)
{
    u8(w, 11), u64(w, MANY); /* MULTI_SET */
    for (int i = 0; i < MANY; i++)
        blob(w, numbered(i)), blob(w, numbered(i) + 2);
}

/* An engine and two clients that have sent the magic; the second one must not wait for the first.
 */
struct scene {
    struct engine *engine;
    struct replies replies[2];
    struct session *clients[2];
};

static void say(struct scene *scene, int who, const struct store_wire *wire)
{
    const char *why;

    assert_int_equal(feed(scene->clients[who], wire->bytes, wire->size, &why), SESSION_READY);
}

static struct scene *scene_create(size_t memory)
{
    static struct scene scene;
    static struct store_wire first;

    first.size = 0, hello(&first);
    scene.engine = engine_create(&owner, memory, (size_t)8 << 20);
    for (int i = 0; i < 2; i++) {
        scene.replies[i].size = 0;
        scene.clients[i] = session_create(scene.engine, &scene.replies[i]);
        say(&scene, i, &first);
    }
    return &scene;
}

static void scene_destroy(struct scene *scene)
{
    for (int i = 0; i < 2; i++)
        session_destroy(scene->clients[i]);
    engine_destroy(scene->engine);
}

/* One small request of the second client, answered at once. */
static void other_adds(struct scene *scene, int64_t sum)
{
    static struct store_wire add;

    add.size = 0, u8(&add, 4), blob(&add, "/other"), u64(&add, 1);
    scene->replies[1].size = 0;
    say(scene, 1, &add);
    assert_int_equal(scene->replies[1].size, 8);
    assert_memory_equal(scene->replies[1].bytes, &sum, 8);
}

/* The first client's request, with the second client's between its turns.  Returns how many. */
static int in_turns(struct scene *scene, const struct store_wire *wire)
{
    enum session_state state;
    const char *why;
    size_t at = 0, used;
    int turns = 0;

    scene->replies[0].size = 0;
    while ((state = session_feed(scene->clients[0], wire->bytes + at, wire->size - at, &used, &why))
           == SESSION_BUSY) {
        at += used;
        other_adds(scene, ++turns);
    }
    assert_int_equal(state, SESSION_READY);
    assert_int_equal(at + used, wire->size);
    return turns;
}

static void deletes(struct scene *scene, const char *key)
{
    static struct store_wire wire;

    wire.size = 0, u8(&wire, 8), blob(&wire, key);
    say(scene, 1, &wire);
}

static void sets(struct scene *scene, const char *key, const char *value)
{
    static struct store_wire wire;

    wire.size = 0, u8(&wire, 1), blob(&wire, key), blob(&wire, value);
    say(scene, 1, &wire);
}

static void of_five_thousand_keys(uint8_t command, struct scene *scene)
{
    static struct store_wire wire;

    wire.size = 0;
    if (command == 11)
        many_pairs(&wire);
    else if (command == 7 || command == 17)
        u8(&wire, command);
    else
        many_keys(&wire, command);
    deletes(scene, "/other");
    assert_true(in_turns(scene, &wire) > 1);
}

static void five_thousand_keys_take_turns_with_the_others(void **state)
{
    struct scene *scene = scene_create((size_t)1 << 30);
    const unsigned char *at = scene->replies[0].bytes;

    (void)state;
    of_five_thousand_keys(11, scene); /* MULTI_SET answers nothing */
    assert_int_equal(scene->replies[0].size, 0);
    of_five_thousand_keys(6, scene); /* WAIT: they are all there */
    assert_int_equal(scene->replies[0].size, 1);
    assert_int_equal(at[0], 0);
    of_five_thousand_keys(5, scene); /* CHECK */
    assert_int_equal(scene->replies[0].size, 1);
    assert_int_equal(at[0], 0);
    of_five_thousand_keys(10, scene); /* MULTI_GET: each its own number */
    assert_int_equal(scene->replies[0].size, MANY * 12);
    for (int i = 0; i < MANY; i++)
        assert_memory_equal(at + 12 * i + 8, numbered(i) + 2, 4);
    scene_destroy(scene);
}

/* The whole request counts, not the turn. */
static void a_key_that_comes_between_the_turns_of_its_wait_counts(void **state)
{
    struct scene *scene = scene_create((size_t)1 << 30);
    static struct store_wire wait, all;
    const char *why;
    size_t used;

    (void)state;
    wait.size = 0, many_keys(&wait, 6);
    all.size = 0, many_pairs(&all);
    assert_int_equal(session_feed(scene->clients[0], wait.bytes, wait.size, &used, &why),
                     SESSION_BUSY);
    assert_int_equal(used, wait.size);
    say(scene, 1, &all);
    while (engine_work(scene->engine))
        continue;
    assert_int_equal(scene->replies[0].size, 0); /* the WAIT is still being read */
    assert_int_equal(feed(scene->clients[0], "", 0, &why), SESSION_READY);
    while (engine_work(scene->engine))
        continue;
    assert_int_equal(scene->replies[0].size, 1);
    scene_destroy(scene);
}

/* Between the turns: one that was told and one that was not are deleted and come
 * again, and a new one comes. */
static void a_list_tells_each_key_of_its_beginning_once(void **state)
{
    struct scene *scene = scene_create((size_t)1 << 30);
    static struct store_wire wire;
    static int told[MANY];
    const char *why;
    uint64_t number;
    size_t used, at = 8;
    int turns = 0;

    (void)state;
    memset(told, 0, sizeof told);
    wire.size = 0, many_pairs(&wire);
    say(scene, 0, &wire);
    wire.size = 0, u8(&wire, 17); /* LIST_KEYS */
    scene->replies[0].size = 0;
    while (session_feed(scene->clients[0], wire.bytes, turns ? 0 : 1, &used, &why)
           == SESSION_BUSY) {
        for (int i = turns; i < MANY; i += 97)
            deletes(scene, numbered(i));
        for (int i = turns; i < MANY; i += 194)
            sets(scene, numbered(i), "again");
        sets(scene, "/new", "never told");
        turns++;
    }
    assert_true(turns > 1);
    memcpy(&number, scene->replies[0].bytes, 8);
    assert_int_equal(number, MANY);
    for (int i = 0; i < MANY; i++, at += 14) {
        int which = -1;

        memcpy(&number, scene->replies[0].bytes + at, 8);
        assert_int_equal(number, 6);
        assert_int_equal(sscanf((char *)scene->replies[0].bytes + at + 8, "/k%4d", &which), 1);
        assert_int_equal(told[which]++, 0);
    }
    assert_int_equal(at, scene->replies[0].size);
    scene_destroy(scene);
}

static void a_multi_set_of_one_who_leaves_is_carried_out_whole(void **state)
{
    struct scene *scene = scene_create((size_t)1 << 30);
    static struct store_wire wire;
    const char *why;
    size_t used;

    (void)state;
    wire.size = 0, many_pairs(&wire);
    assert_int_equal(session_feed(scene->clients[0], wire.bytes, wire.size, &used, &why),
                     SESSION_BUSY);
    assert_false(engine_has(scene->engine, numbered(MANY - 1)));
    session_destroy(scene->clients[0]);
    scene->clients[0] = NULL;
    for (int i = 0; i < MANY; i++)
        assert_true(engine_has(scene->engine, numbered(i)));
    scene_destroy(scene);
}

static void half_a_multi_set_is_not_carried_out(void **state)
{
    struct scene *scene = scene_create((size_t)1 << 30);
    static struct store_wire wire;

    (void)state;
    wire.size = 0, many_pairs(&wire);
    wire.size--;
    say(scene, 0, &wire);
    session_destroy(scene->clients[0]);
    scene->clients[0] = NULL;
    assert_false(engine_has(scene->engine, numbered(0)));
    scene_destroy(scene);
}

/* ---- Many waiting clients ------------------------------------------------------ */

struct told {
    int count;
    unsigned char last;
};

static int count(void *client, const void *data, size_t bytes)
{
    struct told *told = client;

    told->count += (int)bytes;
    told->last = ((const unsigned char *)data)[bytes - 1];
    return 0;
}

static const struct reply_hooks counter = { .reply = count };

/* MANY clients that wait for /x, and some more that do not. */
struct crowd {
    struct engine *engine;
    struct told told[MANY + 3];
    struct session *clients[MANY + 3];
};

static void one_says(struct crowd *crowd, int who, const struct store_wire *wire)
{
    const char *why;

    assert_int_equal(feed(crowd->clients[who], wire->bytes, wire->size, &why), SESSION_READY);
}

static struct crowd *crowd_create(void)
{
    static struct crowd crowd;
    static struct store_wire wire;

    memset(&crowd, 0, sizeof crowd);
    crowd.engine = engine_create(&counter, (size_t)1 << 30, (size_t)1 << 20);
    for (int i = 0; i < MANY + 3; i++) {
        crowd.clients[i] = session_create(crowd.engine, &crowd.told[i]);
        wire.size = 0, hello(&wire);
        if (i < MANY)
            u8(&wire, 6), u64(&wire, 1), blob(&wire, "/x");
        one_says(&crowd, i, &wire);
    }
    return &crowd;
}

static void crowd_destroy(struct crowd *crowd)
{
    for (int i = 0; i < MANY + 3; i++)
        session_destroy(crowd->clients[i]);
    engine_destroy(crowd->engine);
}

static int told_so_far(const struct crowd *crowd)
{
    int sum = 0;

    for (int i = 0; i < MANY; i++)
        sum += crowd->told[i].count;
    return sum;
}

static void x_is_set(struct crowd *crowd)
{
    static struct store_wire wire;

    wire.size = 0, u8(&wire, 1), blob(&wire, "/x"), blob(&wire, "v");
    one_says(crowd, MANY, &wire);
}

static void five_thousand_waiters_are_told_in_turns(void **state)
{
    struct crowd *crowd = crowd_create();
    int turns = 0, before;

    (void)state;
    x_is_set(crowd);
    before = told_so_far(crowd);
    assert_true(before < MANY);
    for (int more = 1; more; turns++) {
        more = engine_work(crowd->engine);
        assert_true(told_so_far(crowd) - before <= 1000); /* one turn does not answer all */
        before = told_so_far(crowd);
    }
    assert_true(turns > 1);
    for (int i = 0; i < MANY; i++)
        assert_true(crowd->told[i].count == 1 && crowd->told[i].last == 0);
    crowd_destroy(crowd);
}

static void those_who_leave_before_they_are_told_do_no_harm(void **state)
{
    struct crowd *crowd = crowd_create();
    int left = 0;

    (void)state;
    x_is_set(crowd);
    for (int i = 0; i < MANY; i += 2) {
        left += crowd->told[i].count == 0;
        session_destroy(crowd->clients[i]);
        crowd->clients[i] = NULL;
    }
    assert_true(left > 0);
    while (engine_work(crowd->engine))
        continue;
    assert_int_equal(told_so_far(crowd), MANY - left);
    crowd_destroy(crowd);
}

/* Both wait for a queue, and one is to be told of a push; but the ring of the released is
 * full of others, so what it does next comes before the word. */
static void push_to_one_of(struct crowd *crowd, int first, int second)
{
    static struct store_wire wire;

    wire.size = 0, u8(&wire, 6), u64(&wire, 1), blob(&wire, "/q");
    one_says(crowd, first, &wire);
    one_says(crowd, second, &wire);
    x_is_set(crowd);
    wire.size = 0, u8(&wire, 14), blob(&wire, "/q"), blob(&wire, "e");
    one_says(crowd, MANY, &wire);
}

static void a_push_whose_waiter_cancels_goes_to_the_next(void **state)
{
    struct crowd *crowd = crowd_create();
    static struct store_wire wire;
    const int first = MANY + 1, second = MANY + 2;

    (void)state;
    push_to_one_of(crowd, first, second);
    assert_int_equal(crowd->told[first].count, 0);
    wire.size = 0, u8(&wire, 12); /* CANCEL_WAIT */
    one_says(crowd, first, &wire);
    while (engine_work(crowd->engine))
        continue;
    assert_int_equal(crowd->told[first].count, 1);
    assert_int_equal(crowd->told[first].last, 1);
    assert_int_equal(crowd->told[second].count, 1);
    assert_int_equal(crowd->told[second].last, 0);
    crowd_destroy(crowd);
}

static void a_push_whose_waiter_leaves_goes_to_the_next(void **state)
{
    struct crowd *crowd = crowd_create();
    const int first = MANY + 1, second = MANY + 2;

    (void)state;
    push_to_one_of(crowd, first, second);
    session_destroy(crowd->clients[first]);
    crowd->clients[first] = NULL;
    while (engine_work(crowd->engine))
        continue;
    assert_int_equal(crowd->told[first].count, 0);
    assert_int_equal(crowd->told[second].count, 1);
    crowd_destroy(crowd);
}

/* One push releases one wait; the next push is for the other client. */
static void a_queue_named_twice_takes_one_push(void **state)
{
    struct scene *scene = scene_create((size_t)1 << 30);
    static struct store_wire wire;

    (void)state;
    wire.size = 0, u8(&wire, 6), u64(&wire, 2), blob(&wire, "/q"), blob(&wire, "/q");
    say(scene, 0, &wire);
    wire.size = 0, u8(&wire, 14), blob(&wire, "/q"), blob(&wire, "e");
    say(scene, 1, &wire);
    while (engine_work(scene->engine))
        continue;
    assert_int_equal(scene->replies[0].size, 1);
    wire.size = 0, u8(&wire, 15), blob(&wire, "/q"); /* QUEUE_POP: 1, then the element */
    say(scene, 0, &wire);
    assert_memory_equal(scene->replies[0].bytes, "\0\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0e", 18);
    wire.size = 0, u8(&wire, 6), u64(&wire, 1), blob(&wire, "/q");
    say(scene, 1, &wire);
    wire.size = 0, u8(&wire, 14), blob(&wire, "/q"), blob(&wire, "f");
    say(scene, 0, &wire);
    while (engine_work(scene->engine))
        continue;
    assert_int_equal(scene->replies[0].size, 18);
    assert_int_equal(scene->replies[1].size, 1);
    scene_destroy(scene);
}

static void five_thousand_waits_of_one_who_left_go_in_turns(void **state)
{
    struct scene *scene = scene_create((size_t)1 << 30);
    static struct store_wire wire;
    const size_t before = engine_budget(scene->engine)->used;
    int turns = 1;

    (void)state;
    wire.size = 0, many_keys(&wire, 6);
    say(scene, 0, &wire);
    assert_true(engine_budget(scene->engine)->used > before);
    session_destroy(scene->clients[0]);
    scene->clients[0] = NULL;
    while (engine_work(scene->engine)) {
        deletes(scene, "/other");
        other_adds(scene, 1);
        turns++;
    }
    assert_true(turns > 1);
    wire.size = 0, many_pairs(&wire);
    say(scene, 1, &wire); /* no client waits any more */
    while (engine_work(scene->engine))
        continue;
    scene_destroy(scene);
}

static void five_thousand_keys_are_cleared(void **state)
{
    struct scene *scene = scene_create((size_t)1 << 30);
    static struct store_wire wire;

    (void)state;
    wire.size = 0, many_pairs(&wire);
    say(scene, 0, &wire);
    engine_clear(scene->engine);
    for (int i = 0; i < MANY; i++)
        assert_false(engine_has(scene->engine, numbered(i)));
    scene->replies[0].size = 0;
    wire.size = 0, u8(&wire, 7);
    say(scene, 0, &wire);
    assert_memory_equal(scene->replies[0].bytes, "\0\0\0\0\0\0\0\0", 8);
    scene_destroy(scene);
}

/* ---- Memory --------------------------------------------------------------------- */

enum { MIB = 1 << 20 };

/* SET or APPEND of that many bytes, all the same. */
static enum session_state store_large(struct session *client, uint8_t command, const char *key,
                                      size_t bytes, char byte, const char **why)
{
    static struct store_wire head;
    char *data = malloc(bytes);
    enum session_state state;

    assert_non_null(data);
    memset(data, byte, bytes);
    head.size = 0, u8(&head, command), blob(&head, key), u64(&head, bytes);
    state = feed(client, head.bytes, head.size, why);
    if (state == SESSION_READY)
        state = feed(client, data, bytes, why);
    free(data);
    return state;
}

static void a_full_table_refuses_and_serves_again_when_there_is_room(void **state)
{
    struct scene *scene = scene_create(MIB);
    const char *why = NULL;
    int fitted = 0;

    (void)state;
    while (store_large(scene->clients[0], 1, numbered(fitted), 100 << 10, 'v', &why)
               == SESSION_READY
           && fitted < 100)
        fitted++;
    assert_true(fitted >= 5 && fitted <= 10);
    assert_non_null(strstr(why, "no memory"));
    assert_false(engine_has(scene->engine, numbered(fitted)));
    session_destroy(scene->clients[0]);
    scene->clients[0] = session_create(scene->engine, &scene->replies[0]);
    for (int i = 0; i < fitted; i++)
        deletes(scene, numbered(i));
    while (engine_work(scene->engine))
        continue;
    other_adds(scene, 1);
    for (int i = 0; i < fitted; i++)
        assert_int_equal(store_large(scene->clients[1], 1, numbered(i), 100 << 10, 'w', &why),
                         SESSION_READY);
    scene_destroy(scene);
}

/* An owner that holds a value as long as the test needs. */
static struct value *shown;

static int show(void *client, struct value *value)
{
    (void)client;
    shown = value_hold(value);
    return 0;
}

static const struct reply_hooks shower = { .reply = count, .reply_value = show };

static void old_bytes_stay(uint8_t command)
{
    struct engine *engine = engine_create(&shower, (size_t)64 * MIB, (size_t)8 * MIB);
    struct told told = { 0 };
    struct session *client = session_create(engine, &told);
    static struct store_wire wire;
    const char *why;

    wire.size = 0, hello(&wire);
    assert_int_equal(feed(client, wire.bytes, wire.size, &why), SESSION_READY);
    assert_int_equal(store_large(client, 1, "/k", MIB, 'o', &why), SESSION_READY);
    wire.size = 0, u8(&wire, 3), blob(&wire, "/k");
    assert_int_equal(feed(client, wire.bytes, wire.size, &why), SESSION_READY);
    if (command == 8) {
        wire.size = 0, u8(&wire, 8), blob(&wire, "/k");
        assert_int_equal(feed(client, wire.bytes, wire.size, &why), SESSION_READY);
    } else {
        assert_int_equal(store_large(client, command, "/k", MIB, 'n', &why), SESSION_READY);
    }
    while (engine_work(engine))
        continue;
    assert_int_equal(shown->size, MIB);
    for (int i = 0; i < MIB; i++)
        if (shown->data[i] != 'o')
            fail_msg("byte %d of the answer changed", i);
    value_release(shown);
    session_destroy(client);
    engine_destroy(engine);
}

static void an_answer_keeps_the_bytes_it_shows(void **state)
{
    (void)state;
    old_bytes_stay(1); /* SET */
    old_bytes_stay(9); /* APPEND */
    old_bytes_stay(8); /* DELETE_KEY */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_conversation_cut_anywhere_is_the_same),
        cmocka_unit_test(a_set_releases_every_waiter_and_a_push_one),
        cmocka_unit_test(what_is_no_request_closes_the_client),
        cmocka_unit_test(five_thousand_keys_take_turns_with_the_others),
        cmocka_unit_test(a_key_that_comes_between_the_turns_of_its_wait_counts),
        cmocka_unit_test(a_list_tells_each_key_of_its_beginning_once),
        cmocka_unit_test(a_multi_set_of_one_who_leaves_is_carried_out_whole),
        cmocka_unit_test(half_a_multi_set_is_not_carried_out),
        cmocka_unit_test(five_thousand_waiters_are_told_in_turns),
        cmocka_unit_test(those_who_leave_before_they_are_told_do_no_harm),
        cmocka_unit_test(a_push_whose_waiter_cancels_goes_to_the_next),
        cmocka_unit_test(a_push_whose_waiter_leaves_goes_to_the_next),
        cmocka_unit_test(a_queue_named_twice_takes_one_push),
        cmocka_unit_test(five_thousand_waits_of_one_who_left_go_in_turns),
        cmocka_unit_test(five_thousand_keys_are_cleared),
        cmocka_unit_test(a_full_table_refuses_and_serves_again_when_there_is_room),
        cmocka_unit_test(an_answer_keeps_the_bytes_it_shows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
