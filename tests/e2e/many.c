/* SPDX-License-Identifier: Apache-2.0 */
/* many WHAT [late | FILE] - the first call of many ranks, whose result each rank checks; rank 0
 * prints "NUMBER ranks".  WHAT: gather, send (to rank 0), all_to_all, all_reduce (64 KiB).  late:
 * rank 0 begins when the others have had time to connect to it.  FILE: all begin when it is there.
 */
#include <ct.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FLOATS = 16384 };

static int rank, size;

static int fails(const char *what)
{
    fprintf(stderr, "rank %d of %d: %s: %s\n", rank, size, what, ct_last_error());
    return 1;
}

static int differs(const char *what, int from)
{
    fprintf(stderr, "rank %d of %d: %s: the data of rank %d is wrong\n", rank, size, what, from);
    return 1;
}

static int gathers(int32_t *all)
{
    const int32_t mine = 7 * rank;

    if (ct_gather(NULL, &mine, all, 1, CT_I32, 0, NULL) != CT_OK)
        return fails("gather");
    for (int i = 0; rank == 0 && i < size; i++)
        if (all[i] != 7 * i)
            return differs("gather", i);
    return 0;
}

static int sends(void)
{
    int32_t value = 7 * rank;

    if (rank > 0)
        return ct_send(NULL, &value, 1, CT_I32, 0, 3) == CT_OK ? 0 : fails("send");
    for (int i = 1; i < size; i++) {
        if (ct_recv(NULL, &value, 1, CT_I32, i, 3, NULL) != CT_OK)
            return fails("recv");
        if (value != 7 * i)
            return differs("recv", i);
    }
    return 0;
}

static int exchanges(int32_t *all)
{
    int32_t *const mine = malloc((size_t)size * sizeof *mine);

    for (int i = 0; i < size; i++)
        mine[i] = 1000 * rank + i;
    if (ct_all_to_all(NULL, mine, all, 1, CT_I32, NULL) != CT_OK)
        return fails("all_to_all");
    free(mine);
    for (int i = 0; i < size; i++)
        if (all[i] != 1000 * i + rank)
            return differs("all_to_all", i);
    return 0;
}

static int reduces(void)
{
    static int32_t values[FLOATS];

    for (int i = 0; i < FLOATS; i++)
        values[i] = i % 5 + rank;
    if (ct_all_reduce(NULL, values, values, FLOATS, CT_I32, CT_SUM, NULL) != CT_OK)
        return fails("all_reduce");
    for (int i = 0; i < FLOATS; i++)
        if (values[i] != size * (i % 5) + size * (size - 1) / 2)
            return differs("all_reduce", i);
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    int32_t *all;
    int failed;

    if (ct_init_process_group(NULL) != CT_OK)
        return fails("init");
    rank = ct_rank(NULL);
    size = ct_size(NULL);
    all = calloc((size_t)size, sizeof *all);
    if (argc > 2 && !strcmp(argv[2], "late"))
        usleep(rank == 0 ? 1000000 : 0);
    else
        while (argc > 2 && access(argv[2], F_OK) != 0)
            usleep(1000);
    failed = !strcmp(what, "gather")       ? gathers(all)
             : !strcmp(what, "send")       ? sends()
             : !strcmp(what, "all_to_all") ? exchanges(all)
                                           : reduces();
    free(all);
    if (ct_destroy_process_group(CT_WORLD) != CT_OK)
        return fails("destroy");
    if (rank == 0 && !failed)
        printf("%d ranks\n", size);
    return failed;
}
