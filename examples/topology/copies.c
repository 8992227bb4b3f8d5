/* SPDX-License-Identifier: Apache-2.0 */
/* copies.c - see copies.h. */
#include "examples/topology/copies.h"

#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PATIENCE_S = 60, WORD = 8 };

/* ---- What is sent ------------------------------------------------------------------ */

void pattern_make(struct pattern *pattern, size_t size, int windows)
{
    const size_t words = size / WORD + 2 + (size_t)windows;
    uint64_t state = 0x9e3779b97f4a7c15u, *word;

    pattern->size = size;
    pattern->bytes = malloc(words * WORD);
    pattern->seen = malloc(size);
    if (!pattern->bytes || !pattern->seen) {
        fprintf(stderr, "topology: no memory for %zu bytes\n", 2 * size);
        exit(1);
    }
    word = (uint64_t *)(void *)pattern->bytes;
    for (size_t i = 0; i < words; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        word[i] = state;
    }
}

void pattern_free(struct pattern *pattern)
{
    free(pattern->bytes);
    free(pattern->seen);
}

const void *pattern_window(const struct pattern *pattern, int window)
{
    return pattern->bytes + (size_t)window * WORD;
}

void put_window(const struct machine *machine, const struct pattern *pattern, int window,
                device_pointer to)
{
    must(machine, machine->driver.from_host(to, pattern_window(pattern, window), pattern->size),
         "a copy to a GPU");
    must(machine, machine->driver.synchronize(), "a copy to a GPU");
}

/* From the host's ordinary memory a copy may still be under way when the call returns, in the
 * default stream, for which our streams don't wait: hence the synchronize() of both. */
void spoil(const struct machine *machine, const struct pattern *pattern, device_pointer at,
           size_t bytes)
{
    memset(pattern->seen, 0xff, bytes);
    must(machine, machine->driver.from_host(at, pattern->seen, bytes), "a copy to a GPU");
    must(machine, machine->driver.synchronize(), "a copy to a GPU");
}

int holds_window(const struct machine *machine, const struct pattern *pattern, int window,
                 device_pointer at, size_t bytes)
{
    must(machine, machine->driver.to_host(pattern->seen, at, bytes), "a copy from a GPU");
    return !memcmp(pattern->seen, pattern_window(pattern, window), bytes);
}

/* ---- On a GPU ------------------------------------------------------------------------- */

void use_gpu(const struct machine *machine, int gpu)
{
    must(machine, machine->driver.use(machine->gpu[gpu].context), "to use a GPU");
}

device_pointer alloc_on(const struct machine *machine, int gpu, size_t bytes)
{
    char what[64];
    device_pointer at;

    use_gpu(machine, gpu);
    snprintf(what, sizeof what, "%zu bytes of memory on GPU %d", bytes, gpu);
    must(machine, machine->driver.alloc(&at, bytes), what);
    return at;
}

device_stream stream_on(const struct machine *machine, int gpu)
{
    device_stream stream;

    use_gpu(machine, gpu);
    must(machine, machine->driver.stream_create(&stream, 1), "a stream"); /* beside the default */
    return stream;
}

device_event event_on(const struct machine *machine, int gpu)
{
    device_event event;

    use_gpu(machine, gpu);
    must(machine, machine->driver.event_create(&event, 0), "an event");
    return event;
}

void peer_access(const struct machine *machine, int one, int other, int on)
{
    const int pair[2] = { one, other };

    for (int i = 0; i < 2 && one != other; i++) {
        const device_context peer = machine->gpu[pair[1 - i]].context;

        if (!machine->peer[pair[i]][pair[1 - i]].access)
            continue;
        use_gpu(machine, pair[i]);
        must(machine,
             on ? machine->driver.enable_peer(peer, 0) : machine->driver.disable_peer(peer),
             "peer access");
    }
}

void finish_copies(const struct machine *machine, device_stream stream, int from, int to)
{
    const time_t begin = time(NULL);
    int result;

    while ((result = machine->driver.stream_query(stream)) == DEVICE_NOT_READY) {
        if (time(NULL) - begin > PATIENCE_S) {
            fprintf(stderr,
                    "topology: the copies from GPU %d to GPU %d don't end; the IOMMU or PCIe's "
                    "access control (ACS) may keep the GPUs apart\n",
                    from, to);
            exit(1);
        }
        sched_yield();
    }
    must(machine, result, "copies between GPUs");
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, by_size);
    return values[count / 2];
}
