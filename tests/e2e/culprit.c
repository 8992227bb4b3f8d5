/* SPDX-License-Identifier: Apache-2.0 */
/* culprit.c - one rank fails in a way that the user names; the others fail because of it.
 *
 *   culprit HOW RANK [AFTER [BEFORE [SECOND]]]
 *
 * After some all-reduces RANK fails, and SECOND in the same way.  The other ranks exit with 7, or
 * call abort() if AFTER is "abort".  If BEFORE is "caught", each even rank has survived a timeout
 * of another group before. */
#include <ct.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int rank;

static void nap(int ms)
{
    const struct timespec time = { ms / 1000, ms % 1000 * 1000000L };

    nanosleep(&time, NULL);
}

/* Cleans up before it ends, as a destructor or a "finally:" does. */
static void clean_up_and_exit(int ms, int code)
{
    fprintf(stderr, "rank %d: the batch is bad\n", rank);
    ct_destroy_process_group(CT_WORLD);
    nap(ms);
    fprintf(stderr, "rank %d: the last words\n", rank);
    exit(code);
}

static void fail_as(const char *how)
{
    float x[100] = { 1 };

    fprintf(stderr, "rank %d: fails by %s\n", rank, how);
    if (!strcmp(how, "raise"))
        exit(3);
    if (!strcmp(how, "cleanup"))
        clean_up_and_exit(0, 3);
    if (!strcmp(how, "slow-cleanup"))
        clean_up_and_exit(30, 3);
    if (!strcmp(how, "leave"))
        exit(0);
    if (!strcmp(how, "destroy-leave"))
        clean_up_and_exit(30, 0);
    if (!strcmp(how, "abort"))
        abort();
    if (!strcmp(how, "kill"))
        raise(SIGKILL);
    if (!strcmp(how, "stop"))
        raise(SIGSTOP);
    if (!strcmp(how, "late"))
        nap(60000);
    if (!strcmp(how, "mismatch")
        && ct_all_reduce(CT_WORLD, x, x, 99, CT_F32, CT_SUM, NULL) != CT_OK) {
        fprintf(stderr, "rank %d: %s\n", rank, ct_last_error());
        exit(3);
    }
}

static void check(ct_status status, const char *after)
{
    if (status == CT_OK)
        return;
    fprintf(stderr, "rank %d: %s\n", rank, ct_last_error());
    if (!strcmp(after, "abort"))
        abort();
    if (!strcmp(after, "cleanup"))
        ct_destroy_process_group(CT_WORLD);
    exit(7);
}

/* Odd ranks come late to a barrier of a separate group.  The even ranks survive the timeout. */
static void catch_a_timeout(void)
{
    const int size = ct_size(CT_WORLD);
    static int ranks[64];
    ct_group *group;

    for (int i = 0; i < size && i < 64; i++)
        ranks[i] = i;

    check(ct_new_group(ranks, size, &group), "");
    if (rank % 2 == 0) {
        ct_set_timeout(group, 50);
        ct_barrier(group, NULL);
    }
    check(ct_barrier(CT_WORLD, NULL), "");
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "raise", *after = argc > 3 ? argv[3] : "";
    const int culprit = argc > 2 ? atoi(argv[2]) : 1, second = argc > 5 ? atoi(argv[5]) : -1;
    float x[100] = { 1 };

    check(ct_init_process_group(NULL), after);
    rank = ct_rank(CT_WORLD);
    if (argc > 4 && !strcmp(argv[4], "caught"))
        catch_a_timeout();
    if (!strcmp(how, "late") || !strcmp(how, "stop"))
        ct_set_timeout(CT_WORLD, 2000);
    for (int i = 0; i < 20; i++) {
        check(ct_all_reduce(CT_WORLD, x, x, 100, CT_F32, CT_MAX, NULL), after);
        if (i == 10 && (rank == culprit || rank == second))
            fail_as(how);
    }
    check(ct_destroy_process_group(CT_WORLD), after);
    return 0;
}
