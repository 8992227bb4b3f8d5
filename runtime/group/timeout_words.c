/* SPDX-License-Identifier: Apache-2.0 */
/* timeout_words.c - writes the error message of a timeout: how long the call waited, which rank is
 * late, and the call in which the late rank is instead.
 *
 * A rank can read only the control pages of ranks of the same ctrun on this host.  It does not know
 * the calls of other ranks. */

#include "runtime/group/group.h"

#include <stdio.h>
#include <string.h>

#include "runtime/util/clock.h"
#include "runtime/util/process_state.h"

#define MOST_NAMED 3 /* most missing ranks that an error message lists */

void timeout_gave_up(const struct limit *limit, int64_t started, char *text, size_t size)
{
    snprintf(text, size, "timed out after %lld ms (limit %d ms, set by %s)",
             (long long)(clock_ms() - started), limit->ms, limit->by);
}

static void timeout_describe(const struct control_call *call, char *text, size_t size)
{
    const unsigned tenths = (unsigned)((clock_coarse_ns() - call->begun_ns) / 100000000);
    char name[48];

    if (call->begun_ns == 0) {
        snprintf(text, size, "has called nothing on the group yet");
        return;
    }
    snprintf(name, sizeof name, "%.18s", operation_name(call->operation));
    if (call->seq)
        snprintf(name, sizeof name, "%.18s #%llu", operation_name(call->operation),
                 (unsigned long long)call->seq);
    if (call->phase == CONTROL_IN)
        snprintf(text, size, "has been in %s for %u.%u s", name, tenths / 10, tenths % 10);
    else
        snprintf(text, size, "has called nothing on the group after %s, which it began %u.%u s ago",
                 name, tenths / 10, tenths % 10);
}

/* Returns 1 if the control page shows that the rank has not begun call `seq`, and writes the rank's
 * current or last call to `text`.  Returns 0 if the rank has begun the call, even if the rank has
 * failed or left the group since.  `id` is the group's id in the control page. */
static int timeout_is_missing(const struct control_rank *page, uint64_t id, uint64_t seq,
                              char *text, size_t size)
{
    struct control_call call;

    snprintf(text, size, "%s",
             atomic_load(&page->pid) == 0 ? "never called ct_init_process_group()"
                                          : "has left the group or never created it");
    for (int i = 0; i < CONTROL_GROUPS; i++) {
        const struct control_group *line = &page->groups[i];

        const uint64_t now = atomic_load(&line->id);

        if (now != id && (now != 0 || atomic_load(&line->was) != id))
            continue;
        if (atomic_load(&line->begun) >= seq)
            return 0;
        if (now == id && control_line_read(line, id, &call))
            timeout_describe(&call, text, size);
    }
    return 1;
}

/* Returns a member's control page, or NULL if this rank can't read the page. */
static const struct control_rank *page_of(const ct_group *group, int member)
{
    const struct control *control = &group->mesh->control;
    const int local = group->mesh->peers[group->ranks[member]].worker - control->base;

    return control->worker >= 0 && group->record.line && local >= 0 && local < control->local
               ? control_rank_at(control->head, local)
               : NULL;
}

/* Returns 1 if a member's control page shows that the member has begun call `seq`.  Returns 0 if it
 * has not, or if this rank can't read the page. */
static int has_begun(const ct_group *group, int member, uint64_t seq)
{
    const struct control_rank *page = page_of(group, member);
    char where[160];

    return page
           && !timeout_is_missing(page, atomic_load(&group->record.line->id), seq, where,
                                  sizeof where);
}

/* Returns 1 if a member's control page shows that the member has not begun call `seq`.  Returns 0
 * if it has, or if this rank can't read the page. */
static int has_not_begun(const ct_group *group, int member, uint64_t seq)
{
    const struct control_rank *page = member == group->rank ? NULL : page_of(group, member);
    char where[160];

    return page
           && timeout_is_missing(page, atomic_load(&group->record.line->id), seq, where,
                                 sizeof where);
}

/* Returns 1 if a signal, a debugger or the freezer of a control group has stopped the member.
 * Returns 0 for this rank and for members of other hosts. */
static int member_is_stopped(const ct_group *group, int member)
{
    const struct mesh *mesh = group->mesh;
    const struct control_rank *page = page_of(group, member);
    const int local = mesh->node.base ? mesh->peers[group->ranks[member]].local : -1;

    return member != group->rank
           && process_is_stopped(local >= 0 ? mesh->node.pids[local]
                                 : page     ? atomic_load(&page->pid)
                                            : 0);
}

/* Returns the first member for which `is` returns 1, or -1 if there is no such member. */
static int first_member(const ct_group *group, uint64_t seq,
                        int (*is)(const ct_group *group, int member, uint64_t seq))
{
    for (int i = 0; i < group->size; i++)
        if (is(group, i, seq))
            return i;
    return -1;
}

static int is_stopped(const ct_group *group, int member, uint64_t seq)
{
    (void)seq;
    return member_is_stopped(group, member);
}

struct blame late_rank(const ct_group *group, uint64_t seq, struct blame awaited, char *text,
                       size_t size)
{
    const int stopped = first_member(group, seq, is_stopped);
    const int known = awaited.reason == BLAME_LATE ? ct_group_rank(group, awaited.rank) : -1;
    const int is_in_call = known >= 0 && has_begun(group, known, seq);
    const int missing = known < 0 || is_in_call ? first_member(group, seq, has_not_begun) : -1;
    char name[160];

    text[0] = 0;
    if (stopped >= 0) {
        snprintf(text, size, "%s is stopped",
                 mesh_peer_name(group->mesh, group->ranks[stopped], name, sizeof name));
        return (struct blame){ group->ranks[stopped], BLAME_STOPPED };
    }
    if (known >= 0)
        snprintf(text, size, "%s %s", mesh_peer_name(group->mesh, awaited.rank, name, sizeof name),
                 is_in_call ? "is in this call, too, but got no further" : "has not joined");
    return missing >= 0 ? (struct blame){ group->ranks[missing], BLAME_LATE } : awaited;
}

int is_known_late(const ct_group *group, uint64_t seq, struct blame late)
{
    const int member = late.rank < 0 ? -1 : ct_group_rank(group, late.rank);

    return late.reason == BLAME_STOPPED || (member >= 0 && has_not_begun(group, member, seq));
}

struct blame late_peer(const ct_group *group, int member, char *text, size_t size)
{
    const struct control_rank *page = page_of(group, member);
    struct blame blame = { group->ranks[member], BLAME_LATE };
    char where[160];

    text[0] = 0;
    if (member_is_stopped(group, member)) {
        snprintf(text, size, "; rank %d is stopped", group->ranks[member]);
        blame.reason = BLAME_STOPPED;
    } else if (page
               && timeout_is_missing(page, atomic_load(&group->record.line->id), UINT64_MAX, where,
                                     sizeof where)) {
        snprintf(text, size, "; rank %d %s", group->ranks[member], where);
    }
    return blame;
}

const char *where_are_missing(const ct_group *group, uint64_t seq, char *text, size_t size)
{
    size_t used = 0;
    int missing = 0;

    text[0] = 0;
    for (int i = 0; i < group->size; i++) {
        const struct control_rank *page = i == group->rank ? NULL : page_of(group, i);
        char where[160];

        if (!page
            || !timeout_is_missing(page, atomic_load(&group->record.line->id), seq, where,
                                   sizeof where))
            continue;
        if (++missing <= MOST_NAMED && used < size)
            used +=
                (size_t)snprintf(text + used, size - used, "; rank %d %s", group->ranks[i], where);
    }
    if (missing > MOST_NAMED && used < size)
        snprintf(text + used, size - used, "; and %d more", missing - MOST_NAMED);
    return text;
}
