/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_session.c - ranks that each have a device of their own, or the executors of theirs, join in
 * NCCL; and wait for what they have begun there.
 *
 *   is the library there, the same on all?
 *   -> one makes an id, all join; who can't tells the others, and all go another way for good
 *   -> who waits also looks whether the others live (liveness.c) */
#include "collectives/device/device_call.h"
#include "collectives/device/liveness.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/util/clock.h"
#include "runtime/util/log.h"

/* ---- Waiting ----------------------------------------------------------------------- */

/* A wait looks without pause for so long, then naps between two looks; and looks at the other ranks
 * when some time has passed. */
enum { LOOKS_US = 5000, NAP_US = 50, OTHERS_US = 2000 };

static ct_status is_over(const struct call *c)
{
    if (atomic_load(&c->group->broken) != CT_OK)
        return ct_fail(CT_ERR_ABORTED, "given up while NCCL was at work");
    return clock_ms() < c->deadline ? CT_OK
                                    : ct_fail(CT_ERR_TIMEOUT, "NCCL has not done it in time");
}

static ct_status wait_with(struct call *c, const struct talking *t, struct watch *watch)
{
    const struct timespec nap = { 0, NAP_US * 1000L };
    const int64_t begun = clock_us();
    int64_t looked = begun;
    int done = 0;
    ct_status status = t->by->ask(t->talk, &done);

    while (status == CT_OK && !done) {
        const int64_t now = clock_us();

        if (now - looked >= OTHERS_US) {
            looked = now;
            status = watch_look(watch);
            if (status == CT_OK)
                status = is_over(c);
        } else if (now - begun < LOOKS_US) {
            sched_yield();
        } else {
            nanosleep(&nap, NULL);
        }
        if (status == CT_OK)
            status = t->by->ask(t->talk, &done);
    }
    /* A rank that is gone is more than what NCCL can say of it. */
    return status == CT_ERR_NCCL ? watch_for_cause(watch, status) : status;
}

ct_status talking_wait(struct call *c, const struct talking *t)
{
    struct watch watch = { .call = c };
    const ct_status status = wait_with(c, t, &watch);

    watch_end(&watch);
    return status;
}

/* ---- Joining ------------------------------------------------------------------------- */

/* What a rank says in a step: the version that it has, and of the first the id. */
struct word {
    int32_t version; /* 0: it can't, since: */
    char why[124];
    struct talk_id id;
};

/* The library is left with the group, for that may wait for streams that stand still. */
void talking_give_up(struct talking *t)
{
    if (t->talk)
        t->by->give_up(t->talk);
    t->state = NO_TALK;
}

void talking_end(struct talking *t, int sound)
{
    if (t->talk)
        t->by->leave(t->talk, sound && t->state == TALKS);
    t->talk = NULL;
    t->state = NO_TALK;
}

/* On all ranks, of which one says so. */
static void never(const struct call *c, struct talking *t, const char *why)
{
    talking_give_up(t);
    snprintf(t->why, sizeof t->why, "%s", why);
    if (c->group->rank == 0)
        log_line(c->group->staging->devices.wish == WISH_NCCL ? LOG_WARN : LOG_INFO,
                 "group %s: NCCL can't be: %s", c->group->name, why);
}

/* Why not, in the words of the first rank that knows it; NULL: all can. */
static const char *objection(const struct word *words, const struct executors *e, char *why,
                             size_t room)
{
    const struct word *against = NULL;

    for (int i = 0; i < e->count; i++) {
        const struct word *word = &words[e->rank[i]];

        if (word->version == 0 && (!against || (!*against->why && *word->why)))
            against = word;
    }
    if (against) {
        snprintf(why, room, "rank %d: %.124s", (int)(against - words), against->why);
        return why;
    }
    for (int i = 1; i < e->count; i++)
        if (words[e->rank[i]].version != words[0].version) {
            snprintf(why, room, "rank %d has version %d, rank 0 version %d", e->rank[i],
                     words[e->rank[i]].version, words[0].version);
            return why;
        }
    return NULL;
}

/* How this rank fared in a step, for all to hear.  *go_on: all could; their words, else never. */
static ct_status all_could(struct call *c, struct talking *t, ct_status mine, struct word *word,
                           struct word *words, int *go_on)
{
    char why[200];
    ct_status status;

    if (mine != CT_OK) {
        word->version = 0;
        snprintf(word->why, sizeof word->why, "%s", ct_last_error());
    }
    status = device_tell(c, word, sizeof *word, words);
    *go_on = status == CT_OK
             && !objection(words, &c->group->staging->devices.executors, why, sizeof why);
    if (status == CT_OK && !*go_on)
        never(c, t, why);
    return status;
}

/* Of who failed the others must hear: they might wait for it. */
static ct_status join(struct call *c, struct talking *t, const struct talk_id *id)
{
    const struct executors *e = &c->group->staging->devices.executors;
    ct_status status = t->by->join(t->device, id, e->mine, e->count, &t->talk);

    if (status == CT_OK) {
        status = talking_wait(c, t);
        if (status == CT_ERR_UNSUPPORTED)
            ct_fail(status, "%s", ""); /* another gave up, and says why */
    }
    if (status == CT_ERR_NCCL || status == CT_ERR_CUDA || status == CT_ERR_NOMEM
        || status == CT_ERR_UNSUPPORTED) {
        char why[400];

        snprintf(why, sizeof why, "%s", ct_last_error());
        watch_tell(c);
        return ct_fail(CT_ERR_UNSUPPORTED, "%s", why);
    }
    return status;
}

static ct_status steps(struct call *c, struct talking *t, struct word *words)
{
    const int talks = c->group->staging->devices.executors.mine >= 0;
    struct word mine;
    ct_status status, step;
    int go_on;

    memset(&mine, 0, sizeof mine); /* no byte of what travels is left undefined */
    step = talks ? t->by->find(&mine.version) : CT_OK;
    status = all_could(c, t, step, &mine, words, &go_on);
    if (status != CT_OK || !go_on)
        return status;
    step = c->group->rank == 0 ? t->by->make_id(&mine.id) : CT_OK;
    status = all_could(c, t, step, &mine, words, &go_on);
    if (status != CT_OK || !go_on)
        return status;
    step = talks ? join(c, t, &words[0].id) : CT_OK;
    if (step != CT_OK && step != CT_ERR_UNSUPPORTED)
        return step; /* the group is lost */
    status = all_could(c, t, step, &mine, words, &go_on);
    if (status == CT_OK && go_on)
        t->state = TALKS;
    return status;
}

ct_status talking_begin(struct call *c, struct talking *t)
{
    const struct place *ours = &c->group->staging->devices.place;
    struct word *words;
    ct_status status;

    if (!c->group->staging->devices.talks) {
        never(c, t, "a rank's libct was built without it");
        return CT_OK;
    }
    t->by = ours->space->talks; /* of the device that all know, wherever this call's buffers are */
    t->device = ours->device;
    words = malloc((size_t)c->group->size * sizeof *words);
    status = words ? steps(c, t, words)
                   : ct_fail(CT_ERR_NOMEM, "no memory for the words of %d ranks", c->group->size);
    free(words);
    if (status != CT_OK)
        talking_give_up(t);
    return status;
}
