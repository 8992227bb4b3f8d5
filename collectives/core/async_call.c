/* SPDX-License-Identifier: Apache-2.0 */
/* async_call.c - runs a call on the group's thread after the caller's function has returned.  The
 * call's arrays are copied first. */
#include "collectives/core/call.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/p2p/stream_wait.h"
#include "runtime/p2p/work.h"
#include "runtime/types/premul.h"
#include "runtime/util/log.h"

struct asynchronous_call {
    struct task task; /* first, so that a pointer to the task also points to the call */
    struct call call;
};

static ct_status run_task(struct task *task)
{
    return call_run_now(&((struct asynchronous_call *)task)->call);
}

static void release_call(void *owner)
{
    struct asynchronous_call *a = owner;

    call_forget(&a->call);
    free(a);
}

static size_t align(size_t bytes)
{
    return (bytes + 15) / 16 * 16;
}

/* Copies the arrays of one side to `to`, one after the other.  Returns the address for the next
 * array. */
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

/* For premul_sum, scales this rank's input into `to` before the ranks sum.  Input in device memory
 * is scaled later, when it is staged or folded. */
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
}

ct_status call_copy_inputs(struct call *c, ct_op op, int asynchronous)
{
    const size_t arrays = asynchronous ? arrays_bytes(&c->send) + arrays_bytes(&c->recv) : 0;
    const int on_host = !c->place.space;
    unsigned char scalar[PREMUL_SCALAR_BYTES];
    const size_t scaled = !op_is_premul(op) ? 0
                          : on_host         ? blocks_bytes(c, &c->send)
                                            : sizeof scalar;
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
    if (op_is_premul(op)) {
        status = premul_find(op, call_dtype(c), scalar);
        if (status != CT_OK)
            return ct_fail_in(status, "%s: ", operation_name(c->signature.operation));
        if (on_host)
            scale_input(c, scalar, to);
        else
            c->scalar = memcpy(to, scalar, sizeof scalar);
    }
    return CT_OK;
}

ct_status call_start(const struct call *c, ct_work **work)
{
    struct asynchronous_call *a = malloc(sizeof *a);
    ct_work *w = malloc(sizeof *w);
    ct_status status;

    if (!a || !w) {
        free(a);
        free(w);
        return ct_fail(CT_ERR_NOMEM, "no memory for the work");
    }
    *a = (struct asynchronous_call){
        .task = { .run = run_task, .suits_waiters = call_suits_any_thread(c) }, .call = *c
    };
    *w = (ct_work){ .group = c->group,
                    .task = &a->task,
                    .holds_none = !c->executor->may_hold_stream(c),
                    .kept.verb = operation_name(c->signature.operation),
                    .kept.seq = c->signature.seq,
                    .owner = a,
                    .release = release_call };
    status = queue_push(&c->group->async.queue, &a->task);
    if (status != CT_OK) {
        free(a);
        free(w);
        return status;
    }
    w->queue = c->group->async.queue; /* the first queue_push() creates it */
    work_keep(w);
    *work = w;
    return CT_OK;
}

/* ---- Without a work ------------------------------------------------------------------ */

/* Runs the call and logs a failure, since no work holds the status.  The next call on the group
 * returns the failure. */
static ct_status run_unowned(struct task *task)
{
    const ct_group *group = ((struct asynchronous_call *)task)->call.group;
    const ct_status status = run_task(task);

    if (status != CT_OK)
        log_line(LOG_WARN, "group %s, rank %d: a call in a stream failed: %s", group->name,
                 group->rank, ct_last_error());
    return status;
}

static void abandon(struct task *task)
{
    release_call(task);
}

ct_status call_enqueue(const struct call *c)
{
    struct asynchronous_call *a = malloc(sizeof *a);
    struct held_stream *held;
    ct_status status;

    if (!a)
        return ct_fail(CT_ERR_NOMEM, "no memory for the call");
    status = stream_hold(c->place, c->group->on_device.stream, &c->group->async.queue, &held);
    if (status != CT_OK) {
        free(a);
        return status;
    }
    *a = (struct asynchronous_call){
        .task = { .run = run_unowned, .abandon = abandon, .sequels = &held->sequel }, .call = *c
    };
    status = queue_push(&c->group->async.queue, &a->task);
    if (status != CT_OK) {
        stream_let_go(held);
        free(a);
    }
    return status;
}
