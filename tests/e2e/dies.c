/* SPDX-License-Identifier: Apache-2.0 */
/* dies WHERE VICTIM - rank VICTIM kills itself while the others wait in WHERE for it, or for
 * somebody else who can't answer without it.  Each survivor prints what its call returned, and
 * what the next one does. */
#include <ct.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static float in[4096], out[4096];

/* Peers that live wait for each other, so that only news of the victim can end it. */
static int another(int rank, int victim)
{
    const int next = (rank + 1) % ct_size(NULL);

    return next == victim ? (rank + 2) % ct_size(NULL) : next;
}

/* Asks again and again without ever waiting; or waits for a while. */
static ct_status receive_later(int victim, int polls)
{
    ct_work *work = NULL;
    int done = 0;
    const ct_status status = ct_irecv(NULL, in, 1, CT_F32, victim, 0, &work);

    if (status != CT_OK || !polls)
        return status == CT_OK ? ct_wait_for(work, 600000) : status;
    while (ct_test(work, &done) == CT_OK && !done)
        usleep(100);
    return ct_wait(work);
}

static ct_status wait_in(const char *where, int rank, int victim)
{
    ct_work *work = NULL;
    ct_status status;
    void *value;
    size_t bytes;

    if (!strcmp(where, "all_reduce"))
        return ct_all_reduce(NULL, in, out, 4096, CT_F32, CT_SUM, NULL);
    if (!strcmp(where, "broadcast"))
        return ct_broadcast(NULL, in, 4096, CT_F32, victim, NULL);
    if (!strcmp(where, "barrier"))
        return ct_barrier(NULL, NULL);
    if (!strcmp(where, "recv"))
        return ct_recv(NULL, in, 1, CT_F32, victim, 0, NULL);
    if (!strcmp(where, "recv-from-another"))
        return ct_recv(NULL, in, 1, CT_F32, another(rank, victim), 0, NULL);
    if (!strcmp(where, "recv-from-any"))
        return ct_recv(NULL, in, 1, CT_F32, CT_ANY_SOURCE, 0, NULL);
    if (!strcmp(where, "test") || !strcmp(where, "wait-for"))
        return receive_later(victim, !strcmp(where, "test"));
    if (!strcmp(where, "store"))
        return ct_store_get(ct_store_default(), "nobody-sets-it", -1, &value, &bytes);
    status = ct_all_reduce(NULL, in, out, 4096, CT_F32, CT_SUM, &work); /* "work" */
    return status == CT_OK ? ct_wait(work) : status;
}

static void die(void)
{
    usleep(20000); /* the others shall be waiting */
    raise(SIGKILL);
}

/* "init-late": nobody leaves before all survivors were told, or their going would be what tells. */
static void wait_for_the_others(int rank, int victim)
{
    char name[32];
    FILE *file;

    snprintf(name, sizeof name, "told.%d", rank);
    if ((file = fopen(name, "w")))
        fclose(file);
    for (int r = 0; r < atoi(getenv("WORLD_SIZE")); r++) {
        snprintf(name, sizeof name, "told.%d", r);
        while (r != victim && access(name, F_OK) != 0)
            usleep(1000);
    }
}

int main(int argc, char **argv)
{
    const int rank = argc == 3 ? atoi(getenv("RANK")) : 0, victim = argc == 3 ? atoi(argv[2]) : 0;
    ct_status status;

    if (argc != 3)
        return 2;
    if (!strcmp(argv[1], "init") && rank == victim)
        die();
    status = ct_init_process_group(NULL);
    if (status == CT_OK && strncmp(argv[1], "init", 4) != 0) {
        status = ct_barrier(NULL, NULL);
        if (status == CT_OK && rank == victim)
            die();
        if (status == CT_OK)
            status = wait_in(argv[1], rank, victim);
    }
    printf("rank %d: %s: %s\n", rank, ct_strerror(status), ct_last_error());
    fflush(stdout);
    if (!strcmp(argv[1], "init-late"))
        wait_for_the_others(rank, victim);
    if (ct_is_initialized()) {
        status = ct_barrier(NULL, NULL);
        printf("rank %d then: %s: %s\n", rank, ct_strerror(status), ct_last_error());
        ct_destroy_process_group(CT_WORLD);
    }
    return 0;
}
