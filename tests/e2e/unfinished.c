/* SPDX-License-Identifier: Apache-2.0 */
/* unfinished.c WAY - leaves something undone, or ends in a way that needs no line. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ct.h>

static int value[2];

static void check(ct_status status)
{
    if (status == CT_OK)
        return;
    fprintf(stderr, "%s\n", ct_last_error());
    exit(1);
}

static ct_work *begin(int *x)
{
    ct_work *work;

    check(ct_all_reduce(CT_WORLD, x, x, 1, CT_I32, CT_SUM, &work));
    return work;
}

static void destroy(void)
{
    check(ct_destroy_process_group(CT_WORLD));
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";
    ct_work *work = NULL;

    if (!strcmp(way, "handler"))
        atexit(destroy); /* before libct was used */
    check(ct_init_process_group(NULL));
    check(ct_barrier(CT_WORLD, NULL));
    if (!strcmp(way, "group"))
        return 0;
    if (!strcmp(way, "group_of_1") && ct_rank(CT_WORLD) == 1)
        return 0;
    if (!strcmp(way, "works"))
        begin(&value[1]);
    if (!strcmp(way, "message") && ct_rank(CT_WORLD) == 1) {
        check(ct_irecv(CT_WORLD, &value[1], 1, CT_I32, 0, 7, &work));
        check(ct_barrier(CT_WORLD, NULL));
    } else if (!strcmp(way, "message")) {
        check(ct_barrier(CT_WORLD, NULL));
    }
    if (!strcmp(way, "work") || !strcmp(way, "works") || !strcmp(way, "both"))
        begin(&value[0]);
    check(ct_wait(begin(&value[0]))); /* a work that was waited for does not count */
    if (!strcmp(way, "both"))
        exit(0);
    if (!strcmp(way, "code"))
        exit(3);
    if (!strcmp(way, "signal"))
        raise(SIGKILL);
    if (!strcmp(way, "failed")) {
        check(ct_abort(CT_WORLD));
        return 0;
    }
    if (!strcmp(way, "child")) {
        if (fork() == 0)
            exit(0);
        wait(NULL);
    }
    if (strcmp(way, "handler") != 0)
        destroy();
    return 0;
}
