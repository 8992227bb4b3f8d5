/* SPDX-License-Identifier: Apache-2.0 */
/* stream_handover_end.c - the end of a group whose calls streams have handed over.
 *
 * What it has enqueued itself is over then, or was let go (stream_handover_watch.c).  But of a
 * graph that is launched nobody is told, on this rank or another one, and in a group that broke it
 * may wait for a rank that is gone, now or later.  So the work of such a graph is called off, and a
 * thread lets go what it waits for as long as the process lives; it has little to do. */
#include "collectives/device/fused/stream_handover.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "collectives/device/fused/fused_group.h"
#include "runtime/util/log.h"

enum { SHORTEST_NAP_MS = 1, LONGEST_NAP_MS = 50 };

/* All that any rank's stream may wait for. */
struct words {
    int count;
    _Atomic uint32_t *word[];
};

static struct words *words_of(const ct_group *group)
{
    const struct leaders *l = device_leaders(group);
    const size_t most = (size_t)l->count * (size_t)group->size * 2;
    struct words *words = malloc(sizeof *words + most * sizeof *words->word);

    if (!words)
        return NULL;
    words->count = 0;
    for (int i = 0; i < l->count; i++)
        for (int rank = 0; rank < group->size; rank++)
            for (int kind = READY; kind <= OVER; kind++)
                if (rank != l->rank[i])
                    words->word[words->count++] = handover_word(group, rank, i, kind);
    return words;
}

/* How many were taken back since. */
static int let_go(const struct words *words)
{
    int taken = 0;

    for (int i = 0; i < words->count; i++)
        taken += atomic_exchange(words->word[i], 1) == 0;
    return taken;
}

static void *let_go_for_ever(void *arg)
{
    const struct words *words = arg;

    for (long ms = SHORTEST_NAP_MS;;) {
        const struct timespec nap = { 0, ms * 1000000L };

        ms = let_go(words) > 0          ? SHORTEST_NAP_MS
             : 2 * ms <= LONGEST_NAP_MS ? 2 * ms
                                        : LONGEST_NAP_MS;
        nanosleep(&nap, NULL);
    }
    return NULL;
}

static int begin_thread(struct words *words)
{
    pthread_attr_t detached;
    sigset_t all, old;
    pthread_t thread;
    int error;

    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    sigfillset(&all); /* signals are the program's */
    pthread_sigmask(SIG_SETMASK, &all, &old);
    error = pthread_create(&thread, &detached, let_go_for_ever, words);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&detached);
    return error;
}

static void end_launches(const ct_group *group)
{
    struct words *words = words_of(group);
    int error;

    handover_call_off(group);
    error = words ? begin_thread(words) : ENOMEM;
    if (error == 0)
        return;
    log_line(LOG_WARN, "group %s: a launch of a graph with its calls may stand still: %s",
             group->name, strerror(error));
    free(words);
}

int handover_stays(ct_group *group, const struct handover *h)
{
    const int may_be_launched = h->captured && atomic_load(&group->failure.status) != CT_OK;

    if (!h->waited_for && !may_be_launched)
        return 0;
    host_memory_leave(group, &h->memory);
    if (h->waited_for)
        log_line(LOG_WARN,
                 "group %s: a stream stands still before a call of the group's, whose memory stays "
                 "with the process",
                 group->name);
    if (may_be_launched && h->on && group->size > 1)
        end_launches(group);
    return 1;
}

/* Not while a stream stands still, perhaps for a call that this rank has yet to make. */
static ct_status unpin(const struct handover *h)
{
    const struct space *space = h->pinned.space;
    ct_status status = CT_OK;
    void *before;

    if (space && space->enter(&before) == CT_OK) {
        status = space->unpin(h->pinned.device, h->parts, 0);
        space->leave(before);
    }
    return status;
}

/* Words that can't be unpinned now stay with the process: a page for each rank. */
void handover_end(ct_group *group, struct handover *h)
{
    /* Of pages that are given back another rank's GPU would go on reading those that it knows. */
    if (unpin(h) == CT_ERR_UNSUPPORTED || h->captured) {
        host_memory_leave(group, &h->memory);
        return;
    }
    host_memory_drop(group, &h->memory, 1);
    *h = (struct handover){ .on = 0 };
}
