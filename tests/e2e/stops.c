/* SPDX-License-Identifier: Apache-2.0 */
/* stops.c - steps of random length until the job shall stop.
 *   stops world|group|halves CODE [WORD]
 * asks on the world, on a group of the same ranks, or on that half of the ranks which it is in;
 * writes "STEP ANSWER" to stopped.RANK and ends with CODE.  WORD: "alone": rank 1 sends itself
 * SIGTERM at step 20; "own": SIGTERM has a handler of the program's own; "slow": so too, and rank 0
 * has much to save, after rank 1 was told to stop; the signals that came meanwhile are the ANSWER;
 * "never": does not stop when it is asked to; "bad": rank 1 has a bad CT_DEADLINE in its first
 * step, and goes on; "again": makes the world twice, with some steps in the first one; "once": what
 * the second start does not do; "loses": rank 1 is killed in step 20, the others go on with a group
 * of their own, and with one more word rank 2 sends itself SIGTERM in step 40. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ct.h>

static volatile sig_atomic_t signals;

static void count(int number)
{
    (void)number;
    signals++;
}

static int fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, ct_last_error());
    return 3;
}

static void note(const char *name, long step, int answer)
{
    char path[64];
    FILE *file;

    snprintf(path, sizeof path, "%s.%d", name, ct_rank(CT_WORLD));
    file = fopen(path, "w");
    if (file) {
        fprintf(file, "%ld %d\n", step, answer);
        fclose(file);
    }
}

static ct_status ask_on(const char *which, ct_group **group)
{
    const int size = ct_size(CT_WORLD), half = size / 2;
    ct_status status = CT_OK;
    ct_group *other;
    int ranks[64];

    for (int i = 0; i < size && i < 64; i++)
        ranks[i] = i;
    if (!strcmp(which, "group"))
        return ct_new_group(ranks, size, group);
    if (!strcmp(which, "halves") && ct_rank(CT_WORLD) < half) {
        status = ct_new_group(ranks, half, group);
        ct_new_group(ranks + half, size - half, &other);
    } else if (!strcmp(which, "halves")) {
        ct_new_group(ranks, half, &other);
        status = ct_new_group(ranks + half, size - half, group);
    }
    return status;
}

/* With those who are left, behind the furthest step that any of them made. */
static ct_status go_on(ct_group **group, long *step)
{
    int64_t here = *step, furthest = 0;
    ct_status status = ct_shrink_group(*group, 20000, group);

    if (status == CT_OK)
        status = ct_all_reduce(*group, &here, &furthest, 1, CT_I64, CT_MAX, NULL);
    *step = (long)furthest;
    return status;
}

int main(int argc, char **argv)
{
    const char *word = argc > 3 ? argv[3] : "";
    const char *rank = getenv("RANK"), *restarts = getenv("TORCHELASTIC_RESTART_COUNT");
    unsigned int seed = (unsigned int)getpid();
    ct_group *group = CT_WORLD;
    int answer = 0;
    long step;

    if (!strcmp(word, "own") || (!strcmp(word, "slow") && rank && !strcmp(rank, "0")))
        signal(SIGTERM, count);
    if (argc < 3 || ct_init_process_group(NULL) != CT_OK)
        return fail("init");
    if (!strcmp(word, "again")) {
        for (int i = 0; i < 3; i++)
            ct_should_stop(CT_WORLD);
        ct_destroy_process_group(CT_WORLD);
        if (ct_init_process_group(NULL) != CT_OK)
            return fail("second init");
    }
    if (!strcmp(word, "once") && restarts && atoi(restarts) > 0)
        return 0;
    if (ask_on(argv[1], &group) != CT_OK)
        return fail("new_group");
    for (step = 1; answer == 0 && step < 1000000; step++) {
        usleep((unsigned int)rand_r(&seed) % 2000);
        if (step == 20 && ct_rank(CT_WORLD) == 1
            && (!strcmp(word, "alone") || !strcmp(word, "once") || !strcmp(word, "slow")))
            raise(SIGTERM);
        if (step == 20 && !strcmp(word, "loses") && ct_rank(CT_WORLD) == 1)
            raise(SIGKILL);
        if (step == 40 && !strcmp(word, "loses") && argc > 4 && ct_rank(CT_WORLD) == 2)
            raise(SIGTERM);
        if (step == 1 && !strcmp(word, "bad") && ct_rank(CT_WORLD) == 1) {
            setenv("CT_DEADLINE", "soon", 1);
            if (ct_should_stop(group) >= 0)
                return fail("a bad deadline");
            unsetenv("CT_DEADLINE");
            continue;
        }
        answer = ct_should_stop(group);
        if (answer == CT_ERR_PEER && !strcmp(word, "loses"))
            answer = go_on(&group, &step);
        if (step == 10)
            note("began", step, answer);
        while (answer != 0 && !strcmp(word, "never"))
            pause();
    }
    if (answer < 0)
        return fail("ct_should_stop");
    if (ct_should_stop(group) != 1)
        return fail("it is no longer so");
    if (!strcmp(word, "slow") && ct_rank(CT_WORLD) == 0) { /* until rank 1 has long ended */
        usleep(300000);
        answer = (int)signals;
    }
    note("stopped", step - 1, answer);
    if (ct_destroy_process_group(CT_WORLD) != CT_OK)
        return fail("destroy");
    return atoi(argv[2]);
}
