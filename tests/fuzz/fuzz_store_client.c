/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_store_client.c - the answers of a hostile server.
 *
 * The first byte says how many operations there are, the next ones which; all
 * that follows is on the wire before the first of them, then the server closes
 * its side.  So nothing blocks, and time does not pass: poll() finds that nothing
 * came when the operation's byte says so, which is how a wait runs out. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/store/tcp_store.h"
#include "tests/fuzz/input.h"

enum { KEYS = 3, MOST_OPERATIONS = 8, NOTHING_COMES = 0x80 };

static const char *const keys[KEYS] = { "a", "b", "c" };
static int nothing_comes;

/* Instead of the C library's.  The server does not read, so a full socket stays full. */
int poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    (void)timeout_ms;
    return nothing_comes || fds->events == POLLOUT ? 0 : (int)count;
}

/* ---- The operations ----------------------------------------------------------- */

static ct_status value_is_whole(ct_status status, void *value, size_t bytes)
{
    holds(status != CT_OK || ((char *)value)[bytes] == 0);
    if (status == CT_OK)
        free(value);
    return status;
}

static ct_status get(ct_store *store)
{
    void *value = NULL;
    size_t bytes = 0;

    return value_is_whole(ct_store_get(store, "a", 0, &value, &bytes), value, bytes);
}

static ct_status compare_set(ct_store *store)
{
    void *value = NULL;
    size_t bytes = 0;

    return value_is_whole(ct_store_compare_set(store, "a", "x", 1, "y", 1, &value, &bytes), value,
                          bytes);
}

static ct_status queue_pop(ct_store *store)
{
    void *value = NULL;
    size_t bytes = 0;

    return value_is_whole(ct_store_queue_pop(store, "q", 0, &value, &bytes), value, bytes);
}

static ct_status multi_get(ct_store *store)
{
    void *values[KEYS] = { NULL };
    size_t bytes[KEYS] = { 0 };
    const ct_status status = ct_store_multi_get(store, keys, KEYS, 0, values, bytes);

    for (int i = 0; i < KEYS; i++)
        value_is_whole(status, values[i], bytes[i]);
    return status;
}

static ct_status list_keys(ct_store *store)
{
    char **all;
    int count;
    size_t letters = 0;
    const ct_status status = ct_store_list_keys(store, &all, &count);

    if (status != CT_OK)
        return status;
    for (int i = 0; i < count; i++)
        letters += strlen(all[i]);
    holds(all[count] == NULL && letters < SIZE_MAX);
    free(all);
    return status;
}

static ct_status wait_for_one(ct_store *store)
{
    return ct_store_wait(store, keys, 1, 0);
}

static ct_status wait_for_all(ct_store *store)
{
    return ct_store_wait(store, keys, KEYS, 0);
}

static ct_status check(ct_store *store)
{
    int present = -1;
    const ct_status status = ct_store_check(store, keys, KEYS, &present);

    holds(status != CT_OK || present == 0 || present == 1);
    return status;
}

static ct_status add(ct_store *store)
{
    int64_t sum;

    return ct_store_add(store, "n", 1, &sum);
}

static ct_status delete_key(ct_store *store)
{
    return ct_store_delete(store, "a", NULL);
}

static ct_status num_keys(ct_store *store)
{
    int64_t count = -1;
    const ct_status status = ct_store_num_keys(store, &count);

    holds(status != CT_OK || count >= 0);
    return status;
}

static ct_status queue_len(ct_store *store)
{
    int64_t length = -1;
    const ct_status status = ct_store_queue_len(store, "q", &length);

    holds(status != CT_OK || length >= 0);
    return status;
}

static ct_status set(ct_store *store)
{
    return ct_store_set(store, "a", "value", 5);
}

static ct_status (*const operations[])(ct_store *) = {
    get,   wait_for_one, wait_for_all, multi_get, compare_set, list_keys, queue_pop,
    check, add,          delete_key,   num_keys,  queue_len,   set,
};

/* ---- One input ---------------------------------------------------------------- */

/* What failed says where; a connection that broke stays broken. */
static void run(ct_store *store, const uint8_t *which, size_t count)
{
    int gone = 0;

    for (size_t i = 0; i < count; i++) {
        ct_status status;

        nothing_comes = (which[i] & NOTHING_COMES) != 0;
        status = operations[which[i] % 64 % (sizeof operations / sizeof *operations)](store);
        holds(!gone || status == CT_ERR_PEER);
        holds(status == CT_OK || strstr(ct_last_error(), "fuzz:1"));
        gone |= status != CT_OK && strstr(ct_last_error(), "is gone") != NULL;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const size_t count = size > 0 ? 1 + data[0] % MOST_OPERATIONS : 0;
    ct_store *store;
    int ends[2];

    if (size < 1 + count || size > 65536)
        return -1;
    holds(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    holds(send(ends[1], data + 1 + count, size - 1 - count, MSG_DONTWAIT)
          == (ssize_t)(size - 1 - count));
    shutdown(ends[1], SHUT_WR);
    holds(store_client_over(ends[0], "fuzz:1", 0, &store) == CT_OK);
    run(store, data + 1, count);
    ct_store_close(store);
    close(ends[1]);
    return 0;
}
