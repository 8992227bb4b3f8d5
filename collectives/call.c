/* SPDX-License-Identifier: Apache-2.0 */
/* call.c - what every collective does before and after its algorithm.
 *
 *   check.c checks the arguments, once for all operations
 *   -> premul_sum scales the input and becomes sum
 *   -> number, signature, algorithm: from what all ranks agree on
 *   -> here after the queue has drained, or on the queue's thread
 *   -> a failure breaks the group and gets its first words: which call it was */
#include "collectives/call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/check.h"
#include "runtime/clock.h"
#include "runtime/log.h"
#include "runtime/premul.h"
#include "runtime/where.h"
#include "runtime/trace.h"
#include "runtime/work.h"

#define SHORT_LIMIT_MS 10000 /* where the ticks of the coarse clock would count */

struct span block_at(const struct call *c, const struct blocks *blocks, int i)
{
    const size_t count = blocks->counts ? blocks->counts[i] : blocks->count;
    size_t start = 0;

    if (blocks->list)
        return (struct span){ blocks->list[i], count * c->element };
    if (blocks->displs)
        start = blocks->displs[i];
    else if (blocks->counts)
        for (int j = 0; j < i; j++)
            start += blocks->counts[j];
    else
        start = (size_t)i * blocks->count;
    return (struct span){ blocks->base ? (char *)blocks->base + start * c->element : NULL,
                          count * c->element };
}

ct_status call_fold(const struct call *c, void *dst, const void *const *sources, size_t count)
{
    struct fold fold = c->group->order;
    const void *few[16] = { NULL };
    const void **ordered = few;

    fold.dtype = call_dtype(c);
    fold.op = call_op(c);
    if (c->group->size > 16 && !(ordered = malloc((size_t)c->group->size * sizeof *ordered)))
        return ct_fail(CT_ERR_NOMEM, "no memory to combine %d ranks", c->group->size);
    for (int i = 0; i < c->group->size; i++)
        ordered[i] = sources[c->group->fold_rank[i]];
    combine_fold(&fold, dst, ordered, count);
    if (ordered != few)
        free(ordered);
    return CT_OK;
}

/* ---- Choice -------------------------------------------------------------- */

static ct_status choose(struct call *c)
{
    const struct algorithm *const *rows = operation_algorithms(c->signature.operation);
    const int named = c->group->algorithm[c->signature.operation];

    if (named >= 0) {
        if (rows[named]->fits && !rows[named]->fits(c))
            return ct_fail(CT_ERR_UNSUPPORTED, "algorithm \"%s\" can't do this call",
                           rows[named]->name);
        c->signature.algorithm = (uint32_t)named;
    } else {
        while (rows[c->signature.algorithm]->fits && !rows[c->signature.algorithm]->fits(c))
            c->signature.algorithm++; /* the last row fits always */
    }
    c->algorithm = rows[c->signature.algorithm];
    return CT_OK;
}

ct_status algorithms_from_environment(ct_group *group)
{
    for (int operation = OPERATION_BROADCAST; operation < OPERATION_COUNT; operation++) {
        const struct algorithm *const *rows = operation_algorithms(operation);
        char variable[48] = "CT_";
        const char *name;

        for (size_t i = 0; operation_name(operation)[i] && i < sizeof variable - 4; i++)
            variable[3 + i] = operation_name(operation)[i] == '_'
                                  ? '_'
                                  : (char)(operation_name(operation)[i] - 'a' + 'A');
        name = getenv(variable);
        if (!name || !*name)
            continue;
        for (int row = 0; rows[row]; row++)
            if (!strcmp(rows[row]->name, name))
                group->algorithm[operation] = row;
        if (group->algorithm[operation] < 0)
            return ct_fail(CT_ERR_INVALID, "%s=%s names no algorithm of %s; the first is \"%s\"",
                           variable, name, operation_name(operation), rows[0]->name);
    }
    return CT_OK;
}

/* ---- Running ------------------------------------------------------------- */

static ct_status fail_with_name(const struct call *c, ct_status status, int64_t started)
{
    char text[96], how_long[128] = "", where[400] = "";

    status = group_cause(c->group, status);
    signature_describe(&c->signature, text, sizeof text);
    if (status == CT_ERR_TIMEOUT) {
        snprintf(how_long, sizeof how_long, "gave up after %lld ms (limit %d ms, set by %s): ",
                 (long long)(clock_ms() - started), c->limit.ms, c->limit.by);
        where_are_missing(c->group, c->signature.seq, where, sizeof where);
    }
    ct_fail(status, "%s on group %s, rank %d: %s%s%s", text, c->group->name, c->group->rank,
            how_long, ct_last_error(), where);
    return group_break(c->group, status);
}

static size_t elements_of(const struct call *c, const struct blocks *b)
{
    size_t sum = 0;

    for (int i = 0; i < b->blocks; i++)
        sum += block_at(c, b, i).bytes / c->element;
    return sum;
}

/* Bytes of a rank's block; where ranks give different ones, of all that this one gives. */
static uint64_t begin_traced_call(const struct call *c)
{
    struct trace *trace = c->group->mesh->trace;
    const struct signature *s = &c->signature;

    if (!trace)
        return 0;
    return trace_begin_now(
        trace, &(struct trace_what){ .kind = TRACE_CALL,
                                     .id = s->seq,
                                     .bytes = s->count ? call_bytes(c)
                                                       : elements_of(c, &c->send) * c->element,
                                     .peer = s->root,
                                     .signature = s,
                                     .algorithm = c->algorithm->name,
                                     .group = c->group->traced });
}

static ct_status run_now(struct call *c)
{
    const int64_t started = c->limit.ms < SHORT_LIMIT_MS ? clock_ms() : clock_coarse_ms();
    const uint64_t traced = begin_traced_call(c);
    ct_status status;

    fault_begin(c->group->mesh->faults, c->group, c->signature.operation, c->signature.seq);
    status = group_begin(c->group, c->signature.seq);
    if (status != CT_OK) {
        trace_end(c->group->mesh->trace, traced, status);
        return status;
    }
    record_begin(&c->group->record, &c->signature, 0, c->caller);
    log_line(LOG_DEBUG, "%s #%llu on group %s by %s", operation_name(c->signature.operation),
             (unsigned long long)c->signature.seq, c->group->name, c->algorithm->name);
    c->deadline = started + c->limit.ms;
    channel_call(c->group->mesh, &c->group->channel, &c->signature);
    if (c->group->flat)
        flat_call(c->group->flat, &c->signature, c->deadline, &c->group->broken);
    status = c->algorithm->run(c);
    if (status == CT_OK)
        fault_end(c->group->mesh->faults);
    else
        status = fail_with_name(c, status, started);
    record_end(&c->group->record, c->signature.seq,
               status == CT_OK ? CONTROL_IDLE : CONTROL_FAILED);
    trace_end(c->group->mesh->trace, traced, status);
    group_end(c->group);
    return status;
}

static ct_status run_task(struct task *task)
{
    return run_now((struct call *)task);
}

static void release_call(void *owner)
{
    struct call *c = owner;

    free(c->copied);
    free(c);
}

static size_t align(size_t bytes)
{
    return (bytes + 15) / 16 * 16;
}

/* Arrays of one side, copied behind each other; gives where the next may go. */
static char *copy_arrays(struct blocks *b, char *to)
{
    const size_t n = (size_t)b->blocks;

    if (b->list) {
        memcpy(to, b->list, n * sizeof *b->list);
        b->list = (void *const *)(void *)to;
        to += align(n * sizeof *b->list);
    }
    if (b->counts) {
        memcpy(to, b->counts, n * sizeof *b->counts);
        b->counts = (const size_t *)(void *)to;
        to += align(n * sizeof *b->counts);
    }
    if (b->displs) {
        memcpy(to, b->displs, n * sizeof *b->displs);
        b->displs = (const size_t *)(void *)to;
        to += align(n * sizeof *b->displs);
    }
    return to;
}

static size_t arrays_bytes(const struct blocks *b)
{
    const size_t n = (size_t)b->blocks;

    return (b->list ? align(n * sizeof *b->list) : 0)
           + (b->counts ? align(n * sizeof *b->counts) : 0)
           + (b->displs ? align(n * sizeof *b->displs) : 0);
}

/* premul_sum: every rank scales its own input and the ranks sum. */
static void scale_input(struct call *c, const void *scalar, char *to)
{
    const ct_dtype dtype = call_dtype(c);
    char *at = to;

    for (int i = 0; i < c->send.blocks; i++) {
        const struct span block = block_at(c, &c->send, i);

        combine_scale(dtype, at, block.data, block.bytes / c->element, scalar);
        at += block.bytes;
    }
    c->send.base = to;
    c->send.list = NULL;
    c->send.displs = NULL;
    c->signature.op = CT_SUM;
}

/* What must outlive the caller's arrays: all of them when asynchronous, else only scaled input. */
static ct_status copy_inputs(struct call *c, ct_op op, int asynchronous)
{
    const size_t arrays = asynchronous ? arrays_bytes(&c->send) + arrays_bytes(&c->recv) : 0;
    const size_t scaled = op >= 256 ? elements_of(c, &c->send) * c->element : 0;
    unsigned char scalar[16];
    ct_status status;
    char *to;

    if (arrays + scaled > 0) {
        c->copied = malloc(arrays + scaled);
        if (!c->copied)
            return ct_fail(CT_ERR_NOMEM, "%s: no memory for %zu bytes",
                           operation_name(c->signature.operation), arrays + scaled);
    }
    to = c->copied;
    if (asynchronous) {
        to = copy_arrays(&c->send, to);
        to = copy_arrays(&c->recv, to);
    }
    if (op >= 256) {
        status = premul_find(op, call_dtype(c), scalar);
        if (status != CT_OK)
            return ct_fail_in(status, "%s: ", operation_name(c->signature.operation));
        scale_input(c, scalar, to);
    }
    return CT_OK;
}

/* The counts that all ranks give must be the same; their hash travels. */
static uint32_t hash_counts(const struct blocks *b)
{
    uint64_t hash = 1469598103934665603u;

    for (int i = 0; b->counts && i < b->blocks; i++)
        hash = (hash ^ b->counts[i]) * 1099511628211u;
    return (uint32_t)(hash ^ hash >> 32) | 1;
}

static struct call make_call(const struct request_of_call *r)
{
    struct call c = { .group = r->group,
                      .element = operation_is_barrier(r->operation) ? 1 : ct_dtype_size(r->dtype),
                      .send = r->send,
                      .recv = r->recv,
                      .wait_all = r->wait_all,
                      .caller = r->caller };

    c.signature = (struct signature){ .count = r->count,
                                      .operation = (uint8_t)r->operation,
                                      .dtype = (uint8_t)r->dtype,
                                      .op = (int16_t)(r->op >= 256    ? CT_SUM
                                                      : r->op == NONE ? -1
                                                                      : r->op),
                                      .root = r->root == NONE ? -1 : r->root };
    if (operation_has_counts(r->operation))
        c.signature.history =
            hash_counts(r->operation == OPERATION_ALL_GATHER_V ? &r->recv : &r->send);
    return c;
}

static ct_status start_asynchronous(struct call *c, ct_work **work)
{
    struct call *heap = malloc(sizeof *heap);
    ct_work *w = malloc(sizeof *w);
    ct_status status;

    if (!heap || !w) {
        free(heap);
        free(w);
        return ct_fail(CT_ERR_NOMEM, "no memory for the work");
    }
    *heap = *c;
    heap->task.run = run_task;
    *w = (ct_work){ .group = c->group,
                    .task = &heap->task,
                    .verb = operation_name(c->signature.operation),
                    .owner = heap,
                    .release = release_call };
    status = queue_push(&c->group->queue, &heap->task);
    if (status != CT_OK) {
        free(heap);
        free(w);
        return status;
    }
    *work = w;
    return CT_OK;
}

static void number(struct call *c)
{
    c->signature.seq = ++c->group->seq;
    c->signature.history ^= c->group->history;
    c->group->history = signature_history(&c->signature);
}

ct_status call_run(const struct request_of_call *request, ct_work **work)
{
    struct request_of_call r = *request;
    struct call c;
    ct_status status;

    if (work)
        *work = NULL;
    status = check_call(&r);
    if (status == CT_OK) {
        if (r.root != NONE && !r.group->flat)
            messages_look(r.group->mesh); /* of all calls, these may end without having received */
        status = group_check(r.group);
    }
    if (status != CT_OK)
        return status;
    c = make_call(&r);
    status = choose(&c);
    if (status == CT_OK)
        status = copy_inputs(&c, r.op, work != NULL);
    if (status == CT_OK) {
        number(&c);
        c.limit = r.limit.ms > 0 ? r.limit : group_limit(r.group);
        if (work) {
            status = start_asynchronous(&c, work);
            if (status == CT_OK)
                return CT_OK;
        } else {
            queue_drain(r.group->queue);
            status = run_now(&c);
        }
    }
    free(c.copied);
    /* The others are in this call already, or will be: they must not wait for us. */
    return status == CT_OK || status == CT_ERR_INVALID ? status : group_break(r.group, status);
}
