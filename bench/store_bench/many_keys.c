/* SPDX-License-Identifier: Apache-2.0 */
/* many_keys.c - one message with n keys. */
#include "bench/store_bench/modes.h"
#include "bench/store_bench/stats.h"
#include "bench/store_bench/timed.h"

#include <stdio.h>
#include <stdlib.h>

static int ask_many(struct peer *peer, enum command command, int tag, int n, size_t answer)
{
    struct buffer b = { 0 };
    char bytes[8];

    put_many(&b, command, tag, 0, n);
    if (command == MULTI_SET)
        put_ping(&b); /* to see that it is done */
    return ask_once(peer, &b, bytes, answer);
}

static int many_wait_missing(struct peer peers[2], int tag, int n)
{
    struct buffer b = { 0 };
    char nonce[4];

    put_many(&b, WAIT, tag, 0, n);
    put_ping(&b); /* answered when the WAIT has been understood */
    return ask_once(&peers[0], &b, nonce, sizeof nonce);
}

/* The WAIT of many_wait_missing is still open. */
static int many_release(struct peer peers[2], int tag, int n)
{
    char zero;

    if (ask_many(&peers[1], MULTI_SET, tag, n, 4) < 0)
        return -1;
    return receive(&peers[0], &zero, 1);
}

static int many_check(struct peer peers[2], int tag, int n)
{
    return ask_many(&peers[0], CHECK, tag, n, 1);
}

static int many_wait_present(struct peer peers[2], int tag, int n)
{
    return ask_many(&peers[0], WAIT, tag, n, 1);
}

static int many_set(struct peer peers[2], int tag, int n)
{
    return ask_many(&peers[0], MULTI_SET, tag, n, 4);
}

static int many_get(struct peer peers[2], int tag, int n)
{
    if (ask_many(&peers[0], MULTI_GET, tag, n, 0) < 0)
        return -1;
    return receive_blobs(&peers[0], n);
}

static int many_list(struct peer peers[2], int tag, int n)
{
    const unsigned char command = LIST_KEYS;
    int64_t count;

    (void)tag;
    (void)n;
    if (send_all(&peers[0], &command, 1) < 0 || receive(&peers[0], &count, sizeof count) < 0)
        return -1;
    return receive_blobs(&peers[0], count);
}

static const struct {
    const char *name;
    action *act;
} cases[] = {
    /* in this order: the first two make the keys */
    { "wait-missing", many_wait_missing },
    { "release-by-multi-set", many_release },
    { "check", many_check },
    { "wait-present", many_wait_present },
    { "multi-get", many_get },
    { "multi-set", many_set },
    { "list-keys", many_list },
};

#define CASES (sizeof cases / sizeof *cases)

/* All cases once on one server. */
static void many_round(const struct server *server, struct outcome outcomes[CASES], int n)
{
    struct peer peers[2] = { { .fd = -1 }, { .fd = -1 } };
    const int tag = new_tag();

    for (size_t c = 0; c < CASES; c++) {
        timed(server, &outcomes[c], cases[c].act, peers, tag, n);
        if (c < 2 && outcomes[c].error)
            set_all(server, tag, n);
    }
    peers_close(peers);
    delete_all(server, tag, n);
}

static void many_keys_of(int n, int rounds)
{
    struct outcome *outcomes = get_memory(MOST_SERVERS * CASES * sizeof *outcomes);
    double spent[MOST_SERVERS] = { 0 };
    char size[16];

    for (int round = 0; round < rounds; round++)
        for (int s = 0; s < server_count; s++) {
            const double start = now();

            if (spent[s] > ENOUGH_SECONDS)
                continue;
            many_round(&servers[s], &outcomes[(size_t)s * CASES], n);
            spent[s] += now() - start;
        }
    snprintf(size, sizeof size, "%d", n);
    for (size_t c = 0; c < CASES; c++)
        report("many-keys", cases[c].name, size, outcomes + c, CASES);
    free(outcomes);
}

void many_keys(void)
{
    many_keys_of(1024, quick ? 1 : 5);
    many_keys_of(16384, quick ? 1 : 5);
    if (!quick)
        many_keys_of(131072, 3);
}
