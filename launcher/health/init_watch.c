/* SPDX-License-Identifier: Apache-2.0 */
/* init_watch.c - the rank that never comes.
 *
 * Each rank of libct notes its arrival in the store before it waits for the
 * others.  Once somebody has come to the store we look once a second until all have: when
 * some came and 5 s later others had not, one line names them; again every 30 s.  A program
 * that does not use libct never arrives: nothing is said, and soon we look no more. */
#include "launcher/health/init_watch.h"

#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "launcher/report/report.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"

#define QUIET_LOOKS 10 /* nobody has arrived, and nobody came: it is another kind of program */

static void look_again(struct arrivals *arrivals)
{
    const struct timeval second = { 1, 0 };

    event_add(&arrivals->tick, &second);
}

/* "2 (pid 4310 alive, not in init)" */
static void describe(const struct worker *worker, char *text, size_t size)
{
    char cause[64];

    if (worker->running) {
        snprintf(text, size, "%d (pid %d alive, not in init)", worker->rank, (int)worker->pid);
        return;
    }
    report_cause(worker, cause, sizeof cause);
    snprintf(text, size, "%d (pid %d %s)", worker->rank, (int)worker->pid, cause);
}

static void say(const struct arrivals *arrivals, int arrived, int64_t waited_ms)
{
    char missing[700] = "";
    size_t used = 0;
    int listed = 0;

    for (int i = 0; i < arrivals->size; i++) {
        char one[128];

        if (rendezvous_arrived(arrivals->meet, arrivals->workers[i].rank))
            continue;
        if (++listed > 8)
            continue; /* one screen */
        describe(&arrivals->workers[i], one, sizeof one);
        used +=
            (size_t)snprintf(missing + used, sizeof missing - used, "%s%s", used ? ", " : "", one);
    }
    if (listed > 8)
        snprintf(missing + used, sizeof missing - used, " and %d more", listed - 8);
    log_line(LOG_WARN, "waiting %d s: %d/%d ranks are in ct_init_process_group(); missing %s",
             (int)(waited_ms / 1000), arrived, arrivals->size, missing);
}

static void tick(evutil_socket_t fd, short what, void *arg)
{
    struct arrivals *arrivals = arg;
    const int64_t now = clock_ms();
    int arrived = 0;

    (void)fd;
    (void)what;
    for (int i = 0; i < arrivals->size; i++)
        arrived += rendezvous_arrived(arrivals->meet, arrivals->workers[i].rank);
    if (arrived == arrivals->size || (arrived == 0 && ++arrivals->quiet > QUIET_LOOKS))
        return;
    look_again(arrivals);
    if (arrived > 0 && !arrivals->first) {
        arrivals->first = now;
        arrivals->say = now + 4500; /* it came up to a second ago */
    }
    if (arrived > 0 && now >= arrivals->say) {
        say(arrivals, arrived, now - arrivals->first + 500);
        arrivals->say = now + 30000;
    }
}

void arrivals_setup(struct arrivals *arrivals, struct event_base *base,
                    const struct rendezvous *meet, const struct worker *workers, int size)
{
    *arrivals = (struct arrivals){ .meet = meet, .workers = workers, .size = size };
    evtimer_assign(&arrivals->tick, base, tick, arrivals);
}

static void somebody_came(void *arg)
{
    struct arrivals *arrivals = arg;

    arrivals->quiet = 0;
    if (!event_pending(&arrivals->tick, EV_TIMEOUT, NULL))
        look_again(arrivals);
}

void arrivals_start(struct arrivals *arrivals)
{
    arrivals->first = arrivals->say = 0;
    if (arrivals->size > 1 && arrivals->meet->server)
        store_server_on_guest(arrivals->meet->server, somebody_came, arrivals);
}

void arrivals_stop(struct arrivals *arrivals)
{
    event_del(&arrivals->tick);
    if (arrivals->meet->server)
        store_server_on_guest(arrivals->meet->server, NULL, NULL);
}
