/* SPDX-License-Identifier: Apache-2.0 */
/* deaths.c - a worker that writes down which deaths its control page tells, as they come.
 *   deaths COUNT [SIGNAL]   in deaths.RANK, until it has COUNT of them; with SIGNAL: ends by it
 *                           as soon as all.up is there
 * It lets SIGTERM pass: who stops the job does not stop the watching. */
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "runtime/monitor/control_page.h"

static void wait_for_news(struct control_head *head, uint32_t seen)
{
    const struct timespec second = { 1, 0 };

    if (atomic_load(&head->deaths) == seen)
        syscall(SYS_futex, &head->notices, FUTEX_WAIT, atomic_load(&head->notices), &second, NULL,
                0);
}

static void print(FILE *out, const struct control_death *death)
{
    fprintf(out, "%d %d %d %s\n", death->rank, death->how, death->code, death->host);
    fflush(out);
}

int main(int argc, char **argv)
{
    const uint32_t count = argc > 1 ? (uint32_t)atoi(argv[1]) : 1;
    struct control control;
    char name[40];
    FILE *out;

    signal(SIGTERM, SIG_IGN);
    if (control_open(&control, -1) != CT_OK || control.worker < 0)
        return 3;
    snprintf(name, sizeof name, "deaths.%d", control.worker);
    out = fopen(name, "w");
    if (!out)
        return 4;
    while (argc > 2 && access("all.up", F_OK) < 0)
        usleep(5000);
    if (argc > 2)
        raise(atoi(argv[2]));
    for (uint32_t seen = 0; seen < count; seen++) {
        while (atomic_load(&control.head->deaths) == seen)
            wait_for_news(control.head, seen);
        print(out, control_death_at(control.head, seen));
    }
    fclose(out);
    control_close(&control);
    return 0;
}
