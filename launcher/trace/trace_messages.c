/* SPDX-License-Identifier: Apache-2.0 */
/* trace_messages.c - see trace_messages.h. */
#include "launcher/trace/trace_messages.h"

#include <string.h>

#define MOST_NODES 100000
#define MOST_ROUNDS 20000 /* each has numbers for as many nodes, below 2^31 */

static void take_about(struct trace_part *part, struct trace_file *file, const void *data)
{
    struct trace_about about;

    memcpy(&about, data, sizeof about);
    if (about.node >= 0 && about.node < MOST_NODES && about.round >= 0 && about.round < MOST_ROUNDS)
        trace_part_begin(part, file, &about);
}

static void take_events(struct trace_part *part, const char *data, size_t size)
{
    struct trace_event event;

    for (; size >= sizeof event; data += sizeof event, size -= sizeof event) {
        memcpy((void *)&event, data, sizeof event);
        trace_part_event(part, &event);
    }
}

static void take_end(struct trace_part *part, const char *data, size_t size)
{
    char missing[200] = "";

    memcpy(missing, data, size < sizeof missing ? size : sizeof missing - 1);
    trace_part_end(part, missing);
    part->file = NULL;
}

void trace_take(struct trace_part *part, struct trace_file *file, int word, const void *data,
                size_t size)
{
    struct trace_ring ring;
    uint64_t lost;

    if (word == TRACE_ABOUT && size == sizeof(struct trace_about) && !part->file)
        take_about(part, file, data);
    if (!part->file)
        return;
    if ((word == TRACE_RING || word == TRACE_OURS) && size == sizeof ring) {
        memcpy((void *)&ring, data, sizeof ring);
        trace_part_ring(part, &ring, word == TRACE_OURS);
    } else if (word == TRACE_EVENTS) {
        take_events(part, data, size);
    } else if (word == TRACE_LOST && size == sizeof lost) {
        memcpy(&lost, data, sizeof lost);
        trace_part_lost(part, lost);
    } else if (word == TRACE_END) {
        take_end(part, data, size);
    }
}
