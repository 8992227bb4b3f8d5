/* SPDX-License-Identifier: Apache-2.0 */
/* init_watch.c - names the ranks that do not come to ct_init_process_group().
 *
 * Each rank of libct notes its arrival in the store before it waits for the others.  From the first
 * connection to the store on, ctrun checks once a second until all ranks have arrived.  If ranks
 * are missing 5 s after the first arrival, one line names them; again every 30 s.  Ranks of a
 * program that does not use libct never arrive: then ctrun says nothing and soon stops checking. */
#include "launcher/health/init_watch.h"

#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "launcher/report/report.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"

#define QUIET_CHECKS 10 /* no arrival and no connection: a program that does not use libct */

static void init_watch_check_again(struct init_watch *watch)
{
    const struct timeval second = { 1, 0 };

    event_add(&watch->tick, &second);
}

/* "2 (pid 4310 alive, not in init)" */
static void init_watch_describe(const struct worker *worker, char *text, size_t size)
{
    char cause[64];

    if (worker->running) {
        snprintf(text, size, "%d (pid %d alive, not in init)", worker->rank, (int)worker->pid);
        return;
    }
    report_cause(worker, cause, sizeof cause);
    snprintf(text, size, "%d (pid %d %s)", worker->rank, (int)worker->pid, cause);
}

static void init_watch_say(const struct init_watch *watch, int arrived, int64_t waited_ms)
{
    char missing[700] = "";
    size_t used = 0;
    int listed = 0;

    for (int i = 0; i < watch->size; i++) {
        char one[128];

        if (job_rendezvous_arrived(watch->meet, watch->workers[i].rank))
            continue;
        if (++listed > 8)
            continue; /* one screen */
        init_watch_describe(&watch->workers[i], one, sizeof one);
        used +=
            (size_t)snprintf(missing + used, sizeof missing - used, "%s%s", used ? ", " : "", one);
    }
    if (listed > 8)
        snprintf(missing + used, sizeof missing - used, " and %d more", listed - 8);
    log_line(LOG_WARN, "waiting %d s: %d/%d ranks are in ct_init_process_group(); missing %s",
             (int)(waited_ms / 1000), arrived, watch->size, missing);
}

static void init_watch_tick(evutil_socket_t fd, short what, void *arg)
{
    struct init_watch *watch = arg;
    const int64_t now = clock_ms();
    int arrived = 0;

    (void)fd;
    (void)what;
    for (int i = 0; i < watch->size; i++)
        arrived += job_rendezvous_arrived(watch->meet, watch->workers[i].rank);
    if (arrived == watch->size || (arrived == 0 && ++watch->quiet > QUIET_CHECKS))
        return;
    init_watch_check_again(watch);
    if (arrived > 0 && !watch->first) {
        watch->first = now;
        watch->say = now + 4500; /* it came up to a second ago */
    }
    if (arrived > 0 && now >= watch->say) {
        init_watch_say(watch, arrived, now - watch->first + 500);
        watch->say = now + 30000;
    }
}

void init_watch_setup(struct init_watch *watch, struct event_base *base,
                      const struct job_rendezvous *meet, const struct worker *workers, int size)
{
    *watch = (struct init_watch){ .meet = meet, .workers = workers, .size = size };
    evtimer_assign(&watch->tick, base, init_watch_tick, watch);
}

static void on_connection(void *arg)
{
    struct init_watch *watch = arg;

    watch->quiet = 0;
    if (!event_pending(&watch->tick, EV_TIMEOUT, NULL))
        init_watch_check_again(watch);
}

void init_watch_start(struct init_watch *watch)
{
    watch->first = watch->say = 0;
    if (watch->size > 1 && watch->meet->server)
        store_server_on_connection(watch->meet->server, on_connection, watch);
}

void init_watch_stop(struct init_watch *watch)
{
    event_del(&watch->tick);
    if (watch->meet->server)
        store_server_on_connection(watch->meet->server, NULL, NULL);
}
