/* SPDX-License-Identifier: Apache-2.0 */
/* stream_handover.c - lets the streams of a group's ranks hand a fused call over to each other, so
 * that no host waits for a device.
 *
 *   On the host, the ranks agree whether and how to run the call, as for any fused call (fused.c).
 *   A leader enqueues in its stream: wait for READY of each rank; fold and copy; set OVER.
 *   Each rank enqueues in its stream: set READY; wait for OVER of each leader; set PASSED.
 *   The call returns, and the devices continue without the hosts.
 *
 * READY, OVER and PASSED are words in host memory.  All ranks share this memory, and each rank has
 * pinned all of it.  A stream sets a word to the call's number, which is the same on all ranks.  A
 * stream that waits for a word continues when the word is that number or a later number.  So no
 * word is ever reset, and a leader of N ranks waits N - 1 times and sets one word for all ranks.
 *
 * Launches of a CUDA graph have no numbers.  For calls in graphs each rank has a READY flag and an
 * OVER flag for each leader.  Each flag is 1 or 0, and the stream that waited for it resets it.
 *
 * On an H200 an all-reduce of 1 KiB takes 0.5 (2 ranks) to 0.8 (8 ranks) of the time that it takes
 * if hosts wait for each device (fused.c).  Also, a thread in cudaFree() can't delay a call that is
 * already enqueued: the driver lets no thread launch or copy during cudaFree().
 *
 * Watching.  No host waits in such a call.  So a thread of the group (group->watches) waits until
 * the stream has passed the call, and checks meanwhile that the other ranks are alive.  The thread
 * reads PASSED and never calls the driver, since the driver may hold a lock until this very stream
 * continues.  The thread has no other work: a message may have to wait for calls for which this
 * thread waits (handover_turn()).
 *
 * If a rank is gone, a rank has given up, or the timeout is over:
 *   The group breaks, and no rank enqueues a further call (BROKEN, ENQUEUES).
 *   The leaders' work is called off: kernels that have not begun do nothing.
 *   A leader raises READY of all ranks to the last call that the leader has enqueued.
 *   Each rank raises OVER of all leaders to the last call of which no kernel runs, until its own
 *   stream has passed all its calls.
 *
 * So no rank frees its buffers while a leader's kernel uses them.  A leader's kernel runs while
 * BEGUN, set before the kernel, is later than WORKED, set behind the kernel.  tests/models proves
 * this.  After 10 s a rank assumes that such a kernel never ends, and raises OVER anyway.
 *
 * The end of the group.  By then the group's own calls are over or were released.  But libct does
 * not see the launches of a graph, on this rank or on other ranks.  In a group that broke, a launch
 * may wait for a rank that is gone, now or later.  So the work of such graphs is called off, and a
 * thread raises the flags for which the graphs wait.  This thread lives until the process ends and
 * mostly sleeps.  It also raises the words of calls that a stream had not passed 11 s after the
 * group broke. */
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
#include "runtime/group/shm/direct.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"
#include "runtime/util/task_queue.h"
#include "runtime/util/thread.h"

enum { CANT, CAN, NOT_NOW };
enum { MOST_RANKS = 64 };
/* time between two checks of the other ranks; of messages */
enum { OTHERS_MS = 20, POLL_MS = 5 };
enum { NAP_US = 200, RELEASES_US = 1000 }; /* time between two polls; between two raises */
/* how long to wait for a stream after all its words have been raised */
enum { GOING_ON_MS = 1000 };
enum { PASSING_MS = 1000 }; /* how long the group's end waits for the other streams */
enum { SHORTEST_NAP_MS = 1, LONGEST_NAP_MS = 50 };

/* ---- Words ------------------------------------------------------------------------------ */

/* Each rank has all words, but uses only some: a leader uses WORKED, BEGUN, CALLED_OFF and OVER,
 * rank 0 uses BROKEN, and all ranks use the others.  The rank's stream sets the first five words to
 * a call's number.  The rank's host sets ENQUEUES to the number of the last call that the host
 * enqueues. */
enum { READY, OVER, PASSED, WORKED, BEGUN, ENQUEUES, CALLED_OFF, BROKEN, WORDS };
/* Flags for graphs, 1 or 0.  Each rank has these flags for each leader. */
enum { GRAPH_READY, GRAPH_OVER, GRAPH_FLAGS };

/* Offset of a word that calls do not use. */
enum { UNUSED = sizeof(uint32_t) * (WORDS + GRAPH_FLAGS * MOST_RANKS) };

static _Atomic uint32_t *handover_word_of(const ct_group *group, int rank, int which)
{
    const struct handover *h = &fused_of(group)->handover;

    return (_Atomic uint32_t *)(void *)(h->parts + (size_t)rank * h->memory.bytes) + which;
}

static _Atomic uint32_t *graph_flag(const ct_group *group, int rank, int leader, int which)
{
    return handover_word_of(group, rank, WORDS + leader * GRAPH_FLAGS + which);
}

/* Returns the word of a leader that is set behind the leader's kernel.  A single leader uses PASSED
 * in place of WORKED, since its stream sets PASSED directly behind its kernel. */
static _Atomic uint32_t *worked_of(const ct_group *group, int leader)
{
    const struct leaders *l = device_leaders(group);

    return handover_word_of(group, l->rank[leader], l->count == 1 ? PASSED : WORKED);
}

/* Returns 1 if number a is before b.  The numbers may wrap. */
static int is_before(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) < 0;
}

static int is_broken(const ct_group *group)
{
    return atomic_load(handover_word_of(group, 0, BROKEN)) != 0;
}

const _Atomic uint32_t *handover_called_off(const ct_group *group)
{
    return fused_of(group)->handover.parts && group->size > 1 && device_leaders(group)->mine >= 0
               ? handover_word_of(group, group->rank, CALLED_OFF)
               : NULL;
}

static void call_off(const ct_group *group)
{
    const struct leaders *l = device_leaders(group);

    for (int i = 0; i < l->count; i++)
        atomic_store(handover_word_of(group, l->rank[i], CALLED_OFF), 1);
}

/* ---- What is enqueued ------------------------------------------------------------------- */

struct list {
    struct flag_op op[3 * MOST_RANKS];
    int count;
};

static void handover_set(struct list *list, _Atomic uint32_t *word, uint32_t value)
{
    list->op[list->count++] = (struct flag_op){ word, value, 0 };
}

static void handover_wait_for(struct list *list, _Atomic uint32_t *word, uint32_t value)
{
    list->op[list->count++] = (struct flag_op){ word, value, 1 };
}

/* Lists a wait for the flag if value is 1, or a reset of the flag if value is 0. */
static void wait_or_reset(struct list *list, _Atomic uint32_t *flag, int value)
{
    list->op[list->count++] = (struct flag_op){ flag, (uint32_t)value, value };
}

static ct_status enqueue_list(const struct call *c, const struct list *list)
{
    const ct_status status =
        list->count == 0 ? CT_OK
                         : c->place.space->flag_ops(c->place.device, c->group->on_device.stream,
                                                    list->op, list->count);

    return status == CT_ERR_UNSUPPORTED ? CT_ERR_CUDA : status; /* too late for another path */
}

/* Lists the operations that a leader enqueues before its work.  The leader sets READY before it
 * waits, since another leader may wait for this READY. */
static void list_begin(struct list *list, const ct_group *g, const struct leaders *l,
                       uint32_t number)
{
    if (l->count > 1)
        handover_set(list, handover_word_of(g, g->rank, READY), number);
    for (int i = 0; i < g->size; i++)
        if (i != g->rank)
            handover_wait_for(list, handover_word_of(g, i, READY), number);
    handover_set(list, handover_word_of(g, g->rank, BEGUN), number);
}

/* Lists the operations that a leader enqueues behind its work, or all operations of a rank that is
 * not a leader. */
static void list_end(struct list *list, const ct_group *g, const struct leaders *l, uint32_t number)
{
    if (l->mine < 0)
        handover_set(list, handover_word_of(g, g->rank, READY), number);
    if (l->mine >= 0 && l->count > 1)
        handover_set(list, handover_word_of(g, g->rank, WORKED), number);
    if (l->mine >= 0 && g->size > 1)
        handover_set(list, handover_word_of(g, g->rank, OVER), number);
    for (int i = 0; i < l->count; i++)
        if (i != l->mine)
            handover_wait_for(list, handover_word_of(g, l->rank[i], OVER), number);
    handover_set(list, handover_word_of(g, g->rank, PASSED), number);
}

/* Lists the operations that a rank enqueues before a leader's work for a call in a graph.  The
 * stream resets the flags for which it waited. */
static void list_graph_begin(struct list *list, const ct_group *g, const struct leaders *l)
{
    for (int i = 0; i < l->count; i++)
        if (i != l->mine)
            handover_set(list, graph_flag(g, g->rank, i, GRAPH_READY), 1);
    for (int value = 1; value >= 0; value--)
        for (int i = 0; i < g->size && l->mine >= 0; i++)
            if (i != g->rank)
                wait_or_reset(list, graph_flag(g, i, l->mine, GRAPH_READY), value);
}

static void list_graph_end(struct list *list, const ct_group *g, const struct leaders *l)
{
    for (int i = 0; i < g->size && l->mine >= 0; i++)
        if (i != g->rank)
            handover_set(list, graph_flag(g, i, l->mine, GRAPH_OVER), 1);
    for (int value = 1; value >= 0; value--)
        for (int i = 0; i < l->count; i++)
            if (i != l->mine)
                wait_or_reset(list, graph_flag(g, g->rank, i, GRAPH_OVER), value);
}

/* ---- A call ------------------------------------------------------------------------------- */

/* Keeps a group's calls in order.  After ct_set_stream() with another stream, the first call in the
 * new stream would overtake calls in the old stream, so the first call waits for them.  In a graph
 * the program orders its streams. */
ct_status handover_turn(const struct call *c)
{
    struct handover *h = &fused_of(c->group)->handover;
    void *const stream = c->group->on_device.stream;
    ct_status status = CT_OK;

    if (c->capture != NOT_CAPTURED)
        return CT_OK;
    if (handover_is_in_another(c->group, stream))
        status = call_await_streams(c);
    if (status == CT_OK)
        h->stream = stream;
    return status;
}

int handover_is_in_another(const ct_group *group, const void *stream)
{
    const struct fused_group *f = fused_of(group);

    return f && f->handover.stream && f->handover.stream != stream;
}

/* A call that this rank's stream has not passed yet. */
struct watched {
    struct task task; /* first, so that a pointer to the task also points to the watched call */
    struct call call; /* its buffers and arrays may have been freed */
    uint32_t number;
};

static void abandon_watch(struct task *task)
{
    free(task);
}

/* Increments the call number, unless the group is broken.  A host first sets ENQUEUES, then checks
 * whether the group is broken.  A watch thread first breaks the group, then reads the hosts'
 * ENQUEUES.  So at least one of the host and the watch thread sees the other. */
static ct_status take_number(ct_group *g)
{
    struct handover *h = &fused_of(g)->handover;

    atomic_store(handover_word_of(g, g->rank, ENQUEUES), ++h->number);
    group_look_for_failure(g);
    if (!is_broken(g) && atomic_load(&g->failure.status) == CT_OK)
        return CT_OK;
    atomic_store(handover_word_of(g, g->rank, ENQUEUES), --h->number);
    return ct_fail(CT_ERR_ABORTED, "the group is broken");
}

/* Returns the cause of a failure.  If another rank has reported a failure, the report may be about
 * a later call.  Then this function does not require that the rank is still in this call. */
static ct_status cause_of(const struct call *c, ct_status status)
{
    const int is_told = atomic_load(&c->group->failure.reported);

    return group_cause(c->group, status, is_told ? 0 : c->signature.seq);
}

/* Returns the status with which another thread, of this rank or of another rank, has broken the
 * group. */
static ct_status why_broken(struct call *c, ct_status status)
{
    struct watch others = { .call = c };

    status = watch_for_cause(&others, status);
    watch_end(&others);
    return cause_of(c, status);
}

static void give_number_back(const ct_group *g)
{
    atomic_store(handover_word_of(g, g->rank, ENQUEUES), --fused_of(g)->handover.number);
}

/* Lets this leader use the ranks' buffers in its stream until have_worked(). */
static ct_status handover_touch(const ct_group *group)
{
    return device_leaders(group)->mine >= 0 && group->shm ? shm_group_touch_in_stream(group->shm)
                                                          : CT_OK;
}

/* Records that this leader's device has finished `calls` calls, or all calls if INT_MAX. */
static void have_worked(const ct_group *group, int calls)
{
    if (device_leaders(group)->mine >= 0 && group->shm)
        shm_group_untouch_in_stream(group->shm, calls);
}

static ct_status watch_task(struct task *task);

/* Starts to watch the call.  This happens before the call is enqueued, since the driver may block
 * this thread during the enqueue. */
static ct_status handover_watch(const struct call *c)
{
    struct watched *w = malloc(sizeof *w);
    ct_status status;

    if (!w)
        return ct_fail(CT_ERR_NOMEM, "no memory to watch a stream");
    *w = (struct watched){ .task = { .run = watch_task, .abandon = abandon_watch },
                           .call = *c,
                           .number = fused_of(c->group)->handover.number };
    status = queue_push(&c->group->async.watches, &w->task);
    if (status != CT_OK)
        free(w);
    return status;
}

static ct_status enter_stream(struct call *c)
{
    struct handover *h = &fused_of(c->group)->handover;
    ct_status status = take_number(c->group);

    if (status != CT_OK)
        return why_broken(c, status);
    c->place.space->call_enters_stream();
    status = handover_touch(c->group);
    if (status == CT_OK) {
        status = handover_watch(c);
        if (status != CT_OK)
            have_worked(c->group, 1);
    }
    c->is_in_stream = status == CT_OK;
    h->used |= c->is_in_stream;
    if (status == CT_OK)
        return CT_OK;
    c->place.space->call_leaves_stream();
    give_number_back(c->group);
    return status;
}

ct_status handover_open(struct call *c, const struct leaders *l)
{
    struct handover *h = &fused_of(c->group)->handover;
    struct list list = { .count = 0 };
    ct_status status = CT_OK;

    h->is_open = 0;
    if (c->capture != NOT_CAPTURED) {
        c->is_in_stream = h->used = h->captured = 1;
        list_graph_begin(&list, c->group, l);
    } else {
        status = enter_stream(c);
        if (status == CT_OK && l->mine >= 0)
            list_begin(&list, c->group, l, h->number);
    }
    if (status == CT_OK)
        status = enqueue_list(c, &list);
    h->is_open = status == CT_OK && list.count > 0;
    return status;
}

/* Breaks the group.  Adds the call's name in front of ct_last_error() if it is missing.  Sets
 * BROKEN last, since a rank that sees BROKEN then looks for the cause. */
static void break_group(const struct call *c, ct_status status, const char *where)
{
    char text[96], here[160], words[512];

    snprintf(words, sizeof words, "%s", ct_last_error());
    signature_describe(&c->signature, text, sizeof text);
    if (strncmp(words, text, strlen(text)) != 0)
        ct_fail_because(ct_last_blame(), status, "%s on group %s%s: %s", text,
                        group_here(c->group, here, sizeof here), where, words);
    group_fail(c->group, status);
    atomic_store(handover_word_of(c->group, 0, BROKEN), 1);
}

/* Enqueues the end of the call.  If the call has no work in the stream, breaks the group first, so
 * that no rank takes the call for a success. */
ct_status handover_close(struct call *c, const struct leaders *l, ct_status status)
{
    const struct handover *h = &fused_of(c->group)->handover;
    const int is_watched = c->is_in_stream && c->capture == NOT_CAPTURED;
    struct list list = { .count = 0 };
    ct_status closed;
    char why[512];

    if (status != CT_OK && is_watched)
        break_group(c, status, "");
    if (!c->is_in_stream)
        return status;
    snprintf(why, sizeof why, "%s", ct_last_error());
    if (is_watched)
        list_end(&list, c->group, l, h->number);
    else
        list_graph_end(&list, c->group, l);
    closed = enqueue_list(c, &list);
    if (status == CT_OK && closed != CT_OK && is_watched)
        break_group(c, closed, "");
    if (closed != CT_OK && is_watched && !h->is_open)
        give_number_back(c->group); /* no part of the call is in the stream */
    return status == CT_OK ? closed : ct_fail(status, "%s", why);
}

/* Invalidates the capture, since a call that was captured in part must not run.  For a call that is
 * not captured the watch thread sees that the group has failed. */
void handover_fail(struct call *c)
{
    char words[1024];

    if (!c->is_in_stream || c->capture == NOT_CAPTURED)
        return;
    snprintf(words, sizeof words, "%s", ct_last_error());
    c->place.space->spoil(c->place.device, c->group->on_device.stream);
    ct_fail(CT_ERR_CUDA, "%s", words);
}

/* ---- Watching ----------------------------------------------------------------------------- */

static int has_passed(const ct_group *group, uint32_t number)
{
    return !is_before(atomic_load(handover_word_of(group, group->rank, PASSED)), number);
}

/* Fails if the group has failed.  The caller also checks this after PASSED is set, since the stream
 * of a call that was called off sets PASSED, too. */
static ct_status handover_look(const struct watched *w)
{
    const ct_group *group = w->call.group;

    if (atomic_load(&group->failure.status) != CT_OK || is_broken(group))
        return ct_fail(CT_ERR_ABORTED, "aborted while the GPU was working");
    return CT_OK;
}

/* Fails with CT_ERR_TIMEOUT and blames a rank with a stream that has not reached the call.  If all
 * streams have reached the call, blames a leader that has not finished its work. */
static ct_status name_the_late(const ct_group *group, uint32_t number)
{
    const struct leaders *l = device_leaders(group);
    int late = group->rank;
    char name[64];

    for (int i = 0; i < l->count; i++)
        if (i != l->mine
            && is_before(atomic_load(handover_word_of(group, l->rank[i], OVER)), number))
            late = l->rank[i];
    for (int i = 0; i < group->size; i++)
        if ((l->count > 1 || i != l->rank[0])
            && is_before(atomic_load(handover_word_of(group, i, READY)), number))
            late = i;
    return ct_fail_because(
        (struct blame){ group->ranks[late], BLAME_LATE }, CT_ERR_TIMEOUT,
        "the GPU of %s has not done its part of the call, or what its stream has "
        "before that",
        mesh_peer_name(group->mesh, group->ranks[late], name, sizeof name));
}

/* Waits until the stream has passed the call, and checks that the other ranks are alive, since
 * perhaps no other thread does so. */
static ct_status wait_among_others(struct watched *w, struct watch *others)
{
    const struct timespec nap = { 0, NAP_US * 1000L };
    struct call *c = &w->call;
    int64_t polled = clock_ms(), looked = polled;

    while (!has_passed(c->group, w->number)) {
        const int64_t now = clock_ms();
        ct_status status = handover_look(w);

        if (status != CT_OK)
            return status;
        if (now >= c->deadline)
            return name_the_late(c->group, w->number);
        if (now - polled >= POLL_MS) {
            polled = now;
            group_poll(c->group);
        }
        if (now - looked >= OTHERS_MS) {
            looked = now;
            status = watch_check(others);
            if (status != CT_OK)
                return status;
        }
        nanosleep(&nap, NULL);
    }
    return handover_look(w);
}

/* Raises the word to `number`.  Returns 1 if the word was lower. */
static int raise_word(_Atomic uint32_t *word, uint32_t number)
{
    uint32_t is = atomic_load(word);

    while (is_before(is, number))
        if (atomic_compare_exchange_weak(word, &is, number))
            return 1;
    return 0;
}

/* Returns 1 if a kernel of that leader may be running.  Sets *worked to the number of the leader's
 * last call that is done.  Reads BEGUN first: a kernel that begins later sees that its work is
 * called off. */
static int is_running(const ct_group *group, int leader, uint32_t *worked)
{
    const struct leaders *l = device_leaders(group);
    const uint32_t begun = atomic_load(handover_word_of(group, l->rank[leader], BEGUN));

    *worked = atomic_load(worked_of(group, leader));
    return is_before(*worked, begun)
           && (leader == l->mine || !shm_group_is_gone(group->shm, l->rank[leader]));
}

/* Returns the last call up to `last` for which neither its kernel nor the kernel of an earlier call
 * runs or will run. */
static uint32_t last_free(const ct_group *group, uint32_t last)
{
    const struct leaders *l = device_leaders(group);
    uint32_t worked;

    for (int i = 0; i < l->count; i++)
        if (is_running(group, i, &worked) && is_before(worked, last))
            last = worked;
    return last;
}

/* Raises READY and OVER to `last`.  Raises OVER less far if a kernel may be running, unless is_late
 * is 1. */
static void raise_words(const ct_group *group, uint32_t last, int is_late)
{
    const struct leaders *l = device_leaders(group);
    uint32_t worked;

    for (int i = 0; i < group->size && l->mine >= 0; i++)
        if (i != group->rank)
            raise_word(handover_word_of(group, i, READY), last);
    if (!is_late)
        last = last_free(group, last);
    for (int i = 0; i < l->count; i++)
        if (i != l->mine)
            raise_word(handover_word_of(group, l->rank[i], OVER), last);
    if (l->mine >= 0 && !is_running(group, l->mine, &worked))
        have_worked(group, INT_MAX);
}

static void begin_raising(const ct_group *group);

/* Records that a stream does not advance.  The stream may advance later.  By then another stream
 * may have set a word, for which this stream waits, to the number of an earlier call. */
static void stand_still(const ct_group *group, struct handover *h)
{
    h->calls_left++;
    if (!h->stands_still)
        begin_raising(group);
    h->stands_still = 1;
}

/* Raises the words until the stream has passed its calls.  Raises them repeatedly, since a stream
 * may set a word to the number of an earlier call.  Sleeps before it reads BEGUN, so that the GPU
 * sees the call-off first; CUDA guarantees no order between the two.  Returns 0 if the stream does
 * not advance. */
static int handover_release(const struct watched *w)
{
    const struct timespec nap = { 0, RELEASES_US * 1000L };
    struct handover *h = &fused_of(w->call.group)->handover;
    const int64_t late = deadline_after(h->stands_still ? 0 : SHM_GROUP_DEVICE_SETTLING_MS);
    const int64_t end = late + (h->stands_still ? 0 : GOING_ON_MS);
    const ct_group *group = w->call.group;
    uint32_t last;

    call_off(group);
    do {
        nanosleep(&nap, NULL);
        last = atomic_load(handover_word_of(group, group->rank, ENQUEUES));
        raise_words(group, last, clock_ms() >= late);
    } while (!has_passed(group, last) && clock_ms() < end);
    if (!has_passed(group, last)) {
        stand_still(group, h);
        return 0;
    }
    have_worked(group, INT_MAX);
    return 1;
}

static ct_status fail(struct watched *w, ct_status status)
{
    struct call *c = &w->call;

    status = cause_of(c, status);
    break_group(c, status, ", in its stream");
    log_line(LOG_WARN, "%s", ct_last_error());
    return status;
}

/* Watches one call.  The call's timeout begins when the earlier calls in the stream are over. */
static ct_status watch_task(struct task *task)
{
    struct watched *w = (struct watched *)task;
    struct watch others = { .call = &w->call };
    ct_status status;

    w->call.deadline = deadline_after(w->call.limit.ms);
    status = wait_among_others(w, &others);
    if (status == CT_ERR_ABORTED) /* the thread or rank that broke the group has the reason */
        status = watch_for_cause(&others, status);
    watch_end(&others);
    if (status == CT_OK)
        have_worked(w->call.group, 1);
    else
        status = fail(w, status == CT_ERR_UNSUPPORTED ? CT_ERR_PEER : status);
    if (status == CT_OK || handover_release(w))
        w->call.place.space->call_leaves_stream();
    return status;
}

/* ---- Begin ------------------------------------------------------------------------ */

/* Returns CAN if this rank can hand calls over, else CANT or NOT_NOW.  NOT_NOW means that no memory
 * can be pinned now, for example during the capture of a stream. */
static int handover_can_here(struct call *c, struct handover *h)
{
    const struct space *space = c->place.space;
    char *const parts = h->memory.data - (size_t)c->group->rank * h->memory.bytes;
    ct_status status;

    if (!h->memory.shared && c->group->size > 1)
        return CANT;
    if (h->parts)
        return CAN;
    if (c->capture != NOT_CAPTURED)
        return NOT_NOW;
    memset(h->memory.data, 0, h->memory.bytes);
    status = space->register_host(c->place.device, parts, (size_t)c->group->size * h->memory.bytes);
    if (status != CT_OK) /* CT_ERR_UNSUPPORTED if a stream is waiting */
        return status == CT_ERR_UNSUPPORTED ? NOT_NOW : CANT;
    h->parts = parts;
    h->pinned = c->place;
    return space->try_flag(c->place.device, (void *)(h->memory.data + UNUSED)) == CT_OK ? CAN
                                                                                        : CANT;
}

/* Sets up hand-over.  A group of one rank needs no flags in a graph, and no memory of other ranks.
 */
ct_status handover_begin(struct call *c, struct handover *h, int always)
{
    const int alone = c->group->size == 1;
    int32_t could[MOST_RANKS], mine;
    int cant = 0, not_now = 0;
    ct_status status;

    h->tried = 1;
    h->on = alone;
    if ((!c->group->shm && !alone) || c->group->size > MOST_RANKS)
        return CT_OK;
    if (!h->memory.data) {
        status = host_memory_make(c, &h->memory, UNUSED + sizeof(uint32_t), !alone);
        if (status != CT_OK)
            return status;
    }
    mine = handover_can_here(c, h);
    status = alone ? CT_OK : device_gather(c, &mine, sizeof mine, could);
    if (status != CT_OK)
        return status;
    for (int i = 0; i < c->group->size; i++) {
        const int32_t can = alone ? mine : could[i];

        cant |= can == CANT;
        not_now |= can == NOT_NOW;
    }
    h->on |= !cant && !not_now;
    h->always = (always || alone) && !cant && !not_now;
    h->tried = cant || !not_now;
    if (always && cant && c->group->rank == 0)
        log_line(
            LOG_INFO,
            "group %s: the hosts hand calls over: not all ranks' streams can wait for flags in "
            "shared memory",
            c->group->name);
    return CT_OK;
}

/* ---- The end ------------------------------------------------------------------------ */

/* The flags that ranks' streams wait for, now or later. */
struct flags {
    int count;
    struct flag_op flag[];
};

static void add_flag(struct flags *flags, _Atomic uint32_t *word, uint32_t value)
{
    flags->flag[flags->count++] = (struct flag_op){ word, value, 0 };
}

static struct flags *flags_of(const ct_group *group)
{
    const struct leaders *l = device_leaders(group);
    const size_t most = (size_t)(l->count + 1) * (size_t)group->size * GRAPH_FLAGS;
    /* + 1, since the driver may have enqueued a part of a list that it refused */
    const uint32_t last = atomic_load(handover_word_of(group, group->rank, ENQUEUES)) + 1;
    struct flags *flags = malloc(sizeof *flags + most * sizeof *flags->flag);

    if (!flags)
        return NULL;
    flags->count = 0;
    for (int i = 0; i < l->count; i++)
        for (int rank = 0; rank < group->size; rank++)
            for (int which = 0; which < GRAPH_FLAGS; which++)
                if (rank != l->rank[i])
                    add_flag(flags, graph_flag(group, rank, i, which), 1);
    for (int rank = 0; rank < group->size && l->mine >= 0; rank++)
        if (rank != group->rank)
            add_flag(flags, handover_word_of(group, rank, READY), last);
    for (int i = 0; i < l->count; i++)
        if (i != l->mine)
            add_flag(flags, handover_word_of(group, l->rank[i], OVER), last);
    return flags;
}

/* Raises all flags.  Returns how many flags were lower. */
static int raise_flags(const struct flags *flags)
{
    int taken = 0;

    for (int i = 0; i < flags->count; i++)
        taken += raise_word(flags->flag[i].flag, flags->flag[i].value);
    return taken;
}

static void *raise_for_ever(void *arg)
{
    const struct flags *flags = arg;

    for (long ms = SHORTEST_NAP_MS;;) {
        const struct timespec nap = { 0, ms * 1000000L };

        ms = raise_flags(flags) > 0     ? SHORTEST_NAP_MS
             : 2 * ms <= LONGEST_NAP_MS ? 2 * ms
                                        : LONGEST_NAP_MS;
        nanosleep(&nap, NULL);
    }
    return NULL;
}

static void begin_raising(const ct_group *group)
{
    struct flags *flags;
    int error;

    if (group->size == 1) /* the stream does not wait for another stream */
        return;
    flags = flags_of(group);
    error = flags ? thread_start(NULL, raise_for_ever, flags) : ENOMEM;
    if (error == 0)
        return;
    log_line(LOG_WARN, "group %s: a stream or the launch of a graph may block: %s", group->name,
             strerror(error));
    free(flags);
}

int handover_stays(ct_group *group, struct handover *h)
{
    const int may_be_launched = h->captured && atomic_load(&group->failure.status) != CT_OK;

    if (!h->stands_still && !may_be_launched)
        return 0;
    host_memory_leave(group, &h->memory);
    if (h->stands_still
        && has_passed(group, atomic_load(handover_word_of(group, group->rank, ENQUEUES))))
        for (; h->calls_left > 0; h->calls_left--)
            h->pinned.space->call_leaves_stream();
    if (h->calls_left > 0)
        log_line(LOG_WARN,
                 "group %s: a stream is still blocked before a call of the group; the process "
                 "keeps the memory of that call",
                 group->name);
    if (may_be_launched && h->on && group->size > 1) {
        call_off(group);
        if (!h->stands_still)
            begin_raising(group);
    }
    return 1;
}

/* Unpins the flags.  Returns CT_ERR_UNSUPPORTED if a stream waits, perhaps for a call that this
 * rank has not made yet. */
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

/* Returns 1 if all streams of living ranks have passed all their calls, so that no stream waits for
 * a word any more. */
static int all_have_passed(const ct_group *group)
{
    for (int i = 0; i < group->size; i++)
        if (is_before(atomic_load(handover_word_of(group, i, PASSED)),
                      atomic_load(handover_word_of(group, i, ENQUEUES)))
            && !(group->shm && shm_group_is_gone(group->shm, i)))
            return 0;
    return 1;
}

static int await_others(const ct_group *group)
{
    const struct timespec nap = { 0, NAP_US * 1000L };
    const int64_t deadline = deadline_after(PASSING_MS);

    while (!all_have_passed(group) && clock_ms() < deadline)
        nanosleep(&nap, NULL);
    return all_have_passed(group);
}

/* Frees the words.  If another rank's stream may still wait for the words, or if they can't be
 * unpinned now, they stay allocated until the process ends.  They use a page for each rank. */
void handover_end(ct_group *group, struct handover *h)
{
    const int is_sound = !h->always || atomic_load(&group->failure.status) == CT_OK;
    const int all = !h->parts || (is_sound && await_others(group));

    /* After a call in a graph another rank's GPU may still read these pages, so they stay mapped.
     */
    if (unpin(h) == CT_ERR_UNSUPPORTED || h->captured || !all) {
        host_memory_leave(group, &h->memory);
        return;
    }
    host_memory_drop(group, &h->memory, 1);
    *h = (struct handover){ .on = 0 };
}
