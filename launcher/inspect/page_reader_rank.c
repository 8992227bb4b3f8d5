/* SPDX-License-Identifier: Apache-2.0 */
/* page_reader_rank.c - one worker's part of a control page, copied while it writes.
 *
 * A line is taken when its version was even and the same before and after.  One that changes
 * each time belongs to a rank that is moving.  One whose writer was stopped in the middle stays
 * odd for ever: the ring has that call, whole, since it is written first. */
#include <string.h>

#include "launcher/inspect/page_reader.h"
#include "runtime/types/call_signature.h"

#define LOOKS 20 /* at one line */

static int call_is_sound(const struct control_call *call)
{
    return call->operation < OPERATION_COUNT && call->phase <= CONTROL_FAILED
           && call->group <= CONTROL_GROUPS;
}

static struct look_call take_call(const struct control_call *call)
{
    return (struct look_call){ .seq = call->seq,
                               .count = call->count,
                               .begun_ns = call->begun_ns,
                               .operation = call->operation,
                               .dtype = call->dtype,
                               .op = call->op,
                               .root = call->root < 0 ? -1 : call->root,
                               .phase = (enum control_phase)call->phase,
                               .group = call->group };
}

/* The newest calls first; what is no call ends the list, for its writer can't be believed. */
static void take_ring(struct look_rank *rank, const struct control_rank *page)
{
    const uint64_t calls = atomic_load(&page->calls);
    const uint64_t kept = calls < CONTROL_CALLS ? calls : CONTROL_CALLS;

    rank->ring_used = 0;
    for (uint64_t back = 1; back <= kept; back++) {
        const struct control_call call = control_call_at(page, calls - back);

        if (!call_is_sound(&call))
            return;
        rank->ring[rank->ring_used++] = take_call(&call);
    }
}

/* Copies the line when nobody writes to it: 1.  0: it moved each time; -1: it can't be read, or
 * was left half written. */
static int copy_line(int fd, size_t at, struct control_group *line)
{
    const size_t version = at + offsetof(struct control_group, version);
    uint32_t before = 0, after = 0, first = 0;

    for (int i = 0; i < LOOKS; i++) {
        if (page_read_at(fd, version, &before, sizeof before) < 0
            || page_read_at(fd, at, line, sizeof *line) < 0
            || page_read_at(fd, version, &after, sizeof after) < 0)
            return -1;
        if (before == after && before % 2 == 0)
            return 1;
        if (i == 0)
            first = before;
    }
    return first == after ? -1 : 0;
}

/* Of a line that was left half written the ring has the call, but it was copied before.  -1: it
 * lies still; 0: its writer goes on after all. */
static int take_ring_again(int fd, size_t at, size_t line, struct look_rank *rank)
{
    const size_t version = line + offsetof(struct control_group, version);
    uint32_t before, after;
    struct control_rank page;

    if (page_read_at(fd, version, &before, sizeof before) < 0
        || page_read_at(fd, at, &page, sizeof page) < 0
        || page_read_at(fd, version, &after, sizeof after) < 0)
        return -1;
    take_ring(rank, &page);
    return before == after && before % 2 ? -1 : 0;
}

static void take_line(struct look_rank *rank, int index, const struct control_group *line,
                      int sound)
{
    struct look_group *group = &rank->group[index];
    const uint64_t id = atomic_load(&line->id);

    *group = (struct look_group){ .id = 0 };
    if (id == UINT64_MAX || line->rank < 0 || line->size < 1 || line->rank >= line->size
        || line->size > LOOK_RANKS || !call_is_sound(&line->now))
        return;
    group->id = id;
    group->was = id ? 0 : atomic_load(&line->was);
    page_text(group->name, sizeof group->name, line->name, sizeof line->name);
    group->rank = line->rank;
    group->size = line->size;
    group->begun = atomic_load(&line->begun);
    group->done = atomic_load(&line->done);
    group->now = take_call(&line->now);
    group->now.group = index;
    group->moving = sound == 0;
    group->tag = line->tag;
    group->caller = line->caller;
    for (int i = 0; sound < 0 && i < rank->ring_used; i++)
        if (rank->ring[i].group == index) {
            group->now = rank->ring[i];
            group->caller = 0;
            break;
        }
    if (group->now.phase == CONTROL_IN && group->now.seq > group->begun)
        group->begun = group->now.seq; /* which is written a moment later */
}

static void take_waiting(int fd, size_t at, struct look_rank *rank, const struct control_rank *page)
{
    const size_t version = at + offsetof(struct control_rank, waiting_version);
    char words[sizeof page->waiting_for];
    uint64_t since = 0;
    uint32_t before = 1, after = 0;

    for (int i = 0; i < LOOKS && (before != after || before % 2); i++)
        if (page_read_at(fd, version, &before, sizeof before) < 0
            || page_read_at(fd, at + offsetof(struct control_rank, waiting_for), words,
                            sizeof words)
                   < 0
            || page_read_at(fd, at + offsetof(struct control_rank, waiting_since_ns), &since,
                            sizeof since)
                   < 0
            || page_read_at(fd, version, &after, sizeof after) < 0)
            return;
    if (before != after || before % 2)
        return; /* half of some words would name something else */
    page_text(rank->waiting_for, sizeof rank->waiting_for, words, sizeof words);
    rank->waiting_since_ns = since;
}

int page_take_rank(int fd, const struct look_job *job, int index, struct look_rank *rank)
{
    const size_t at = control_bytes(index, 0);
    struct control_rank page;
    uint32_t state;

    if (page_read_at(fd, at, &page, sizeof page) < 0)
        return -1;
    state = atomic_load(&page.state);
    *rank = (struct look_rank){ .rank = job->own_memory ? page.rank : job->base + index,
                                .local_rank = index,
                                .worker = atomic_load(&page.worker),
                                .pid = atomic_load(&page.pid),
                                .state = state <= CONTROL_OUTSIDE ? (enum control_state)state
                                                                  : CONTROL_STARTED,
                                .since_ns = atomic_load(&page.since_ns) };
    if (rank->rank < 0 || rank->rank >= LOOK_RANKS)
        rank->rank = 0;
    rank->worker = rank->worker > 0 ? rank->worker : 0;
    rank->pid = rank->pid > 0 ? rank->pid : 0;
    take_ring(rank, &page);
    take_waiting(fd, at, rank, &page);
    for (int i = 0; i < CONTROL_GROUPS; i++) {
        const size_t where =
            at + offsetof(struct control_rank, groups) + (size_t)i * sizeof page.groups[i];
        int sound = 1;

        if (atomic_load(&page.groups[i].id))
            sound = copy_line(fd, where, &page.groups[i]);
        if (sound < 0)
            sound = take_ring_again(fd, at, where, rank);
        take_line(rank, i, &page.groups[i], sound);
    }
    return 0;
}
