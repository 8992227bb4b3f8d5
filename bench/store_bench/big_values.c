/* SPDX-License-Identifier: Apache-2.0 */
/* big_values.c - one SET, one GET. */
#include "bench/store_bench/modes.h"
#include "bench/store_bench/stats.h"
#include "bench/store_bench/timed.h"

#include <stdio.h>
#include <stdlib.h>

static int big_set(struct peer peers[2], int tag, int mib)
{
    const size_t bytes = (size_t)mib << 20;
    char *value = get_memory(bytes);
    struct buffer b = { 0 };
    char key[64];
    int failed;

    snprintf(key, sizeof key, "/%d/big", tag);
    put_key(&b, SET, key);
    put_u64(&b, bytes);
    failed = send_all(&peers[0], b.data, b.size) < 0 || send_all(&peers[0], value, bytes) < 0
             || ping(&peers[0]) < 0;
    free(b.data);
    free(value);
    return failed ? -1 : 0;
}

static int big_get(struct peer peers[2], int tag, int mib)
{
    struct buffer wait = { 0 }, get = { 0 };
    char key[64], zero;

    (void)mib;
    snprintf(key, sizeof key, "/%d/big", tag);
    put_one(&wait, WAIT, key);
    if (ask_once(&peers[0], &wait, &zero, 1) < 0)
        return -1;
    put_key(&get, GET, key);
    if (ask_once(&peers[0], &get, NULL, 0) < 0)
        return -1;
    return receive_blob(&peers[0]);
}

static void delete_big(const struct server *server, int tag)
{
    struct buffer b = { 0 };
    struct peer peer;
    char key[64], answer[8];

    if (peer_open(&peer, server) < 0)
        return;
    snprintf(key, sizeof key, "/%d/big", tag);
    put_key(&b, DELETE_KEY, key);
    ask_once(&peer, &b, answer, sizeof answer);
    peer_close(&peer);
}

void big_values(void)
{
    static const int sizes[] = { 1, 8, 64 };
    const size_t rounds = quick ? 1 : 5;

    for (size_t i = 0; i < 3; i++) {
        struct outcome *outcomes = get_memory(MOST_SERVERS * 2 * sizeof *outcomes);
        char size[16];

        for (size_t round = 0; round < rounds; round++)
            for (int s = 0; s < server_count; s++) {
                struct outcome *set = &outcomes[2 * s], *get = set + 1;
                struct peer peers[2] = { { .fd = -1 }, { .fd = -1 } };
                const int tag = new_tag();

                timed(&servers[s], set, big_set, peers, tag, sizes[i]);
                if (set->error)
                    get->error = set->error;
                timed(&servers[s], get, big_get, peers, tag, sizes[i]);
                peers_close(peers);
                delete_big(&servers[s], tag);
            }
        snprintf(size, sizeof size, "%d-MiB", sizes[i]);
        report("big-value", "set", size, outcomes, 2);
        report("big-value", "get", size, outcomes + 1, 2);
        free(outcomes);
    }
}
