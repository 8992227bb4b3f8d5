/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_remote.c - frames as they come through ssh, from a ctrun or from anything else there.  The
 * input is the stream; the job of a FRAME_START is written and read again. */
#include <event2/buffer.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/remote/frame.h"
#include "launcher/remote/start.h"
#include "tests/fuzz/input.h"

static void read_start(const struct relay_frame *frame)
{
    struct start start, again;
    size_t size;
    char *data;

    if (start_read(&start, frame->data, frame->size) < 0)
        return;
    holds(start.hosts.count > 0 && start.first + start.hosts.count <= start.nodes);
    data = start_write(&start, start.first, start.hosts.count, &size);
    holds(data != NULL);
    holds(start_read(&again, data, size) == 0);
    holds(!strcmp(start.folder, again.folder) && again.hosts.count == start.hosts.count);
    start_free(&again);
    start_free(&start);
    free(data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct evbuffer *buffer = evbuffer_new();
    struct relay_frame frame;

    holds(buffer && evbuffer_add(buffer, data, size) == 0);
    while (frame_peek(buffer, &frame) > 0) {
        holds(frame.type > 0 && frame.type < FRAME_TYPES && frame.size <= FRAME_MOST);
        if (frame.type == FRAME_START)
            read_start(&frame);
        frame_drop(buffer, &frame);
    }
    evbuffer_free(buffer);
    return 0;
}
