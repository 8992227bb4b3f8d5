/* SPDX-License-Identifier: Apache-2.0 */
/* concurrent.c - see concurrent.h.
 *
 * All streams are GPU 0's.  They wait for one event, then copy their tensors one after the other
 * with an event behind each: so the events' times are on one clock, the GPU's. */
#include "examples/topology/concurrent.h"

#include <string.h>

/* What one stream works with. */
struct stream {
    device_stream stream;
    device_event done[TENSORS];
    device_pointer to[TENSORS];
};

struct run {
    const struct machine *machine;
    struct pattern pattern; /* window k: tensor k */
    device_pointer from[TENSORS];
    device_event start, begin[STREAMS]; /* begin: a stream's first copy may begin */
    struct stream stream[STREAMS];
    struct concurrent *result;
};

static void open_run(struct run *run)
{
    const struct machine *m = run->machine;

    pattern_make(&run->pattern, run->result->bytes, TENSORS);
    run->start = event_on(m, 0);
    for (int k = 0; k < TENSORS; k++) {
        run->from[k] = alloc_on(m, 0, run->result->bytes);
        put_window(m, &run->pattern, k, run->from[k]);
    }
    for (int s = 0; s < STREAMS; s++) {
        run->stream[s].stream = stream_on(m, 0);
        run->begin[s] = event_on(m, 0);
        for (int k = 0; k < TENSORS; k++) {
            run->stream[s].done[k] = event_on(m, 0);
            run->stream[s].to[k] = alloc_on(m, run->result->lane[s].to, run->result->bytes);
        }
    }
}

static void close_run(struct run *run)
{
    const struct machine *m = run->machine;

    for (int s = 0; s < STREAMS; s++) {
        use_gpu(m, run->result->lane[s].to);
        for (int k = 0; k < TENSORS; k++)
            must(m, m->driver.release(run->stream[s].to[k]), "to free memory");
        use_gpu(m, 0);
        for (int k = 0; k < TENSORS; k++)
            must(m, m->driver.event_destroy(run->stream[s].done[k]), "to end an event");
        must(m, m->driver.event_destroy(run->begin[s]), "to end an event");
        must(m, m->driver.stream_destroy(run->stream[s].stream), "to end a stream");
    }
    must(m, m->driver.event_destroy(run->start), "to end an event");
    for (int k = 0; k < TENSORS; k++)
        must(m, m->driver.release(run->from[k]), "to free memory");
    pattern_free(&run->pattern);
}

static void enqueue(const struct run *run, int s)
{
    const struct machine *m = run->machine;
    const struct stream *stream = &run->stream[s];
    const int to = run->result->lane[s].to;

    must(m, m->driver.stream_wait(stream->stream, run->start, 0), "an event");
    must(m, m->driver.event_record(run->begin[s], stream->stream), "an event");
    for (int k = 0; k < TENSORS; k++) {
        must(m,
             m->driver.copy_peer(stream->to[k], m->gpu[to].context, run->from[k], m->gpu[0].context,
                                 run->result->bytes, stream->stream),
             "a copy between GPUs");
        must(m, m->driver.event_record(stream->done[k], stream->stream), "an event");
    }
}

static double us_between(const struct run *run, device_event from, device_event to)
{
    float ms;

    must(run->machine, run->machine->driver.event_ms(&ms, from, to), "the time between two events");
    return (double)ms * 1e3;
}

static double rate(const struct run *run, int s)
{
    const struct stream *stream = &run->stream[s];

    return (double)TENSORS * (double)run->result->bytes
           / us_between(run, run->begin[s], stream->done[TENSORS - 1]) / 1e3;
}

/* Streams from `first` on; what they receive is spoilt before. */
static void go(const struct run *run, int first, int count)
{
    const struct machine *m = run->machine;

    for (int s = first; s < first + count; s++)
        for (int k = 0; k < TENSORS; k++) {
            use_gpu(m, run->result->lane[s].to);
            spoil(m, &run->pattern, run->stream[s].to[k], run->result->bytes);
        }
    use_gpu(m, 0);
    must(m, m->driver.event_record(run->start, run->stream[first].stream), "an event");
    for (int s = first; s < first + count; s++)
        enqueue(run, s);
    for (int s = first; s < first + count; s++)
        finish_copies(m, run->stream[s].stream, 0, run->result->lane[s].to);
}

static void note(const struct run *run, int s)
{
    struct lane *lane = &run->result->lane[s];
    device_event before = run->begin[s];

    lane->at_once = rate(run, s);
    for (int k = 0; k < TENSORS; k++) {
        lane->slice[k].begin_us = us_between(run, run->start, before);
        lane->slice[k].end_us = us_between(run, run->start, run->stream[s].done[k]);
        before = run->stream[s].done[k];
    }
}

static void look_at(const struct run *run, int s)
{
    struct lane *lane = &run->result->lane[s];

    use_gpu(run->machine, lane->to);
    for (int k = 0; k < TENSORS; k++)
        lane->wrong +=
            !holds_window(run->machine, &run->pattern, k, run->stream[s].to[k], run->result->bytes);
    use_gpu(run->machine, 0);
}

void run_concurrent(const struct machine *machine, size_t floats, struct concurrent *concurrent)
{
    struct run run = { .machine = machine, .result = concurrent };
    const int others = machine->count - 1;

    *concurrent = (struct concurrent){ .bytes = floats * sizeof(float) };
    for (int s = 0; s < STREAMS; s++)
        concurrent->lane[s].to = others ? 1 + s % others : 0;
    open_run(&run);
    for (int to = 1; to <= others && to <= STREAMS; to++)
        peer_access(machine, 0, to, 1);
    for (int s = 0; s < STREAMS; s++) {
        go(&run, s, 1); /* once for nothing: what is done at the first copy only */
        go(&run, s, 1);
        concurrent->lane[s].alone = rate(&run, s);
    }
    go(&run, 0, STREAMS);
    for (int s = 0; s < STREAMS; s++)
        note(&run, s);
    for (int s = 0; s < STREAMS; s++)
        look_at(&run, s);
    for (int to = 1; to <= others && to <= STREAMS; to++)
        peer_access(machine, 0, to, 0);
    close_run(&run);
}

/* ---- Why --------------------------------------------------------------------------------- */

/* The way that the bytes take; it is known before anything is measured. */
static void explain_way(const struct machine *machine, int to)
{
    const struct between *between = &machine->links.between[0][to];
    char words[96];

    way_words(between, words);
    if (!machine->peer[0][to].access)
        printf("  GPU %d: behind %s; no peer access,\n"
               "    so each byte goes to the host's memory and from there to the GPU: over PCIe "
               "twice.\n",
               to, words);
    else if (between->way == WAY_NVLINK)
        printf("  GPU %d: direct, by %s, past PCIe and the processor.\n", to, words);
    else
        printf("  GPU %d: direct, by PCIe, through %s.\n", to, words);
}

static int ways_are_alike(const struct machine *machine, const struct concurrent *c)
{
    const struct between *first = &machine->links.between[0][c->lane[0].to];
    const int access = machine->peer[0][c->lane[0].to].access;
    int alike = 1;

    for (int s = 1; s < STREAMS; s++) {
        const struct between *other = &machine->links.between[0][c->lane[s].to];

        alike &= other->way == first->way && other->links == first->links
                 && machine->peer[0][c->lane[s].to].access == access;
    }
    return alike;
}

static void explain_rates(const struct machine *machine, const struct concurrent *c)
{
    double alone = 0, at_once = 0, best = 0, worst = c->lane[0].alone;

    for (int s = 0; s < STREAMS; s++) {
        alone += c->lane[s].alone;
        at_once += c->lane[s].at_once;
        best = c->lane[s].alone > best ? c->lane[s].alone : best;
        worst = c->lane[s].alone < worst ? c->lane[s].alone : worst;
    }
    if (worst > 0.7 * best)
        printf("  One by one they are alike (%.3g to %.3g GB/s).\n", worst, best);
    else if (!ways_are_alike(machine, c))
        printf("  One by one they differ %.1f times, as these ways do.\n", best / worst);
    else
        printf("  One by one they differ %.1f times though the ways are alike: compare the PCIe\n"
               "  links' speed and width, and look for other programs on these GPUs.\n",
               best / worst);
    if (at_once < 0.8 * alone)
        printf(
            "  At once they get %.3g GB/s, not the %.3g of all one by one: they share what leads\n"
            "  out of GPU 0 (its PCIe link or NVLinks, its copy engines, its memory).\n",
            at_once, alone);
    else
        printf(
            "  At once they keep their rates (%.3g of %.3g GB/s in all): nothing that they share\n"
            "  is full.\n",
            at_once, alone);
}

void explain_concurrent(const struct machine *machine, const struct concurrent *c)
{
    const int others = machine->count - 1;

    printf("\nThree copies at once from GPU 0, on three streams, %d tensors of %zu floats each:\n"
           "  stream    to      alone    at once, GB/s\n",
           TENSORS, c->bytes / sizeof(float));
    for (int s = 0; s < STREAMS; s++)
        printf("%8d%6d%11.4g%11.4g%s\n", s, c->lane[s].to, c->lane[s].alone, c->lane[s].at_once,
               c->lane[s].wrong ? "  WRONG" : "");
    if (others > 0 && others < STREAMS)
        printf("  There %s only %d other%s, so streams share %s.\n", others == 1 ? "is" : "are",
               others, others == 1 ? "" : "s", others == 1 ? "it" : "them");
    printf("Why:\n");
    if (others == 0)
        printf("  GPU 0 copies to itself: all three read and write the one memory.\n");
    for (int to = 1; to <= others && to <= STREAMS; to++)
        explain_way(machine, to);
    explain_rates(machine, c);
}

/* ---- The trace ----------------------------------------------------------------------------- */

static void put_names(FILE *file, const struct machine *machine, const struct concurrent *c)
{
    fprintf(file, "{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": 0, \"tid\": 0, \"args\": "
                  "{\"name\": \"copies from GPU 0\"}}");
    for (int s = 0; s < STREAMS; s++) {
        char words[96];

        way_words(&machine->links.between[0][c->lane[s].to], words);
        fprintf(file,
                ",\n{\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": 0, \"tid\": %d, \"args\": "
                "{\"name\": \"stream %d to GPU %d (%s)\"}}",
                s, s, c->lane[s].to, words);
    }
}

static void put_slice(FILE *file, const struct concurrent *c, int s, int k)
{
    const struct slice *slice = &c->lane[s].slice[k];
    const double us = slice->end_us - slice->begin_us;

    fprintf(
        file,
        ",\n{\"ph\": \"X\", \"cat\": \"copy\", \"name\": \"tensor %d\", \"pid\": 0, \"tid\": %d, "
        "\"ts\": %.3f, \"dur\": %.3f, \"args\": {\"to\": %d, \"bytes\": %zu, \"GB/s\": %.3f}}",
        k, s, slice->begin_us, us, c->lane[s].to, c->bytes,
        us > 0 ? (double)c->bytes / us / 1e3 : 0);
}

int write_trace(const char *path, const struct machine *machine, const struct concurrent *c)
{
    FILE *file = fopen(path, "we");
    int failed;

    if (!file)
        return -1;
    fprintf(file, "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n");
    put_names(file, machine, c);
    for (int s = 0; s < STREAMS; s++)
        for (int k = 0; k < TENSORS; k++)
            put_slice(file, c, s, k);
    fprintf(file, "\n]}\n");
    failed = ferror(file);
    return fclose(file) != 0 || failed ? -1 : 0;
}
