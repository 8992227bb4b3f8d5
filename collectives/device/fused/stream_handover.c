/* SPDX-License-Identifier: Apache-2.0 */
/* stream_handover.c - streams that hand a fused call over to each other, so that no host waits for
 * a device.
 *
 *   the ranks exchange on the host whose buffers are where, as for any fused call (fused.c)
 *   -> a leader enqueues in its stream: wait for READY of each rank, and reset it; fold and copy;
 *      set OVER of each rank
 *   -> each rank enqueues in its stream: set READY; wait for OVER, and reset it
 *   -> the call returns; the devices go on by themselves
 *
 * READY and OVER are stream flags: words of 1 or 0 that the waiting stream resets, so the same
 * operations are enqueued in every call, and a graph can be launched again.  The flags lie in host
 * memory that all ranks share and each rank has pinned whole.  So a host can let its own stream go
 * on with one store, whatever has become of the other ranks.  Otherwise a host waits for
 * each device (fused.c).  Which is faster no GPU has shown.
 *
 * Watching.  No host waits in such a call, so a thread of the group's (group->watches) waits until
 * the stream has passed it, and checks meanwhile that the other ranks live.  The thread does
 * nothing else: a message may come after calls that wait for this thread (handover_turn()).
 *
 *   a rank is gone, or has given up, or the timeout is over
 *   -> the group breaks
 *   -> the leaders' work is called off: kernels that have not begun do nothing
 *   -> a leader releases its own stream
 *   -> each rank waits until the leaders are done, then releases its own stream
 *
 * so that no rank frees its buffers while a leader's kernel uses them.
 *
 * The end.  The group's own calls are over then, or were released.  But libct does not see the
 * launches of a graph, on this rank or another one, and in a group that broke a launch may wait for
 * a rank that is gone, now or later.  So the work of such graphs is called off, and a thread sets
 * the flags that they wait for as long as the process lives, mostly asleep. */
#include "collectives/device/fused/stream_handover.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "collectives/device/fused/fused_group.h"
#include "collectives/device/group/liveness.h"
#include "runtime/group/group_device.h"
#include "runtime/group/shm_group.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"
#include "runtime/util/task_queue.h"
#include "runtime/util/thread.h"

enum { CANT, CAN, NOT_NOW };
enum { MOST_RANKS = 64 };
enum { UNUSED = sizeof(uint32_t) * KINDS * MOST_RANKS }; /* offset of a flag that no call uses */
enum { OTHERS_MS = 20 };                                 /* between two looks at the other ranks */
enum { SHORTEST_NAP_MS = 1, LONGEST_NAP_MS = 50 };

static _Atomic uint32_t *handover_flag(const ct_group *group, int rank, int leader, int kind)
{
    const struct handover *h = &fused_of(group)->handover;

    return (_Atomic uint32_t *)(void *)(h->parts + (size_t)rank * h->memory.bytes)
           + (size_t)leader * KINDS + (size_t)kind;
}

const _Atomic uint32_t *handover_called_off(const ct_group *group)
{
    const int mine = device_leaders(group)->mine;

    return fused_of(group)->handover.parts && mine >= 0
               ? handover_flag(group, group->rank, mine, CALLED_OFF)
               : NULL;
}

static void handover_call_off(const ct_group *group)
{
    const struct leaders *l = device_leaders(group);

    for (int i = 0; i < l->count && group->size > 1; i++)
        atomic_store(handover_flag(group, l->rank[i], i, CALLED_OFF), 1);
}

/* ---- What is enqueued ----------------------------------------------------------------- */

struct list {
    struct flag_op op[2 * MOST_RANKS];
    int count;
};

static void set(struct list *list, _Atomic uint32_t *word, uint32_t value)
{
    list->op[list->count++] = (struct flag_op){ word, value, 0 };
}

static void wait_for(struct list *list, _Atomic uint32_t *word)
{
    list->op[list->count++] = (struct flag_op){ word, 1, 1 };
}

static ct_status enqueue_list(const struct call *c, const struct list *list)
{
    return list->count == 0
               ? CT_OK
               : c->place.space->flag_ops(c->place.device, c->group->stream, list->op, list->count);
}

/* A group's calls are in one order.  After ct_set_stream() with another stream, the first call
 * there would overtake calls in the stream before, so it waits for them.  In a graph the program
 * orders its streams. */
void handover_turn(const struct call *c)
{
    struct handover *h = &fused_of(c->group)->handover;

    if (c->capture != NOT_CAPTURED)
        return;
    if (h->stream && h->stream != c->group->stream)
        queue_drain(c->group->watches);
    h->stream = c->group->stream;
}

/* Sets READY for all leaders but this rank. */
static void set_ready(const struct call *c, const struct leaders *l, struct list *list)
{
    for (int i = 0; i < l->count; i++)
        if (i != l->mine)
            set(list, handover_flag(c->group, c->group->rank, i, READY), 1);
}

/* From here on the call can't take another path.  What is captured does not enter the stream. */
static ct_status enter_stream(struct call *c, const struct leaders *l)
{
    struct handover *h = &fused_of(c->group)->handover;
    ct_status status = CT_OK;

    if (c->is_in_stream)
        return CT_OK;
    if (l->mine >= 0 && c->capture == NOT_CAPTURED && c->group->shm)
        status = shm_group_touch_in_stream(c->group->shm);
    if (status != CT_OK)
        return status;
    c->is_in_stream = h->used = 1;
    h->captured |= c->capture != NOT_CAPTURED;
    if (c->capture == NOT_CAPTURED)
        c->place.space->call_enters_stream();
    return CT_OK;
}

/* This leader's READY comes before its wait: another leader may wait for it. */
ct_status handover_take(struct call *c, const struct leaders *l)
{
    struct list ready = { .count = 0 }, list = { .count = 0 };
    ct_status status = enter_stream(c, l);

    if (status != CT_OK)
        return status;
    set_ready(c, l, &ready);
    status = enqueue_list(c, &ready);
    for (int i = 0; i < c->group->size; i++)
        if (i != c->group->rank)
            wait_for(&list, handover_flag(c->group, i, l->mine, READY));
    for (int i = 0; i < c->group->size; i++)
        if (i != c->group->rank)
            set(&list, handover_flag(c->group, i, l->mine, READY), 0);
    return status == CT_OK ? enqueue_list(c, &list) : status;
}

ct_status handover_give(struct call *c, const struct leaders *l)
{
    struct list list = { .count = 0 };
    ct_status status = CT_OK;

    if (l->count > 1 && c->capture == NOT_CAPTURED)
        status = c->place.space->mark(c->place.device, c->group->stream,
                                      &fused_of(c->group)->handover.worked);
    for (int i = 0; i < c->group->size; i++)
        if (i != c->group->rank)
            set(&list, handover_flag(c->group, i, l->mine, OVER), 1);
    return status == CT_OK ? enqueue_list(c, &list) : status;
}

/* ---- Watching ----------------------------------------------------------------------- */

/* A call that its stream has not passed yet. */
struct watched {
    struct task task; /* first: its task waits for the stream */
    struct call call; /* its buffers and arrays may be freed already */
    void *worked;     /* as in struct handover; NULL: `mark` serves */
    void *mark;       /* behind the call */
};

/* Sets what this rank's stream waits for: as a leader (READY) or as a rank (OVER). */
static void release_stream(const ct_group *group, int kind)
{
    const struct leaders *l = device_leaders(group);

    for (int i = 0; i < l->count && kind == OVER; i++)
        if (i != l->mine)
            atomic_store(handover_flag(group, group->rank, i, OVER), 1);
    for (int i = 0; i < group->size && kind == READY && l->mine >= 0; i++)
        if (i != group->rank)
            atomic_store(handover_flag(group, i, l->mine, READY), 1);
}

/* Repeated, since a call in the stream resets its flags and the next call waits for them again.  0:
 * the stream waits for something else, and may come to these flags later. */
static int release_until(const struct watched *w, int kind, void *mark)
{
    const struct space *space = w->call.place.space;
    const int64_t deadline = deadline_after(SHM_GROUP_DEVICE_SETTLING_MS);
    ct_status status;

    do {
        release_stream(w->call.group, kind);
        status = space->wait_for(w->call.place.device, mark, clock_ms() + 1, NULL);
    } while (status == CT_ERR_TIMEOUT && clock_ms() < deadline);
    if (status == CT_ERR_TIMEOUT)
        fused_of(w->call.group)->handover.waited_for = 1;
    return status != CT_ERR_TIMEOUT;
}

/* This leader's device is done with so many calls, or with all. */
static void have_worked(const ct_group *group, int calls)
{
    if (device_leaders(group)->mine >= 0 && group->shm)
        shm_group_untouch_in_stream(group->shm, calls);
}

/* How many calls this leader's device is done with when it is done with this one.  Several leaders
 * must not wait for each other's later calls, to which their streams come when both are released.
 * If the stream has not passed this call, no later kernel has begun, and each will see that it is
 * called off. */
static int calls_done_with(const struct watched *w)
{
    const struct space *space = w->call.place.space;

    if (device_leaders(w->call.group)->count == 1)
        return 1;
    return space->wait_for(w->call.place.device, w->mark, 0, NULL) == CT_ERR_TIMEOUT ? INT_MAX : 1;
}

/* The group is broken.  Later work in this rank's stream may free its buffers, so that is released
 * last, when no leader uses them.  0: the stream waits nevertheless. */
static int release_all(const struct watched *w)
{
    int calls;

    handover_call_off(w->call.group);
    calls = calls_done_with(w);
    if (device_leaders(w->call.group)->mine >= 0
        && release_until(w, READY, w->worked ? w->worked : w->mark))
        have_worked(w->call.group, calls);
    if (w->call.group->shm)
        shm_group_await_untouched(
            w->call.group->shm); /* not shm_group_settle(): the offers are those of a later call */
    return release_until(w, OVER, w->mark);
}

/* Waits for the mark, and checks that the other ranks live: this may be the only thread that does.
 */
static ct_status wait_among_others(struct call *c, void *mark)
{
    struct watch others = { .call = c };
    ct_status status = CT_ERR_TIMEOUT;

    while (status == CT_ERR_TIMEOUT) {
        const int64_t soon = clock_ms() + OTHERS_MS;
        const int64_t until = soon < c->deadline ? soon : c->deadline;

        status = device_wait(c->group, c->place, mark, until, &c->group->failure.status);
        if (status == CT_ERR_TIMEOUT && until == c->deadline)
            break;
        if (status == CT_ERR_TIMEOUT && watch_check(&others) != CT_OK)
            status = CT_ERR_PEER;
    }
    watch_end(&others);
    return status;
}

static ct_status watch_in(struct watched *w)
{
    struct call *c = &w->call;
    char text[96], here[160], words[512];
    ct_status status;

    /* The timeout begins when the calls before it in the stream are over. */
    c->deadline = deadline_after(c->limit.ms);
    status = wait_among_others(c, w->mark);
    if (status == CT_OK) {
        have_worked(c->group, 1);
        c->place.space->call_leaves_stream();
        return CT_OK;
    }
    status = group_cause(c->group, status, c->signature.seq);
    snprintf(words, sizeof words, "%s", ct_last_error());
    signature_describe(&c->signature, text, sizeof text);
    ct_fail(status, "%s on group %s, in its stream: %s", text,
            group_here(c->group, here, sizeof here), words);
    log_line(LOG_WARN, "%s", ct_last_error());
    status = group_fail(c->group, status);
    if (release_all(w))
        c->place.space->call_leaves_stream();
    return status;
}

static ct_status watch_task(struct task *task)
{
    struct watched *w = (struct watched *)task;
    const struct space *space = w->call.place.space;
    void *before;
    ct_status status = space->enter(&before);

    if (status != CT_OK)
        return status;
    status = watch_in(w);
    space->forget(w->call.place.device, w->mark);
    if (w->worked)
        space->forget(w->call.place.device, w->worked);
    space->leave(before);
    return status;
}

static void abandon_watch(struct task *task)
{
    free(task);
}

/* Until the stream has passed what was enqueued for the call. */
static ct_status handover_watch(const struct call *c)
{
    struct handover *h = &fused_of(c->group)->handover;
    struct watched *w = malloc(sizeof *w);
    ct_status status;

    if (!w)
        return ct_fail(CT_ERR_NOMEM, "no memory to watch a stream");
    *w = (struct watched){ .task = { .run = watch_task, .abandon = abandon_watch },
                           .call = *c,
                           .worked = h->worked };
    status = c->place.space->mark(c->place.device, c->group->stream, &w->mark);
    if (status == CT_OK) {
        status = queue_push(&c->group->watches, &w->task);
        if (status != CT_OK)
            c->place.space->forget(c->place.device, w->mark);
    }
    if (status == CT_OK)
        h->worked = NULL;
    else
        free(w);
    return status;
}

/* ---- As a rank ------------------------------------------------------ */

/* A call that was captured in part must not run: spoils the capture. */
void handover_fail(struct call *c)
{
    char words[1024];

    if (!c->is_in_stream)
        return;
    snprintf(words, sizeof words, "%s", ct_last_error());
    if (c->capture != NOT_CAPTURED)
        c->place.space->spoil(c->place.device, c->group->stream);
    else if (handover_watch(c) != CT_OK)
        log_line(LOG_WARN, "group %s: a stream may stand still: %s", c->group->name,
                 ct_last_error());
    ct_fail(CT_ERR_CUDA, "%s", words);
}

ct_status handover_follow(struct call *c, const struct leaders *l)
{
    struct list list = { .count = 0 };
    ct_status status = enter_stream(c, l);

    if (status != CT_OK)
        return status;
    if (l->mine < 0)
        set_ready(c, l, &list);
    for (int i = 0; i < l->count; i++)
        if (i != l->mine)
            wait_for(&list, handover_flag(c->group, c->group->rank, i, OVER));
    for (int i = 0; i < l->count; i++)
        if (i != l->mine)
            set(&list, handover_flag(c->group, c->group->rank, i, OVER), 0);
    status = enqueue_list(c, &list);
    return status == CT_OK && c->capture == NOT_CAPTURED ? handover_watch(c) : status;
}

/* ---- Begin ------------------------------------------------------------------------ */

/* Can this rank?  While a stream is captured nothing can be pinned. */
static int can_here(struct call *c, struct handover *h)
{
    const struct space *space = c->place.space;
    char *const parts = h->memory.data - (size_t)c->group->rank * h->memory.bytes;
    ct_status status;

    if (!h->memory.shared)
        return CANT;
    if (h->parts)
        return CAN;
    if (c->capture != NOT_CAPTURED)
        return NOT_NOW;
    memset(h->memory.data, 0, h->memory.bytes);
    status = space->register_host(c->place.device, parts, (size_t)c->group->size * h->memory.bytes);
    if (status != CT_OK) /* unsupported: a stream is waiting */
        return status == CT_ERR_UNSUPPORTED ? NOT_NOW : CANT;
    h->parts = parts;
    h->pinned = c->place;
    return space->try_flag(c->place.device, (void *)(h->memory.data + UNUSED)) == CT_OK ? CAN
                                                                                        : CANT;
}

ct_status handover_begin(struct call *c, struct handover *h, int always)
{
    int32_t could[MOST_RANKS], mine;
    int cant = 0, not_now = 0;
    ct_status status;

    h->tried = 1;
    h->always = always || c->group->size == 1;
    h->on = c->group->size == 1; /* it needs no flags */
    if (!c->group->shm || c->group->size < 2 || c->group->size > MOST_RANKS)
        return CT_OK;
    if (!h->memory.data) {
        status = host_memory_make(c, &h->memory, UNUSED + sizeof(uint32_t), 1);
        if (status != CT_OK)
            return status;
    }
    mine = can_here(c, h);
    status = device_gather(c, &mine, sizeof mine, could);
    if (status != CT_OK)
        return status;
    for (int i = 0; i < c->group->size; i++) {
        cant |= could[i] == CANT;
        not_now |= could[i] == NOT_NOW;
    }
    h->on = !cant && !not_now;
    h->tried = cant || !not_now;
    if (always && cant && c->group->rank == 0)
        log_line(LOG_INFO,
                 "group %s: CT_HANDOVER=stream can't be: not all ranks' streams can wait for flags "
                 "in shared memory",
                 c->group->name);
    return CT_OK;
}

/* ---- The end ------------------------------------------------------------------------ */

/* The flags of all ranks' streams. */
struct flags {
    int count;
    _Atomic uint32_t *flag[];
};

static struct flags *flags_of(const ct_group *group)
{
    const struct leaders *l = device_leaders(group);
    const size_t most = (size_t)l->count * (size_t)group->size * 2;
    struct flags *flags = malloc(sizeof *flags + most * sizeof *flags->flag);

    if (!flags)
        return NULL;
    flags->count = 0;
    for (int i = 0; i < l->count; i++)
        for (int rank = 0; rank < group->size; rank++)
            for (int kind = READY; kind <= OVER; kind++)
                if (rank != l->rank[i])
                    flags->flag[flags->count++] = handover_flag(group, rank, i, kind);
    return flags;
}

/* Sets all of them.  How many had been reset since. */
static int set_all(const struct flags *flags)
{
    int taken = 0;

    for (int i = 0; i < flags->count; i++)
        taken += atomic_exchange(flags->flag[i], 1) == 0;
    return taken;
}

static void *set_for_ever(void *arg)
{
    const struct flags *flags = arg;

    for (long ms = SHORTEST_NAP_MS;;) {
        const struct timespec nap = { 0, ms * 1000000L };

        ms = set_all(flags) > 0         ? SHORTEST_NAP_MS
             : 2 * ms <= LONGEST_NAP_MS ? 2 * ms
                                        : LONGEST_NAP_MS;
        nanosleep(&nap, NULL);
    }
    return NULL;
}

static void end_launches(const ct_group *group)
{
    struct flags *flags = flags_of(group);
    int error;

    handover_call_off(group);
    error = flags ? thread_start(NULL, set_for_ever, flags) : ENOMEM;
    if (error == 0)
        return;
    log_line(LOG_WARN, "group %s: a launch of a graph with its calls may stand still: %s",
             group->name, strerror(error));
    free(flags);
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

/* CT_ERR_UNSUPPORTED: a stream waits, perhaps for a call that this rank has yet to make. */
static ct_status unpin(const struct handover *h)
{
    const struct space *space = h->pinned.space;
    ct_status status = CT_OK;
    void *before;

    if (space && space->enter(&before) == CT_OK) {
        status = space->unregister_host(h->pinned.device, h->parts, 0);
        space->leave(before);
    }
    return status;
}

/* Flags that can't be unpinned now stay with the process: a page for each rank. */
void handover_end(ct_group *group, struct handover *h)
{
    /* Behind a graph another rank's GPU may go on reading these pages, so they stay mapped. */
    if (unpin(h) == CT_ERR_UNSUPPORTED || h->captured) {
        host_memory_leave(group, &h->memory);
        return;
    }
    host_memory_drop(group, &h->memory, 1);
    *h = (struct handover){ .on = 0 };
}
