/* SPDX-License-Identifier: Apache-2.0 */
/* hangs.c - the classic ways in which a job of four ranks comes to a stand, by name:
 *   hangs KIND
 * One call goes well before.  Whoever is not waiting for others sleeps here. */
#include <ct.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static float data[1024];

static void check(ct_status status)
{
    if (status == CT_OK)
        return;
    fprintf(stderr, "%s\n", ct_last_error());
    exit(3);
}

static void sleeps(void)
{
    sleep(600);
}

static void sum(ct_group *group, size_t count)
{
    check(ct_all_reduce(group, data, data, count, CT_F32, CT_SUM, NULL));
}

/* ---- The ways: rank r ------------------------------------------------------- */

/* It has all it came for, and goes on with something else. */
static void returns_early(int rank)
{
    const int all[] = { 0, 1, 2, 3 };
    ct_group_options options = CT_GROUP_OPTIONS_INIT;
    ct_group *group;

    options.name = "eval";
    check(ct_new_group_with(all, 4, &options, &group));
    sum(group, 4);
    if (rank == 3) {
        check(ct_destroy_process_group(group));
        sleeps();
    }
    sum(group, 1024);
}

static void one_sleeps(int rank)
{
    if (rank == 3)
        sleeps();
    sum(CT_WORLD, 1024);
}

static void one_is_stopped(int rank)
{
    if (rank == 3)
        raise(SIGSTOP);
    sum(CT_WORLD, 1024);
}

/* A message has no number: nobody can see that it is in another order. */
static void out_of_order(int rank)
{
    if (rank == 0)
        check(ct_recv(CT_WORLD, data, 8, CT_F32, 1, 7, NULL));
    sum(CT_WORLD, 1024);
    if (rank == 1)
        check(ct_send(CT_WORLD, data, 8, CT_F32, 0, 7));
}

/* Ranks 0 and 1 are in both groups and call them in different orders. */
static void another_group(int rank)
{
    const int first[] = { 0, 1, 2 }, second[] = { 0, 1, 3 };
    ct_group *a, *b;
    ct_group_options options = CT_GROUP_OPTIONS_INIT;

    options.name = "tensor";
    check(ct_new_group_with(first, 3, &options, &a));
    options.name = "pipe";
    check(ct_new_group_with(second, 3, &options, &b));
    if (rank == 0 || rank == 2)
        sum(a, 16);
    else
        check(ct_barrier(b, NULL));
    if (rank < 2)
        rank == 0 ? check(ct_barrier(b, NULL)) : sum(a, 16);
}

/* libct says this one by itself. */
static void wrong_count(int rank)
{
    sum(CT_WORLD, rank == 3 ? 512 : 1024);
}

/* Messages of another size: the receiver is told when they come, and goes on to wait here. */
static void wrong_size(int rank)
{
    if (rank == 0)
        check(ct_send(CT_WORLD, data, 512, CT_F32, 3, 0));
    if (rank == 3 && ct_recv(CT_WORLD, data, 256, CT_F32, 0, 0, NULL) != CT_ERR_MISMATCH)
        exit(4);
    if (rank == 3)
        sleeps();
    sum(CT_WORLD, 1024);
}

static void wrong_root(int rank)
{
    check(ct_reduce(CT_WORLD, data, data, 1024, CT_F32, CT_SUM, rank == 3 ? 3 : 0, NULL));
}

static void two_sends(int rank)
{
    static char large[8 << 20];

    if (rank < 2)
        check(ct_send(CT_WORLD, large, sizeof large, CT_U8, 1 - rank, 0));
    sum(CT_WORLD, 1024);
}

static void three_receives(int rank)
{
    if (rank < 3)
        check(ct_recv(CT_WORLD, data, 8, CT_F32, (rank + 1) % 3, 0, NULL));
    sum(CT_WORLD, 1024);
}

static void itself(int rank)
{
    if (rank == 2)
        check(ct_recv(CT_WORLD, data, 8, CT_F32, 2, 0, NULL));
    sum(CT_WORLD, 1024);
}

/* For a message that no rank sends. */
static void probes(int rank)
{
    ct_message message;

    if (rank > 0)
        sleeps();
    check(ct_probe(CT_WORLD, 1, CT_ANY_TAG, &message));
}

/* One half has left its group, of the same name and size as the other half's. */
static void half_leaves(int rank)
{
    ct_group *half;

    check(ct_split_group(CT_WORLD, rank / 2, rank, &half));
    check(ct_barrier(half, NULL));
    if (rank >= 2)
        check(ct_destroy_process_group(half));
    if (rank >= 1)
        sleeps();
    check(ct_barrier(half, NULL));
}

static const struct {
    const char *name;
    void (*run)(int rank);
} ways[] = {
    { "returns", returns_early }, { "sleeps", one_sleeps },    { "stopped", one_is_stopped },
    { "order", out_of_order },    { "groups", another_group }, { "size", wrong_size },
    { "count", wrong_count },     { "root", wrong_root },      { "sends", two_sends },
    { "circle", three_receives }, { "itself", itself },        { "probe", probes },
    { "half", half_leaves },
};

/* Rank 3 looks for the store where nobody listens.  The script kills it; what ctrun started lives
 * on. */
static void silent(int rank)
{
    pid_t child;

    if (rank != 3)
        return;
    if ((child = fork()) > 0) {
        waitpid(child, NULL, 0);
        sleeps();
    }
    setenv("MASTER_PORT", "1", 1);
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";
    const char *rank = getenv("RANK");

    if (!strcmp(way, "silent"))
        silent(rank ? atoi(rank) : 0);
    if (!strcmp(way, "init") && rank && !strcmp(rank, "3"))
        sleeps();
    check(ct_init_process_group(NULL));
    sum(CT_WORLD, 4);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (!strcmp(ways[i].name, way))
            ways[i].run(ct_rank(CT_WORLD));
    return 0;
}
