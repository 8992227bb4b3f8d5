/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_trace.c - what goes to the file of --trace: rings of ranks that may have died over them,
 * and words of other nodes.  Whatever they say, the file is JSON.
 *
 * The input is a row of words (launcher/trace/trace_messages.h): a byte for which, one for where
 * and one for how many bytes, then those.  They are put over a sound one of that word; a word of
 * another letter has those bytes alone.  The file is memory with a path. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "launcher/trace/trace_messages.h"
#include "tests/fuzz/input.h"
#include "tests/json_check.h"

static size_t sound_word(int word, void *to)
{
    const struct trace_about about = {
        .node = 1, .nodes = 2, .host = "node-b", .clock = { { 1000, 2000 }, { 5, 6 }, { 1, 1 } }
    };
    const struct trace_event event = { .mark = 1,
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

    strcpy(ring.groups[0].name, "world");
    strcpy(ring.algorithms[OPERATION_ALL_REDUCE][0], "ring");
    if (word == TRACE_ABOUT)
        return memcpy(to, &about, sizeof about), sizeof about;
    if (word == TRACE_EVENTS)
        return memcpy(to, (const void *)&event, sizeof event), sizeof event;
    if (word == TRACE_RING || word == TRACE_OURS)
        return memcpy(to, (const void *)&ring, sizeof ring), sizeof ring;
    if (word == TRACE_LOST)
        return memset(to, 0, sizeof(uint64_t)), sizeof(uint64_t);
    return 0;
}

static void say(struct trace_part *part, struct trace_file *file, struct input *in)
{
    static _Alignas(CACHE_PAIR) unsigned char text[sizeof(struct trace_ring) + 256];
    const int word = (int)take(in);
    size_t at = take(in), bytes = take(in), size = sound_word(word, text);
    unsigned char *exact;

    bytes = bytes < in->left ? bytes : in->left;
    at = size > 0 ? at * (size / 256 + 1) % size : 0;
    memcpy(text + at, in->data, bytes);
    size = size > at + bytes || at > 0 ? size : at + bytes;
    in->data += bytes;
    in->left -= bytes;
    holds((exact = malloc(size ? size : 1)) != NULL); /* so that its end is one */
    memcpy(exact, text, size);
    trace_take(part, file, word, exact, size);
    free(exact);
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
    struct input in = { data, size };
    struct trace_part part = { .file = NULL };
    struct trace_file file;

    if (fd < 0) {
        holds((fd = memfd_create("trace", MFD_CLOEXEC)) >= 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    holds(trace_file_open(&file, path, NULL) == CT_OK);
    while (in.left > 0)
        say(&part, &file, &in);
    holds(trace_file_settle(&file) == CT_OK);
    is_whole(fd);
    trace_file_close(&file);
    return 0;
}
