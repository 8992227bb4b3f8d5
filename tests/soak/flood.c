/* SPDX-License-Identifier: Apache-2.0 */
/* flood.c - many small messages both ways: none is lost, and no rank stands still.
 *
 *   ctrun --nproc-per-node=2 flood [ROUNDS]        2,000
 *
 * First in step, as MPICH's sendflood does it: rank 0 receives one message from each other rank and
 * then answers each, round after round.  Then without: every rank sends a burst to each other rank
 * before it receives theirs.  A message carries its round and its sender.  The connections are made
 * by the first round, by both sides at once: flood.sh starts the program again and again.
 *
 * A rank that takes longer than SLOW_S says for how long it had a processor, and for how long it
 * could have run but had none: a starved job from one that waits for what does not come. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "include/ct.h"

enum { WORDS = 3, TAG = 999, BURST = 50, SLOW_S = 5 };

struct small {
    int64_t words[WORDS];
};

static void must(ct_status status, const char *what, int round, int peer)
{
    if (status == CT_OK)
        return;
    fprintf(stderr, "flood: rank %d: %s rank %d in round %d: %s\n", ct_rank(CT_WORLD), what, peer,
            round, ct_last_error());
    exit(1);
}

static struct small message_of(int round, int from)
{
    return (struct small){ { round, from, (int64_t)round * 1000 + from } };
}

static void give(int round, int peer)
{
    const struct small message = message_of(round, ct_rank(CT_WORLD));

    must(ct_send(CT_WORLD, message.words, WORDS, CT_I64, peer, TAG), "send to", round, peer);
}

static void take(int round, int peer)
{
    const struct small wanted = message_of(round, peer);
    struct small got = { { -1, -1, -1 } };

    must(ct_recv(CT_WORLD, got.words, WORDS, CT_I64, peer, TAG, NULL), "recv from", round, peer);
    for (int i = 0; i < WORDS; i++)
        if (got.words[i] != wanted.words[i]) {
            fprintf(stderr, "flood: rank %d: round %d of rank %d brought round %lld of rank %lld\n",
                    ct_rank(CT_WORLD), round, peer, (long long)got.words[0],
                    (long long)got.words[1]);
            exit(1);
        }
}

static void in_step(int rounds)
{
    const int rank = ct_rank(CT_WORLD), size = ct_size(CT_WORLD);

    for (int round = 0; round < rounds && rank > 0; round++) {
        give(round, 0);
        take(round, 0);
    }
    for (int round = 0; round < rounds && rank == 0; round++) {
        for (int peer = 1; peer < size; peer++)
            take(round, peer);
        for (int peer = 1; peer < size; peer++)
            give(round, peer);
    }
}

static void in_bursts(int rounds)
{
    const int rank = ct_rank(CT_WORLD), size = ct_size(CT_WORLD);

    for (int round = 0; round < rounds; round += BURST) {
        for (int i = 0; i < BURST * size; i++)
            if (i % size != rank)
                give(round + i / size, i % size);
        for (int i = 0; i < BURST * size; i++)
            if (i % size != rank)
                take(round + i / size, i % size);
    }
}

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void say_if_slow(double start, double middle)
{
    FILE *file = fopen("/proc/self/schedstat", "re");
    unsigned long long ran = 0, runnable = 0, slices = 0;
    const double end = now_s();

    if (file && end - start > SLOW_S
        && fscanf(file, "%llu %llu %llu", &ran, &runnable, &slices) == 3)
        fprintf(stderr,
                "flood: rank %d: %.1f s, %.1f of them in step; %.1f s on a processor, %.1f s "
                "without one, %llu times\n",
                ct_rank(CT_WORLD), end - start, middle - start, (double)ran * 1e-9,
                (double)runnable * 1e-9, slices);
    if (file)
        fclose(file);
}

int main(int argc, char **argv)
{
    double start, middle;
    const int rounds = argc > 1 ? atoi(argv[1]) : 2000;

    if (rounds < 1) {
        fprintf(stderr, "usage: flood [ROUNDS]\n");
        return 2;
    }
    must(ct_init_process_group(NULL), "init of", 0, -1);
    start = now_s();
    in_step(rounds);
    middle = now_s();
    in_bursts(rounds);
    say_if_slow(start, middle);
    must(ct_destroy_process_group(CT_WORLD), "destroy of", 0, -1);
    return 0;
}
