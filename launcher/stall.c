/* SPDX-License-Identifier: Apache-2.0 */
/* stall.c - a look at the control page, twice within the time.
 *
 * Most looks end with the page: nobody waits for that long.  Only else /proc is read and a
 * verdict made; no other program is asked, since what hangs the workers may hang it too.  The
 * same verdict is said again when it has lasted ten times as long: a server that waits for
 * requests has said so after a few lines. */
#include "launcher/stall.h"

#include <event2/event.h>

#include "launcher/look/module.h"
#include "launcher/look/page.h"
#include "launcher/look/process.h"
#include "launcher/look/verdict.h"
#include "runtime/clock.h"

static void look_again(struct stall *stall)
{
    const struct timeval half = { stall->seconds / 2, stall->seconds % 2 * 500000 };

    event_add(&stall->look, &half);
}

static int somebody_waits(const struct look_job *job, uint64_t limit_ns)
{
    for (int i = 0; i < job->ranks; i++) {
        const struct look_rank *rank = &job->rank[i];

        if ((rank->state == CONTROL_INIT && words_age(job, rank->since_ns) >= limit_ns)
            || (*rank->waiting_for && words_age(job, rank->waiting_since_ns) >= limit_ns))
            return 1;
        for (int j = 0; j < CONTROL_GROUPS; j++) {
            const struct look_group *line = &rank->group[j];

            if (line->id && !line->moving && line->now.phase == CONTROL_IN
                && words_age(job, line->now.begun_ns) >= limit_ns)
                return 1;
        }
    }
    return 0;
}

/* Is it worth saying?  Then it is noted as said. */
static int is_news(struct stall *stall, const struct verdict *verdict)
{
    uint64_t key = 0, waited_ns = 0;

    for (int i = 0; i < verdict->count; i++) {
        const struct sentence *sentence = &verdict->sentence[i];

        key = key * 31 + sentence->key;
        waited_ns = sentence->waited_ns > waited_ns ? sentence->waited_ns : waited_ns;
    }
    if (verdict->count == 0 || (key == stall->said && waited_ns < stall->again_ns))
        return 0;
    stall->said = key;
    stall->again_ns = 10 * waited_ns;
    return 1;
}

static void look(evutil_socket_t fd, short what, void *arg)
{
    struct stall *stall = arg;
    const uint64_t limit_ns = (uint64_t)stall->seconds * 1000000000;
    struct look_job job;
    struct verdict verdict;

    (void)fd;
    (void)what;
    look_again(stall);
    if (!stall->control->head || page_read(stall->control->memory, &job) < 0)
        return;
    if (somebody_waits(&job, limit_ns)) {
        process_look_at(&job);
        module_places(&job);
        verdict_make(&verdict, &job, limit_ns); /* without memory it may say less */
        if (is_news(stall, &verdict))
            stall->found(stall->arg, &verdict);
        verdict_free(&verdict);
    }
    look_free(&job);
}

void stall_setup(struct stall *stall, struct event_base *base, int seconds,
                 const struct control_host *control,
                 void (*found)(void *arg, const struct verdict *verdict), void *arg)
{
    *stall = (struct stall){ .control = control, .seconds = seconds, .found = found, .arg = arg };
    evtimer_assign(&stall->look, base, look, stall);
}

void stall_begin(struct stall *stall)
{
    stall->said = stall->again_ns = 0;
    if (stall->seconds > 0)
        look_again(stall);
}

void stall_end(struct stall *stall)
{
    event_del(&stall->look);
}
