/* SPDX-License-Identifier: Apache-2.0 */
/* client.c - the C side of scripts/interop-torch: libct's store calls against PyTorch's.
 *
 *     client rank                       rank 3 of the four of ranks.py, at ctrun's store
 *     client served HOST PORT [queues]  every call, at the store that served.py hosts
 *     client killed HOST PORT           waits there, says so, and is told that the server died
 *     client file PATH                  the other process of file.py
 *
 * Each mode is one half of a conversation; the Python file named holds the other
 * half, step by step in the same order and with the same values.  Exit 0 only if
 * every byte was as expected. */
#include <ct.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define RANKS 4
#define TIMEOUT_MS 60000
#define BIG_BYTES (8 << 20) /* the most that PyTorch's libuv server takes */
#define MANY 1000

__attribute__((format(printf, 1, 2))) static _Noreturn void die(const char *format, ...)
{
    va_list args;

    fprintf(stderr, "client: ");
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "\n");
    exit(1);
}

static void must(ct_status status)
{
    if (status != CT_OK)
        die("%s (%s)", ct_last_error(), ct_strerror(status));
}

static void same(const char *what, int64_t is, int64_t want)
{
    if (is != want)
        die("%s: got %" PRId64 ", want %" PRId64, what, is, want);
}

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- Values ---------------------------------------------------------------- */

struct value {
    const void *data;
    size_t bytes;
};

static unsigned char big[BIG_BYTES];

/* What values.py calls VALUES. */
static struct {
    const char *name;
    struct value value;
} values[] = {
    { "empty", { "", 0 } },
    { "zeros", { "a\0b\0", 5 } }, /* and the 0 byte at the end */
    { "text", { "caf\xc3\xa9\n", 6 } },
    { "big", { big, BIG_BYTES } },
};
#define VALUES (int)(sizeof values / sizeof *values)

static struct value text(const char *string)
{
    return (struct value){ string, strlen(string) };
}

/* Frees data. */
static void same_value(const char *key, void *data, size_t bytes, struct value want)
{
    if (bytes != want.bytes)
        die("\"%s\" has %zu bytes, want %zu", key, bytes, want.bytes);
    for (size_t i = 0; i < bytes; i++)
        if (((unsigned char *)data)[i] != ((const unsigned char *)want.data)[i])
            die("\"%s\": byte %zu of %zu is %02x, want %02x", key, i, bytes,
                ((unsigned char *)data)[i], ((const unsigned char *)want.data)[i]);
    if (((char *)data)[bytes] != 0)
        die("\"%s\": no 0 byte behind the value", key);
    free(data);
}

static void set(ct_store *store, const char *key, struct value value)
{
    must(ct_store_set(store, key, value.data, value.bytes));
}

static void get(ct_store *store, const char *key, struct value want)
{
    void *data;
    size_t bytes;

    must(ct_store_get(store, key, -1, &data, &bytes));
    same_value(key, data, bytes, want);
}

static void append(ct_store *store, const char *key, struct value value)
{
    must(ct_store_append(store, key, value.data, value.bytes));
}

static void compare_set(ct_store *store, const char *key, const char *expected,
                        struct value desired, struct value answer)
{
    void *data;
    size_t bytes;

    must(ct_store_compare_set(store, key, expected, strlen(expected), desired.data, desired.bytes,
                              &data, &bytes));
    same_value(key, data, bytes, answer);
}

static void add(ct_store *store, const char *key, int64_t delta, int64_t want)
{
    int64_t sum;

    must(ct_store_add(store, key, delta, &sum));
    same(key, sum, want);
}

static void push(ct_store *store, const char *key, struct value value)
{
    must(ct_store_queue_push(store, key, value.data, value.bytes));
}

static void pop(ct_store *store, const char *key, struct value want)
{
    void *data;
    size_t bytes;

    must(ct_store_queue_pop(store, key, -1, &data, &bytes));
    same_value(key, data, bytes, want);
}

static void queue_has(ct_store *store, const char *key, int64_t want)
{
    int64_t length;

    must(ct_store_queue_len(store, key, &length));
    same(key, length, want);
}

static void wait_for(ct_store *store, const char *key)
{
    must(ct_store_wait(store, &key, 1, -1));
}

static void present(ct_store *store, const char *key, int want)
{
    int is;

    must(ct_store_check(store, &key, 1, &is));
    same(key, is, want);
}

static void drop(ct_store *store, const char *key, int want)
{
    int was_there;

    must(ct_store_delete(store, key, &was_there));
    same(key, was_there, want);
}

/* A key that nobody sets: the sentence names it, in time, and the store goes on. */
static void times_out(ct_store *store, const char *key)
{
    const int64_t begin = now_ms();
    const ct_status status = ct_store_wait(store, &key, 1, 300);
    const int64_t took = now_ms() - begin;

    if (status != CT_ERR_TIMEOUT || !strstr(ct_last_error(), key))
        die("waiting for \"%s\": %s: %s", key, ct_strerror(status), ct_last_error());
    if (took < 299 || took > 2000)
        die("waiting 300 ms for \"%s\" took %" PRId64 " ms", key, took);
}

/* The same of the two calls that wait and then read. */
static void gets_time_out(ct_store *store, const char *key)
{
    void *data[2];
    size_t bytes[2];
    const char *keys[] = { "n", key };

    if (ct_store_get(store, key, 300, data, bytes) != CT_ERR_TIMEOUT)
        die("ct_store_get got \"%s\", or said: %s", key, ct_last_error());
    if (ct_store_multi_get(store, keys, 2, 300, data, bytes) != CT_ERR_TIMEOUT)
        die("ct_store_multi_get got \"%s\", or said: %s", key, ct_last_error());
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* "a b c", sorted */
static void listed(ct_store *store, const char *want)
{
    char **keys, line[256] = "";
    int count;

    must(ct_store_list_keys(store, &keys, &count));
    qsort(keys, (size_t)count, sizeof *keys, by_name);
    for (int i = 0; i < count; i++)
        snprintf(line + strlen(line), sizeof line - strlen(line), "%s%s", i ? " " : "", keys[i]);
    free(keys);
    if (strcmp(line, want) != 0)
        die("list_keys gives \"%s\", want \"%s\"", line, want);
}

/* Sets MANY keys "<who><i>" to the text of i in one call. */
static void set_many(ct_store *store, const char *who)
{
    static char names[MANY][16], texts[MANY][8];
    const char *keys[MANY];
    const void *data[MANY];
    size_t bytes[MANY];

    for (int i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof names[i], "%s%d", who, i);
        snprintf(texts[i], sizeof texts[i], "%d", i);
        keys[i] = names[i];
        data[i] = texts[i];
        bytes[i] = i == 0 ? 0 : strlen(texts[i]); /* one empty value */
    }
    must(ct_store_multi_set(store, keys, MANY, data, bytes));
}

static void get_many(ct_store *store, const char *who)
{
    static char names[MANY][16];
    const char *keys[MANY];
    void *data[MANY];
    size_t bytes[MANY];
    char want[8];

    for (int i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof names[i], "%s%d", who, i);
        keys[i] = names[i];
    }
    must(ct_store_multi_get(store, keys, MANY, -1, data, bytes));
    for (int i = 0; i < MANY; i++) {
        snprintf(want, sizeof want, "%d", i);
        same_value(keys[i], data[i], bytes[i], text(i == 0 ? "" : want));
    }
}

/* ---- rank: with ranks.py ---------------------------------------------------- */

/* Nobody leaves before all four came. */
static void meet(ct_store *store, const char *name)
{
    char arrived[64], all[64];
    int64_t count;

    snprintf(arrived, sizeof arrived, "arrived/%s", name);
    snprintf(all, sizeof all, "all/%s", name);
    must(ct_store_add(store, arrived, 1, &count));
    if (count == RANKS)
        set(store, all, text(""));
    wait_for(store, all);
}

static void rank_values(ct_store *p)
{
    char key[64];

    for (int v = 0; v < VALUES; v++) {
        snprintf(key, sizeof key, "3/%s", values[v].name);
        set(p, key, values[v].value);
    }
    for (int r = 0; r < RANKS; r++)
        for (int v = 0; v < VALUES; v++) {
            snprintf(key, sizeof key, "%d/%s", r, values[v].name);
            get(p, key, values[v].value);
        }
    get(p, "", text("the empty key"));
    get(p, "cl\xc3\xa9 with blanks", text("utf-8"));
}

/* 4 x 100 arrivals of one; C takes off what Python adds beyond. */
static void rank_sums(ct_store *p)
{
    int64_t sum;

    for (int i = 0; i < 100; i++)
        must(ct_store_add(p, "sum", 1, &sum));
    must(ct_store_add(p, "sum", -3000000000, &sum));
    meet(p, "sums");
    add(p, "sum", 0, 400);
    get(p, "sum", text("400"));
}

static void rank_waits(ct_store *p)
{
    const char *late[] = { "late/0", "late/1", "late/2" };

    must(ct_store_wait(p, late, 3, -1));
    present(p, "late/2", 1);
    present(p, "late/3", 0);
    usleep(300000);
    set(p, "late/3", text(""));
    for (int i = 0; i < 3; i++)
        times_out(p, "never");
}

static void rank_compare_set(ct_store *p)
{
    void *answer;
    size_t bytes;
    int64_t winners;

    must(ct_store_compare_set(p, "lock", "", 0, "rank 3", 6, &answer, &bytes));
    must(ct_store_add(p, "winners", bytes == 6 && !memcmp(answer, "rank 3", 6), &winners));
    meet(p, "lock");
    add(p, "winners", 0, 1);
    get(p, "lock", (struct value){ answer, bytes });
    free(answer);
    compare_set(p, "nothing", "x", text("y"), text("x"));
    present(p, "nothing", 0);
    compare_set(p, "baton", "python", (struct value){ "c\0!", 3 }, (struct value){ "c\0!", 3 });
    meet(p, "baton is C's");
    meet(p, "baton is Python's");
    compare_set(p, "baton", "wrong", text("x"), text("python again"));
}

static void rank_append(ct_store *p)
{
    wait_for(p, "log");
    append(p, "log", (struct value){ "\0c", 2 });
    meet(p, "C appended");
    meet(p, "Python appended");
    get(p, "log", (struct value){ "p\0\0cp", 5 });
}

static void rank_queues(ct_store *p)
{
    void *data;

    push(p, "to python", text("one"));
    push(p, "to python", text(""));
    push(p, "to python", (struct value){ "\0three", 6 });
    meet(p, "queues are full");
    queue_has(p, "to c", 2);
    pop(p, "to c", (struct value){ "\0", 1 });
    pop(p, "to c", text("two"));
    queue_has(p, "to c", 0);
    if (ct_store_queue_pop(p, "to c", 0, &data, NULL) != CT_ERR_TIMEOUT)
        die("an empty queue gave something, or said: %s", ct_last_error());
    meet(p, "queues are empty");
    pop(p, "late to c", text("at last"));
    usleep(300000);
    push(p, "late to python", text("at last"));
}

static void rank_lists(ct_store *p)
{
    ct_store *inner;

    must(ct_store_prefix(p, "inner", &inner));
    set(inner, "c", text("from c"));
    set(inner, "gone", text(""));
    meet(p, "inner keys are set");
    get(inner, "python", text("from python"));
    get(p, "inner/python", text("from python"));
    drop(inner, "python's", 1);
    drop(inner, "python's", 0);
    meet(p, "inner keys are deleted");
    present(inner, "gone", 0);
    listed(inner, "c python");
    must(ct_store_close(inner));
}

static void rank_counts(ct_store *p)
{
    int64_t count;
    char number[24];

    must(ct_store_num_keys(p, &count));
    snprintf(number, sizeof number, "%" PRId64, count);
    set(p, "c counts", text(number));
    wait_for(p, "python counts");
}

static void rank(void)
{
    ct_store *store, *p;

    must(ct_store_tcp(getenv("MASTER_ADDR"), atoi(getenv("MASTER_PORT")), 0, TIMEOUT_MS, &store));
    must(ct_store_prefix(store, "p", &p));
    rank_values(p);
    rank_sums(p);
    rank_waits(p);
    rank_compare_set(p);
    rank_append(p);
    set_many(p, "c");
    get_many(p, "python");
    rank_queues(p);
    rank_lists(p);
    meet(p, "before counting");
    rank_counts(p);
    meet(p, "the end");
    must(ct_store_close(p));
    must(ct_store_close(store));
}

/* ---- served: with served.py --------------------------------------------------- */

static void all_but_queues(ct_store *store)
{
    char key[64];
    int64_t before, after;

    for (int v = 0; v < VALUES; v++) {
        snprintf(key, sizeof key, "python/%s", values[v].name);
        get(store, key, values[v].value);
        snprintf(key, sizeof key, "c/%s", values[v].name);
        set(store, key, values[v].value);
        get(store, key, values[v].value);
    }
    add(store, "n", 5, 5);
    add(store, "n", -7, -2);
    get(store, "n", text("-2"));
    set(store, "n", text("9223372036854775806"));
    add(store, "n", 1, INT64_MAX);
    for (int i = 0; i < 3; i++) {
        times_out(store, "never");
        add(store, "timeouts", 1, i + 1);
    }
    gets_time_out(store, "never");
    must(ct_store_wait(store, NULL, 0, -1));
    present(store, "n", 1);
    present(store, "never", 0);
    compare_set(store, "cas", "", text("first"), text("first"));
    compare_set(store, "cas", "first", (struct value){ "\0second", 7 },
                (struct value){ "\0second", 7 });
    compare_set(store, "cas", "first", text("third"), (struct value){ "\0second", 7 });
    compare_set(store, "cas missing", "x", text("y"), text("x"));
    present(store, "cas missing", 0);
    append(store, "log", text("a"));
    append(store, "log", (struct value){ "\0", 1 });
    append(store, "log", text(""));
    append(store, "log", text("b"));
    get(store, "log", (struct value){ "a\0b", 3 });
    must(ct_store_num_keys(store, &before));
    set_many(store, "c");
    must(ct_store_num_keys(store, &after));
    same("num_keys after 1000 more", after - before, MANY);
    get_many(store, "c");
    get_many(store, "python");
    drop(store, "c0", 1);
    drop(store, "c0", 0);
    present(store, "c0", 0);
}

static void queues(ct_store *store)
{
    void *data;

    pop(store, "to c", text("from python"));
    push(store, "q", text("one"));
    push(store, "q", text(""));
    push(store, "q", (struct value){ big, BIG_BYTES });
    queue_has(store, "q", 3);
    pop(store, "q", text("one"));
    pop(store, "q", text(""));
    pop(store, "q", (struct value){ big, BIG_BYTES });
    if (ct_store_queue_pop(store, "q", 0, &data, NULL) != CT_ERR_TIMEOUT)
        die("an empty queue gave something, or said: %s", ct_last_error());
    if (ct_store_queue_pop(store, "q", 300, &data, NULL) != CT_ERR_TIMEOUT)
        die("an empty queue gave something after a wait, or said: %s", ct_last_error());
    queue_has(store, "q", 0);
    push(store, "to python", text("from c"));
}

static void served(const char *host, int port, int with_queues)
{
    ct_store *store, *outer, *inner;

    must(ct_store_tcp(host, port, 0, TIMEOUT_MS, &store));
    must(ct_store_prefix(store, "outer", &outer));
    must(ct_store_prefix(outer, "inner", &inner));
    all_but_queues(inner);
    if (with_queues)
        queues(inner);
    set(outer, "x", text(""));
    set(outer, "y", text(""));
    for (int i = 0; i < MANY; i++) { /* so that the list is short */
        char key[16];

        snprintf(key, sizeof key, "python%d", i);
        drop(inner, key, 1);
        snprintf(key, sizeof key, "c%d", i);
        drop(inner, key, i != 0);
    }
    listed(inner, "c/big c/empty c/text c/zeros cas log n python/big python/empty python/text "
                  "python/zeros timeouts");
    must(ct_store_close(inner));
    must(ct_store_close(outer));
    must(ct_store_close(store));
}

/* ---- killed: with served.py ---------------------------------------------------- */

/* Of all calls after the death none may hang and none may succeed, but for one that
 * has no answer. */
static void killed(const char *host, int port)
{
    const char *never = "never";
    char where[128];
    ct_store *store;
    ct_status status;

    snprintf(where, sizeof where, "%s:%d", host, port);
    must(ct_store_tcp(host, port, 0, TIMEOUT_MS, &store));
    set(store, "c is here", text(""));
    printf("waiting\n");
    fflush(stdout);
    status = ct_store_wait(store, &never, 1, -1);
    if (status != CT_ERR_PEER || !strstr(ct_last_error(), where))
        die("the server died, and ct_store_wait said: %s: %s", ct_strerror(status),
            ct_last_error());
    printf("%s\n", ct_last_error());
    status = ct_store_add(store, "n", 1, NULL);
    if (status != CT_ERR_PEER || !strstr(ct_last_error(), where))
        die("the server is dead, and ct_store_add said: %s: %s", ct_strerror(status),
            ct_last_error());
    must(ct_store_close(store));
}

/* ---- file: with file.py ----------------------------------------------------------- */

static void file(const char *path)
{
    char key[64];
    ct_store *store;
    int64_t sum;

    must(ct_store_file(path, TIMEOUT_MS, &store));
    for (int v = 0; v < VALUES; v++) {
        snprintf(key, sizeof key, "c/%s", values[v].name);
        set(store, key, values[v].value);
        snprintf(key, sizeof key, "python/%s", values[v].name);
        get(store, key, values[v].value);
    }
    for (int i = 0; i < 500; i++)
        must(ct_store_add(store, "sum", 1, &sum));
    set(store, "c added", text(""));
    wait_for(store, "python added");
    add(store, "sum", 0, 1000);
    wait_for(store, "late/python");
    usleep(300000);
    set(store, "late/c", text(""));
    times_out(store, "never");
    drop(store, "python/text", 1);
    present(store, "python/text", 0);
    set(store, "c deleted", text(""));
    wait_for(store, "python deleted");
    present(store, "c/text", 0);
    compare_set(store, "cas", "", text("c"), text("c"));
    compare_set(store, "cas", "x", text("y"), text("c"));
    set(store, "c compared", text(""));
    wait_for(store, "python compared");
    get(store, "cas", text("python"));
    set_many(store, "c");
    get_many(store, "python");
    append(store, "log", text("c"));
    set(store, "c appended", text(""));
    wait_for(store, "python appended");
    get(store, "log", text("cp"));
    printf("done\n");
    fflush(stdout);
    if (getchar() != EOF) /* file.py says when to close */
        die("somebody typed");
    must(ct_store_close(store));
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";

    for (size_t i = 0; i < BIG_BYTES; i++)
        big[i] = (unsigned char)(i % 251);
    if (argc == 2 && !strcmp(mode, "rank"))
        rank();
    else if (argc >= 4 && !strcmp(mode, "served"))
        served(argv[2], atoi(argv[3]), argc == 5 && !strcmp(argv[4], "queues"));
    else if (argc == 4 && !strcmp(mode, "killed"))
        killed(argv[2], atoi(argv[3]));
    else if (argc == 3 && !strcmp(mode, "file"))
        file(argv[2]);
    else
        die("usage: client rank | served HOST PORT [queues] | killed HOST PORT | file PATH");
    return 0;
}
