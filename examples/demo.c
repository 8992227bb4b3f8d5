/* SPDX-License-Identifier: Apache-2.0 */
/* demo.c - every operation once, with what each rank had before and has after.
 *
 *     ctrun --nproc-per-node=4 build/bin/demo
 *
 * Each rank starts every operation with data[i] = i + COUNT * rank.  The output
 * of the ranks is never interleaved: each rank writes into its own page, rank 0
 * gathers the pages with the library itself and prints them in rank order. */
#include <ct.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT 4          /* elements of each rank */
#define PAGE_BYTES 16384 /* room for one rank's text of one operation */

static int rank, size;
static char page[PAGE_BYTES];

static void check(ct_status status)
{
    if (status == CT_OK)
        return;
    fprintf(stderr, "demo: rank %d: %s\n", rank, ct_last_error());
    exit(1);
}

/* ---- Text ---------------------------------------------------------------- */

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
    const size_t used = strlen(page);
    va_list args;

    va_start(args, format);
    vsnprintf(page + used, sizeof page - used, format, args);
    va_end(args);
}

/* "[0, 1, 2, 3]" */
static void say_numbers(const int *data, int count)
{
    for (int i = 0; i < count; i++)
        say("%s%d", i == 0 ? "[" : ", ", data[i]);
    say("]");
}

/* "[[0, 1, 2, 3], [4, 5, 6, 7]]" */
static void say_blocks(const int *data, int blocks)
{
    for (int i = 0; i < blocks; i++) {
        say("%s", i == 0 ? "[" : ", ");
        say_numbers(data + i * COUNT, COUNT);
    }
    say("]");
}

static void title(const char *name, const char *what)
{
    if (rank == 0)
        printf("%s\n    %s\n", name, what);
}

/* Rank 0 prints the pages of all ranks, in rank order. */
static void print_pages(void)
{
    char *all = rank == 0 ? malloc((size_t)size * PAGE_BYTES) : NULL;

    check(ct_gather(CT_WORLD, page, all, PAGE_BYTES, CT_U8, 0, NULL));
    for (int i = 0; i < size && all; i++)
        fputs(all + (size_t)i * PAGE_BYTES, stdout);
    if (rank == 0)
        printf("\n");
    free(all);
    memset(page, 0, sizeof page);
}

/* What this rank starts with. */
static void fill(int *data)
{
    for (int i = 0; i < COUNT; i++)
        data[i] = i + COUNT * rank;
}

/* Starts this rank's line with what it has. */
static void before(const int *data)
{
    say("    rank %d: ", rank);
    say_numbers(data, COUNT);
    say(" -> ");
}

static int *blocks_of_memory(void)
{
    int *memory = calloc((size_t)size * COUNT, sizeof *memory);

    if (!memory) {
        fprintf(stderr, "demo: rank %d: out of memory\n", rank);
        exit(1);
    }
    return memory;
}

/* ---- The operations ------------------------------------------------------- */

static void broadcast(void)
{
    int data[COUNT];

    title("Broadcast", "The data of rank 0 goes to all.");
    fill(data);
    before(data);
    check(ct_broadcast(CT_WORLD, data, COUNT, CT_I32, 0, NULL));
    say_numbers(data, COUNT);
    say("\n");
    print_pages();
}

static void reduce(void)
{
    int data[COUNT], sum[COUNT];

    title("Reduce", "Rank 0 gets the sum of all; the others keep what they had.");
    fill(data);
    before(data);
    check(ct_reduce(CT_WORLD, data, sum, COUNT, CT_I32, CT_SUM, 0, NULL));
    say_numbers(rank == 0 ? sum : data, COUNT);
    say("\n");
    print_pages();
}

static void all_reduce(void)
{
    int data[COUNT];

    title("All-Reduce", "Every rank gets the sum of all.");
    fill(data);
    before(data);
    check(ct_all_reduce(CT_WORLD, data, data, COUNT, CT_I32, CT_SUM, NULL));
    say_numbers(data, COUNT);
    say("\n");
    print_pages();
}

static void barrier(void)
{
    int data[COUNT];

    title("Barrier", "Nobody leaves before everybody came; no data moves.");
    fill(data);
    before(data);
    check(ct_barrier(CT_WORLD, NULL));
    say_numbers(data, COUNT);
    say("\n");
    print_pages();
}

static void gather(void)
{
    int data[COUNT], *all = rank == 0 ? blocks_of_memory() : NULL;

    title("Gather", "Rank 0 gets the data of every rank, in rank order.");
    fill(data);
    before(data);
    check(ct_gather(CT_WORLD, data, all, COUNT, CT_I32, 0, NULL));
    if (all)
        say_blocks(all, size);
    else
        say_numbers(data, COUNT);
    say("\n");
    print_pages();
    free(all);
}

static void all_gather(void)
{
    int data[COUNT], *all = blocks_of_memory();

    title("All-Gather", "Every rank gets the data of every rank, in rank order.");
    fill(data);
    before(data);
    check(ct_all_gather(CT_WORLD, data, all, COUNT, CT_I32, NULL));
    say_blocks(all, size);
    say("\n");
    print_pages();
    free(all);
}

static void scatter(void)
{
    int data[COUNT], *all = rank == 0 ? blocks_of_memory() : NULL;

    title("Scatter", "Rank 0 has one block for each rank and gives each its own.");
    fill(data);
    for (int i = 0; i < size * COUNT && all; i++)
        all[i] = i * 10;
    if (all) {
        say("    rank 0 scatters ");
        say_blocks(all, size);
        say("\n");
    }
    before(data);
    check(ct_scatter(CT_WORLD, all, data, COUNT, CT_I32, 0, NULL));
    say_numbers(data, COUNT);
    say("\n");
    print_pages();
    free(all);
}

/* The blocks a rank gives in Reduce-Scatter and All-to-All: block j is its data + 100 j. */
static void fill_blocks(int *blocks)
{
    for (int j = 0; j < size; j++)
        for (int i = 0; i < COUNT; i++)
            blocks[j * COUNT + i] = i + COUNT * rank + 100 * j;
}

static void reduce_scatter(void)
{
    int data[COUNT], *blocks = blocks_of_memory();

    title("Reduce-Scatter", "Every rank has one block for each rank; rank r gets the sum of all "
                            "blocks r.");
    fill_blocks(blocks);
    say("    rank %d: ", rank);
    say_blocks(blocks, size);
    check(ct_reduce_scatter(CT_WORLD, blocks, data, COUNT, CT_I32, CT_SUM, NULL));
    say(" -> ");
    say_numbers(data, COUNT);
    say("\n");
    print_pages();
    free(blocks);
}

static void all_to_all(void)
{
    int *send = blocks_of_memory(), *recv = blocks_of_memory();

    title("All-to-All", "Every rank has one block for each rank; block j of rank i becomes block i "
                        "of rank j.");
    fill_blocks(send);
    say("    rank %d sends ", rank);
    say_blocks(send, size);
    check(ct_all_to_all(CT_WORLD, send, recv, COUNT, CT_I32, NULL));
    say("\n           gets  ");
    say_blocks(recv, size);
    say("\n");
    print_pages();
    free(send);
    free(recv);
}

/* ---- A group of some ------------------------------------------------------ */

static void even_ranks(void)
{
    int data[COUNT], sum[COUNT], count = 0;
    int *even = calloc((size_t)size, sizeof *even);
    ct_group *group;

    title("A group of the even ranks", "Reduce among ranks 0, 2, 4, ... only: rank 0 gets their "
                                       "sum, the odd ranks go on untouched.");
    for (int i = 0; i < size && even; i += 2)
        even[count++] = i;
    check(ct_new_group(even, count, &group)); /* every rank of the world calls it */
    fill(data);
    before(data);
    if (ct_rank(group) >= 0)
        check(ct_reduce(group, data, sum, COUNT, CT_I32, CT_SUM, 0, NULL));
    say_numbers(ct_rank(group) == 0 ? sum : data, COUNT);
    say(ct_rank(group) < 0 ? "  (not a member)\n" : "  (rank %d of %d in the group)\n",
        ct_rank(group), ct_size(group));
    print_pages();
    check(ct_destroy_process_group(group));
    free(even);
}

int main(void)
{
    check(ct_init_process_group(NULL));
    rank = ct_rank(CT_WORLD);
    size = ct_size(CT_WORLD);
    if (rank == 0)
        printf("%d ranks; each starts with data[i] = i + %d * rank, and \"before -> after\" is "
               "shown.\n\n",
               size, COUNT);
    broadcast();
    reduce();
    all_reduce();
    barrier();
    gather();
    all_gather();
    scatter();
    reduce_scatter();
    all_to_all();
    even_ranks();
    check(ct_destroy_process_group(CT_WORLD));
    if (fflush(stdout) != 0) {
        perror("demo: stdout");
        return 1;
    }
    return 0;
}
