/* SPDX-License-Identifier: Apache-2.0 */
/* group_status.c - for messages: what the ranks are doing that a call waited for in vain.
 *
 * Known only of ranks under the same ctrun on this host, whose control pages this rank can read. */

#include "runtime/group/group.h"

#include <stdio.h>
#include <string.h>

#define MOST_NAMED 3

/* A line is read again if its owner wrote meanwhile (control_page.h). */
static int read_line(const struct control_group *line, uint64_t id, struct control_call *call)
{
    for (int i = 0; i < 100; i++) {
        const uint32_t before = atomic_load_explicit(&line->version, memory_order_acquire);

        memcpy(call, &line->now, sizeof *call);
        record_read_fence();
        if (before % 2 == 0 && before == atomic_load_explicit(&line->version, memory_order_relaxed))
            return atomic_load(&line->id) == id;
    }
    return 0;
}

static void describe(const struct control_call *call, char *text, size_t size)
{
    const unsigned tenths = (unsigned)((clock_coarse_ns() - call->begun_ns) / 100000000);
    char name[48];

    if (call->begun_ns == 0) {
        snprintf(text, size, "has made no call on the group yet");
        return;
    }
    snprintf(name, sizeof name, "%.18s", operation_name(call->operation));
    if (call->seq)
        snprintf(name, sizeof name, "%.18s #%llu", operation_name(call->operation),
                 (unsigned long long)call->seq);
    if (call->phase == CONTROL_IN)
        snprintf(text, size, "is in %s since %u.%u s", name, tenths / 10, tenths % 10);
    else
        snprintf(text, size, "is in no call of the group since %s, which it began %u.%u s ago",
                 name, tenths / 10, tenths % 10);
}

/* 0: it has begun the call, even if it has failed or left since. */
static int is_missing(const struct control_rank *page, uint64_t id, uint64_t seq, char *text,
                      size_t size)
{
    struct control_call call;

    snprintf(text, size, "%s",
             atomic_load(&page->pid) == 0 ? "never called ct_init_process_group()"
                                          : "has left the group, or never made it");
    for (int i = 0; i < CONTROL_GROUPS; i++) {
        const struct control_group *line = &page->groups[i];

        const uint64_t now = atomic_load(&line->id);

        if (now != id && (now != 0 || atomic_load(&line->was) != id))
            continue;
        if (atomic_load(&line->begun) >= seq)
            return 0;
        if (now == id && read_line(line, id, &call))
            describe(&call, text, size);
    }
    return 1;
}

/* NULL: its page can't be read from here. */
static const struct control_rank *page_of(const ct_group *group, int member)
{
    const struct control *control = &group->mesh->control;
    const int local = group->mesh->peers[group->ranks[member]].worker - control->base;

    return control->worker >= 0 && group->record.line && local >= 0 && local < control->local
               ? control_rank_at(control->head, local)
               : NULL;
}

int has_begun(const ct_group *group, int member, uint64_t seq)
{
    const struct control_rank *page = page_of(group, member);
    char where[160];

    return page
           && !is_missing(page, atomic_load(&group->record.line->id), seq, where, sizeof where);
}

const char *where_is(const ct_group *group, int member, char *text, size_t size)
{
    const struct control_rank *page = page_of(group, member);
    char where[160];

    text[0] = 0;
    if (page
        && is_missing(page, atomic_load(&group->record.line->id), UINT64_MAX, where, sizeof where))
        snprintf(text, size, "; rank %d %s", group->ranks[member], where);
    return text;
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
            || !is_missing(page, atomic_load(&group->record.line->id), seq, where, sizeof where))
            continue;
        if (++missing <= MOST_NAMED && used < size)
            used +=
                (size_t)snprintf(text + used, size - used, "; rank %d %s", group->ranks[i], where);
    }
    if (missing > MOST_NAMED && used < size)
        snprintf(text + used, size - used, "; and %d more", missing - MOST_NAMED);
    return text;
}
