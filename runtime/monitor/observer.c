/* SPDX-License-Identifier: Apache-2.0 */
/* observer.c - writes the calls of other libraries, such as PyTorch's gloo or NCCL, to the control
 * page, where ctrun and ctctl read them as they read libct's own calls.
 *
 * An observer is a thread that sleeps until a reader of the page asks.  Until then the calls cost
 * nothing.  Several processes of a worker may have observers, for example a program and the workers
 * of its data loader.  The first of them answers, until another one has groups: then that one
 * answers. */
#include <linux/futex.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "include/ct.h"
#include "runtime/monitor/flight_recorder.h"
#include "runtime/util/memory_file.h"

/* A group of another library, with its line on the page. */
struct observed {
    uint64_t id; /* 0 if the entry is free */
    struct record record;
    uint64_t noted; /* number of the last collective that was written to the ring */
    int is_seen;    /* 1 if the answer that is being written has the group */
};

struct ct_observer {
    struct control control;
    uint32_t seen;            /* the value of `asked` that ct_observer_wait() saw last */
    pthread_t waiter;         /* the thread in which ct_observer_wait() returned */
    uint64_t woke_ns;         /* the processor time that this thread had used then; 0 at first */
    enum control_state state; /* what this observer wrote last */
    int is_over;              /* 1 after the last answer */
    struct observed group[CONTROL_GROUPS];
};

/* ---- Questions --------------------------------------------------------------- */

ct_status ct_observer_open(int rank, ct_observer **observer)
{
    ct_observer *made;
    ct_status status = CT_OK;

    if (!observer)
        return ct_fail(CT_ERR_INVALID, "ct_observer_open: the pointer for the observer is NULL");
    *observer = NULL;
    if (!(made = calloc(1, sizeof *made)))
        return ct_fail(CT_ERR_NOMEM, "ct_observer_open: no memory for the observer");
    if (!control_map(&made->control))
        status = control_open(&made->control, rank);
    if (status != CT_OK) {
        free(made);
        return status;
    }
    inherited_claim(&made->control.own->observer);
    made->seen = atomic_load(&made->control.head->asked);
    *observer = made;
    return CT_OK;
}

static uint64_t thread_cpu_ns(void)
{
    struct timespec time = { 0, 0 };

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* Adds what the thread has used since it woke.  ctrun subtracts this from the job's work. */
static void observer_slept(ct_observer *observer)
{
    if (observer->woke_ns && pthread_equal(observer->waiter, pthread_self()))
        atomic_fetch_add(&observer->control.own->answers_ns, thread_cpu_ns() - observer->woke_ns);
    observer->woke_ns = 0;
}

ct_status ct_observer_wait(ct_observer *observer, int timeout_ms)
{
    const int64_t deadline = deadline_after(timeout_ms);
    _Atomic uint32_t *asked;

    if (!observer)
        return ct_fail(CT_ERR_INVALID, "ct_observer_wait: the observer is NULL");
    observer_slept(observer);
    asked = &observer->control.head->asked;
    while (atomic_load(asked) == observer->seen) {
        const int left = time_left_ms(deadline, INT32_MAX);
        const struct timespec limit = { left / 1000, left % 1000 * 1000000L };

        if (left == 0)
            return ct_fail(CT_ERR_TIMEOUT, "ct_observer_wait: no reader asked in %d ms",
                           timeout_ms);
        syscall(SYS_futex, asked, FUTEX_WAIT, observer->seen, &limit, NULL, 0);
    }
    observer->seen = atomic_load(asked);
    observer->waiter = pthread_self();
    observer->woke_ns = thread_cpu_ns();
    return CT_OK;
}

/* ---- Answers ----------------------------------------------------------------- */

static int operation_named(const char *name)
{
    int i = 0;

    while (i < OPERATION_OTHER && strcmp(operation_name(i), name) != 0)
        i++;
    return i;
}

static const enum control_phase phases[] = { [CT_OBSERVED_RUNS] = CONTROL_IN,
                                             [CT_OBSERVED_DONE] = CONTROL_IDLE,
                                             [CT_OBSERVED_FAILED] = CONTROL_FAILED };

static struct control_call call_of(const struct observed *group,
                                   const struct ct_observed_call *seen)
{
    const uint64_t now = clock_coarse_ns();

    return (struct control_call){
        .seq = seen->number,
        .count = seen->count,
        .begun_ns = now > seen->age_ns ? now - seen->age_ns : 0,
        .operation = (uint8_t)operation_named(seen->operation ? seen->operation : ""),
        .dtype = (uint8_t)(seen->dtype < 0 ? DTYPE_NOT_KNOWN : seen->dtype),
        .op = -1,
        .phase = (uint8_t)(seen->state <= CT_OBSERVED_FAILED ? phases[seen->state] : CONTROL_IDLE),
        .group = group->record.index,
        .root = (int16_t)seen->peer,
    };
}

/* Finds the entry of a group, or makes one.  Returns NULL if the page has no free line. */
static struct observed *observed_find(ct_observer *observer, const struct ct_observed_group *seen)
{
    struct observed *free_one = NULL;

    for (int i = 0; i < CONTROL_GROUPS; i++) {
        if (observer->group[i].id == seen->id)
            return &observer->group[i];
        if (!observer->group[i].id && !free_one)
            free_one = &observer->group[i];
    }
    if (!free_one)
        return NULL;
    record_open(&free_one->record, &observer->control, seen->id, seen->name ? seen->name : "",
                seen->rank, seen->size);
    free_one->noted = 0;
    free_one->id = free_one->record.line ? seen->id : 0;
    return free_one->record.line ? free_one : NULL;
}

/* Writes a group's line.  The line shows the oldest call in progress, since a group makes its calls
 * in their order; else it shows the last call. */
static void observed_write(struct observed *group, const struct ct_observed_group *seen)
{
    struct control_group *const line = group->record.line;
    struct control_rank *const own = group->record.own;
    const struct ct_observed_call *shown = NULL;
    uint64_t last = 0;
    uint32_t version;
    int is_open;

    for (int i = 0; i < seen->call_count; i++) {
        const struct ct_observed_call *call = &seen->calls[i];

        if (!shown || shown->state == CT_OBSERVED_DONE)
            shown = call;
        if (call->number > last)
            last = call->number;
        if (call->number > group->noted) {
            const struct control_call noted = call_of(group, call);

            control_note_call(own, atomic_fetch_add(&own->calls, 1), &noted);
        }
    }
    group->noted = last > group->noted ? last : group->noted;
    version = control_write(&line->version);
    line->caller = CONTROL_OBSERVED;
    if (!shown && line->now.phase == CONTROL_IN)
        line->now.phase = CONTROL_IDLE; /* a message that is over */
    if (!shown) {
        control_written(&line->version, version);
        return;
    }
    line->now = call_of(group, shown);
    line->tag = shown->tag;
    control_written(&line->version, version);
    is_open = shown->number && shown->state != CT_OBSERVED_DONE;
    last = is_open ? shown->number : last;
    atomic_store(&line->begun, last);
    atomic_store(&line->done, is_open ? last - 1 : last);
    control_note_place(&own->places[group->record.index], shown->number,
                       shown->place ? shown->place : "");
}

static void observed_groups(ct_observer *observer, const struct ct_observation *seen)
{
    for (int i = 0; i < CONTROL_GROUPS; i++)
        observer->group[i].is_seen = 0;
    for (int i = 0; i < seen->group_count; i++) {
        struct observed *group = observed_find(observer, &seen->groups[i]);

        if (!group)
            continue;
        group->is_seen = 1;
        observed_write(group, &seen->groups[i]);
    }
    for (int i = 0; i < CONTROL_GROUPS; i++)
        if (observer->group[i].id && !observer->group[i].is_seen) {
            record_close(&observer->group[i].record);
            observer->group[i].id = 0;
        }
}

/* libct's own default group has its own state, which the observer leaves unchanged. */
static void observed_state(ct_observer *observer, enum control_state state)
{
    if (state != observer->state
        && atomic_load(&observer->control.own->state) == (uint32_t)observer->state)
        control_set_state(&observer->control, observer->state = state);
}

/* Returns 1 if this process is the one that answers for the worker. */
static int observer_answers(ct_observer *observer, int has_groups)
{
    struct control_rank *own = observer->control.own;

    if (has_groups && control_claim(&observer->control))
        atomic_store(&own->observer, getpid());
    return inherited_claim(&own->observer) != INHERITED_BY_OTHER;
}

ct_status ct_observer_answer(ct_observer *observer, const struct ct_observation *seen)
{
    static const enum control_state states[] = { [CT_OBSERVED_NO_GROUP] = CONTROL_STARTED,
                                                 [CT_OBSERVED_INIT] = CONTROL_INIT,
                                                 [CT_OBSERVED_READY] = CONTROL_READY,
                                                 [CT_OBSERVED_LEFT] = CONTROL_LEFT };
    struct control_rank *own;

    if (!observer || !seen || seen->size != sizeof *seen || (int)seen->phase < 0
        || seen->phase > CT_OBSERVED_LEFT)
        return ct_fail(CT_ERR_INVALID,
                       "ct_observer_answer: `observer` or `seen` is NULL, or seen->size or "
                       "seen->phase is wrong");
    own = observer->control.own;
    /* an answer after the last one would hide the failed call that the last one shows */
    if (observer->is_over || !observer_answers(observer, seen->phase != CT_OBSERVED_NO_GROUP))
        return CT_OK;
    control_note_place(&own->main_place, 0, seen->place ? seen->place : "");
    atomic_store(&own->stacks_fd, seen->stacks_fd);
    observed_groups(observer, seen);
    observed_state(observer, states[seen->phase]);
    observer->is_over = seen->is_last;
    atomic_store(&own->answered, seen->is_last ? CONTROL_LAST_ANSWER : observer->seen);
    return CT_OK;
}

ct_status ct_observer_close(ct_observer *observer)
{
    if (!observer)
        return ct_fail(CT_ERR_INVALID, "ct_observer_close: the observer is NULL");
    for (int i = 0; i < CONTROL_GROUPS; i++)
        if (observer->group[i].id)
            record_close(&observer->group[i].record);
    if (atomic_load(&observer->control.own->observer) == getpid())
        atomic_store(&observer->control.own->observer, 0);
    control_close(&observer->control);
    free(observer);
    return CT_OK;
}
