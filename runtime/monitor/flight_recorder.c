/* SPDX-License-Identifier: Apache-2.0 */
/* flight_recorder.c - opens and closes a group's line in the control page. */
#include "runtime/monitor/flight_recorder.h"

#include <stdio.h>

void record_open(struct record *record, struct control *control, uint64_t id, const char *name,
                 int rank, int size)
{
    *record = (struct record){ .own = control->own, .index = CONTROL_GROUPS };
    for (int i = 0; i < CONTROL_GROUPS; i++) {
        struct control_group *line = &control->own->groups[i];
        uint64_t none = 0;
        uint32_t version;

        /* The claim uses an id that no group has, so readers skip the line until it is filled. */
        if (!atomic_compare_exchange_strong(&line->id, &none, UINT64_MAX))
            continue;
        /* The version is odd if the last program died during a write.  It never goes back, since a
         * reader could then take fields of two groups for one line. */
        version = atomic_load(&line->version);
        atomic_store(&line->version, version + version % 2);
        version = control_write(&line->version);
        line->rank = rank;
        line->size = size;
        line->now = (struct control_call){ 0 };
        line->caller = 0;
        line->bytes = 0;
        atomic_store(&line->was, 0);
        atomic_store(&line->begun, 0);
        atomic_store(&line->done, 0);
        snprintf(line->name, sizeof line->name, "%s", name);
        control_written(&line->version, version);
        atomic_store(&line->id, id);
        record->line = line;
        record->index = (uint16_t)i;
        return;
    }
}

void record_close(struct record *record)
{
    struct control_group *line = record->line;

    if (line) {
        /* lets a reader report that the rank left the group */
        atomic_store(&line->was, atomic_load(&line->id));
        atomic_fetch_add(&record->own->bytes_before, line->bytes);
        atomic_store(&line->id, 0);
    }
    *record = (struct record){ .index = CONTROL_GROUPS };
}

/* Readers find the call to which the place belongs by the call's number and the time.  The time is
 * needed for messages, which have no number: a message that began after the place was noted is a
 * different call. */
void record_place(struct record *record, const char *place)
{
    struct control_group *const line = record->line;
    uint64_t begun;

    if (!line)
        return;
    begun = atomic_load(&line->begun);
    control_note_place(&record->own->places[record->index],
                       begun != atomic_load(&line->done) ? begun : 0, place);
}
