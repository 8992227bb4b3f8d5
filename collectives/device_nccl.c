/* SPDX-License-Identifier: Apache-2.0 */
/* device_nccl.c - each rank has a device of its own, and NCCL makes the call between them.
 *
 *   the group's first: can it be (device_cards.c)?  is the library there, the same on all?
 *   -> one makes an id, all join; who can't tells the others, and all go another way for good
 *   -> each call: can every rank, with the buffers that it gave?  all of them know, before any
 * begins
 *   -> it is enqueued; who waits for it also looks whether the others live (device_watch.c)
 *
 * So nothing is ever enqueued that waits for a rank which is not there.  The round costs some
 * microseconds on a host and some tens between hosts; it is what finds ranks that make different
 * calls, which to NCCL is a hang.
 *
 * NCCL makes what it makes with our contract's bits, and sums of floats in an order of its own
 * (CT_ORDER=fast, or where nobody said CT_ORDER); what is missing goes another way: */
#include "collectives/device.h"
#include "collectives/device_watch.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "collectives/operations.h"
#include "include/ct_cuda.h"
#include "runtime/clock.h"
#include "runtime/log.h"

#define SAME_GPU "two ranks have the same GPU"

enum can { CANT, SAME_BITS, OWN_ORDER };

/* It knows no 16-bit integers, no bit operations and no complex products.  It sums f8 and drops a
 * NaN in MIN and MAX, divides the average of integers and takes "true" for any byte, all unlike
 * ct.h. */
static enum can can_fold(ct_dtype dtype, ct_op op)
{
    switch ((int)dtype) {
    case CT_I8:
    case CT_U8:
    case CT_I32:
    case CT_U32:
    case CT_I64:
    case CT_U64:
        return op == CT_SUM || op == CT_PRODUCT || op == CT_MIN || op == CT_MAX ? SAME_BITS : CANT;
    case CT_F16:
    case CT_BF16:
    case CT_F32:
    case CT_F64:
        return op == CT_SUM || op == CT_PRODUCT || op == CT_AVG ? OWN_ORDER : CANT;
    case CT_C64:
    case CT_C128: /* twice as many parts */
        return op == CT_SUM || op == CT_AVG ? OWN_ORDER : CANT;
    default:
        return CANT;
    }
}

int nccl_can(const struct call *c)
{
    const ct_group *g = c->group;
    const enum can can = c->signature.op < 0 ? SAME_BITS : can_fold(call_dtype(c), call_op(c));

    if (operation_has_counts(c->signature.operation))
        return 0;
    return can == SAME_BITS
           || (can == OWN_ORDER && (g->order_rule == ORDER_FAST || !g->order_is_wished));
}

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

void talking_end(struct talking *t, int sound)
{
    if (t->talk)
        t->by->leave(t->talk, sound);
    t->talk = NULL;
    t->state = NO_TALK;
}

/* On all ranks, of which one says so. */
static void never(const struct call *c, struct talking *t, const char *why)
{
    talking_end(t, 0);
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
    struct word *words;
    ct_status status;

    if (!c->group->staging->devices.talks) {
        never(c, t, "a rank's libct was built without it");
        return CT_OK;
    }
    t->by = c->place.space->talks;
    t->device = c->place.device;
    words = malloc((size_t)c->group->size * sizeof *words);
    status = words ? steps(c, t, words)
                   : ct_fail(CT_ERR_NOMEM, "no memory for the words of %d ranks", c->group->size);
    free(words);
    if (status != CT_OK)
        talking_end(t, 0);
    return status;
}

/* ---- A call ---------------------------------------------------------------------------- */

static int is_plain(const struct blocks *b)
{
    return !b->list && !b->counts && !b->displs;
}

/* What only this rank knows of its call. */
static int can_here(const struct call *c, const struct talking *t)
{
    const int in_place = c->send.base == c->recv.base;

    return is_plain(&c->send) && is_plain(&c->recv) && !c->scalar && c->place.device == t->device
           && c->capture != CAPTURE_IS_VOID
           && !(in_place && c->signature.operation == OPERATION_ALL_TO_ALL);
}

static ct_status can_everywhere(struct call *c, const struct talking *t, int *can)
{
    const int32_t mine = can_here(c, t);
    int32_t few[16], *all = few;
    ct_status status;

    if (c->group->size > (int)(sizeof few / sizeof *few))
        all = malloc((size_t)c->group->size * sizeof *all);
    if (!all)
        return ct_fail(CT_ERR_NOMEM, "no memory for the words of %d ranks", c->group->size);
    status = device_tell(c, &mine, sizeof mine, all);
    *can = status == CT_OK;
    for (int i = 0; i < c->group->size && status == CT_OK; i++)
        *can &= all[i];
    if (all != few)
        free(all);
    return status;
}

void nccl_say_order(const struct call *c, struct talking *t)
{
    if (t->said || c->group->rank != 0 || c->signature.op < 0
        || can_fold(call_dtype(c), call_op(c)) != OWN_ORDER || c->group->order_rule == ORDER_FAST)
        return;
    t->said = 1;
    log_line(LOG_INFO,
             "group %s: NCCL sums floats in an order of its own; CT_ORDER=nodes or rank keeps them "
             "from it",
             c->group->name);
}

/* Against the user's wish. */
static void say_cant(const struct call *c, struct talking *t)
{
    char text[96];

    if (t->said_cant || c->group->rank != 0)
        return;
    t->said_cant = 1;
    if (!c->group->staging->devices.apart) {
        log_line(LOG_WARN, "group %s: CT_DEVICE=nccl can't be: " SAME_GPU, c->group->name);
        return;
    }
    signature_describe(&c->signature, text, sizeof text);
    log_line(LOG_INFO, "group %s: CT_DEVICE=nccl can't be for some calls, first for %s%s",
             c->group->name, text,
             can_fold(call_dtype(c), call_op(c)) == OWN_ORDER ? ", whose order CT_ORDER says" : "");
}

/* What is captured is over when it is in the graph: a launch asks nothing of libct. */
static ct_status run(struct call *c, struct talking *t)
{
    void *const captured = c->capture == CAPTURED ? c->group->stream : NULL;
    ct_status status;

    nccl_say_order(c, t);
    atomic_store(&c->group->last_algorithm, t->by->name);
    status = t->by->start(t->talk, &c->signature, c->send.base, c->recv.base, captured);
    if (status == CT_OK)
        status = talking_wait(c, t);
    if (status != CT_OK) {
        char why[600];

        snprintf(why, sizeof why, "%s", ct_last_error());
        talking_end(t, 0);
        ct_fail(status, "%s", why);
    }
    return status;
}

/* Where calls are fused by wish, one that can't be does not begin it: a stream may wait. */
static int is_for_us(const ct_group *group)
{
    const struct staging *s = group->staging;

    if (s->talking.state == NOT_TRIED && s->devices.wish == WISH_FUSED && !s->unfused)
        return 0;
    return s->talking.state != NO_TALK
           && (s->devices.wish == WISH_NCCL || (group->size > 1 && s->devices.apart));
}

int device_nccl_is_to_come(const ct_group *group)
{
    const struct staging *s = group->staging;

    return s->talking.state == NOT_TRIED && is_for_us(group) && s->devices.wish != WISH_STAGED
           && s->devices.talks && s->devices.apart;
}

int device_nccl_can_join(const struct call *c)
{
    return device_nccl_is_to_come(c->group) && nccl_can(c);
}

ct_status device_nccl(struct call *c, int *done)
{
    struct staging *s = c->group->staging;
    struct talking *t = &s->talking;
    const int wished = s->devices.wish == WISH_NCCL;
    ct_status status = CT_OK;
    int can = 0;

    if (!is_for_us(c->group) || (c->capture != NOT_CAPTURED && t->state == NOT_TRIED))
        return CT_OK;
    if (!s->devices.apart || !nccl_can(c)) {
        if (wished)
            say_cant(c, t);
        return CT_OK;
    }
    if (t->state == NOT_TRIED)
        status = talking_begin(c, t);
    if (status == CT_OK && t->state == TALKS)
        status = can_everywhere(c, t, &can);
    if (status == CT_OK && can) {
        status = run(c, t);
        *done = status == CT_OK;
    }
    return status;
}

/* ---- The communicator for the program ---------------------------------------------------- */

/* What ct_nccl_comm() hands to its call, and gets back. */
struct wanted {
    struct place place; /* no device: there is none, and why */
    char why[300];
    void *comm; /* NULL: it can't be, and why */
};

static ct_status find_comm(struct call *outer, struct wanted *w)
{
    struct call c = *outer;
    struct staging *s = staging_of(c.group);
    struct talking *t = s ? &s->talking : NULL;
    ct_status status = s ? CT_OK : CT_ERR_NOMEM;

    c.place = w->place;
    if (status == CT_OK && t->state == NOT_TRIED) {
        status = device_cards(&c, &s->devices);
        if (status == CT_ERR_UNSUPPORTED) { /* now; it may come back with a context */
            if (c.place.device)
                snprintf(w->why, sizeof w->why, "%s", ct_last_error());
            return CT_OK;
        }
        if (status == CT_OK && s->devices.apart)
            status = talking_begin(&c, t);
    }
    if (status == CT_OK && !s->devices.apart)
        snprintf(w->why, sizeof w->why, SAME_GPU);
    else if (status == CT_OK && t->state == TALKS)
        w->comm = t->by->handle(t->talk);
    else if (status == CT_OK)
        snprintf(w->why, sizeof w->why, "%s", t->why);
    return status;
}

static ct_status run_nccl_comm(struct call *c)
{
    return find_comm(c, c->recv.base);
}

static const struct algorithm nccl_comm = { "nccl_comm", NULL, run_nccl_comm, 0 };
const struct algorithm *const nccl_comm_algorithms[] = { &nccl_comm, NULL };

ct_status ct_nccl_comm(ct_group *group, void **comm)
{
    struct wanted wanted = { .comm = NULL };
    const struct request_of_call request = {
        .group = group,
        .caller = __builtin_return_address(0),
        .operation = OPERATION_NCCL_COMM,
        .dtype = CT_U8,
        .op = NONE,
        .root = NONE,
        .count = sizeof wanted,
        .recv = { .base = &wanted, .count = sizeof wanted, .blocks = 1 },
    };
    ct_status status;

    if (!comm)
        return ct_fail(CT_ERR_INVALID, "ct_nccl_comm: no place for the communicator was given");
    if (place_current(&wanted.place) != CT_OK) {
        snprintf(wanted.why, sizeof wanted.why, "%s", ct_last_error());
        wanted.place.device = NULL;
    }
    status = call_run(&request, NULL);
    if (status != CT_OK)
        return status;
    if (!wanted.comm)
        return ct_fail(CT_ERR_UNSUPPORTED, "ct_nccl_comm: %s", wanted.why);
    *comm = wanted.comm;
    return CT_OK;
}
