/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_trace.c - what goes to the file of --trace: rings of ranks that may have died over them.
 * Whatever lies in these, the file is JSON, and `ctctl trace merge` takes it.
 *
 * The input is a row of words: a byte for which, one for where and one for how many bytes, then
 * those.  They are put over a sound ring (R; O: ctrun's), event (E) or number of lost events (L); Z
 * ends the node's part and begins another.  The file is memory with a path. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "launcher/trace/trace_merge.h"
#include "runtime/trace/trace_json.h"
#include "tests/fuzz/input.h"
#include "tests/json_check.h"

/* By which many events are before the start of their clock. */
static const struct trace_about about = {
    .node = 1,
    .nodes = 2,
    .host = "node-b",
    .clock = { .name = "node 0 (node-a)", .offset_ns = -1700, .drift = 0.1, .error_ns = 5 }
};

/* The bytes of one word, over `size` sound ones. */
static void put_over(void *sound, size_t size, size_t at, struct fuzz_input *in, size_t bytes)
{
    at = at * (size / 256 + 1) % size;
    memcpy((char *)sound + at, in->data, bytes < size - at ? bytes : size - at);
}

static void say(struct trace_part *part, struct trace_file *file, struct fuzz_input *in)
{
    struct trace_event event = { .mark = 1,
                                 .begun_ns = 1500,
                                 .ended_ns = 1600,
                                 .id = 7,
                                 .bytes = 64,
                                 .peer = 2,
                                 .thread = 11,
                                 .kind = TRACE_CALL,
                                 .operation = OPERATION_ALL_REDUCE,
                                 .op = -1 };
    struct trace_ring ring = { .rank = 3, .pid = 4310, .groups_used = 1, .next = 1 };
    const int word = (int)take(in);
    const size_t at = take(in), asked = take(in), bytes = asked < in->left ? asked : in->left;
    uint64_t lost = 0;

    strcpy(ring.groups[0].name, "world");
    strcpy(ring.algorithms[OPERATION_ALL_REDUCE][0], "ring");
    if (word == 'R' || word == 'O') {
        put_over(&ring, sizeof ring, at, in, bytes);
        trace_part_ring(part, &ring, word == 'O');
    } else if (word == 'E') {
        put_over(&event, sizeof event, at, in, bytes);
        trace_part_event(part, &event);
    } else if (word == 'L') {
        put_over(&lost, sizeof lost, at, in, bytes);
        trace_part_lost(part, lost);
    } else if (word == 'Z') {
        trace_part_end(part, "");
        trace_part_begin(part, file, &about);
    }
    in->data += bytes;
    in->left -= bytes;
}

static void is_whole(int fd)
{
    static char text[1 << 20];
    const ssize_t size = pread(fd, text, sizeof text, 0);

    holds(size > 0 && (size == sizeof text || is_json(text, (size_t)size)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char path[64];
    static int fd = -1;
    struct fuzz_input in = { data, size };
    struct trace_merge merge;
    struct trace_part part;
    struct trace_file file;

    if (fd < 0) {
        holds((fd = memfd_create("trace", MFD_CLOEXEC)) >= 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    holds(trace_file_open(&file, path, NULL) == CT_OK);
    trace_part_begin(&part, &file, &about);
    while (in.left > 0)
        say(&part, &file, &in);
    holds(trace_file_settle(&file) == CT_OK);
    is_whole(fd);
    trace_file_close(&file);
    holds(trace_merge_read(&merge, (char *[]){ path }, 1) == CT_OK);
    trace_merge_free(&merge);
    return 0;
}
