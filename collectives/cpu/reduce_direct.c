/* SPDX-License-Identifier: Apache-2.0 */
/* reduce_direct.c - each rank sends its input to the root, which folds in the written order.
 *
 * Piece by piece, so that the root needs p pieces of memory and not p inputs.
 * Cost: alpha + (p-1) n beta at the root.  A tree would move fewer bytes
 * through the root, but fold in another order. */
#include <stdlib.h>

#include "collectives/core/shm_exchange.h"

#define PIECE ((size_t)1 << 20)

static ct_status fold_piece(struct call *c, char *scratch, const char *own, char *to, size_t bytes)
{
    const void **sources = malloc(sizeof *sources * (size_t)c->group->size);
    struct batch batch;
    ct_status status;

    if (!sources)
        return ct_fail(CT_ERR_NOMEM, "no memory for %d ranks", c->group->size);
    status = batch_begin(&batch, c, c->group->size);
    if (status == CT_OK) {
        for (int i = 0; i < c->group->size; i++) {
            sources[i] = i == c->group->rank ? own : scratch + (size_t)i * bytes;
            if (i != c->group->rank)
                batch_recv(&batch, i, span_of(sources[i], bytes));
        }
        status = batch_wait(&batch);
    }
    if (status == CT_OK && bytes > 0)
        status = call_fold(c, to, sources, bytes / c->element);
    free(sources);
    return status;
}

static ct_status reduce_direct_run(struct call *c)
{
    const struct span in = block_at(c, &c->send, 0);
    const size_t most = in.bytes < PIECE ? in.bytes : PIECE;
    char *scratch = NULL;
    size_t at = 0;
    ct_status status = CT_OK;

    if (call_is_root(c) && !(scratch = call_scratch(c, most * (size_t)c->group->size)))
        return ct_fail(CT_ERR_NOMEM, "no memory for the inputs of %d ranks", c->group->size);
    do {
        const size_t n = piece_of(in.bytes, at, PIECE);

        status = call_is_root(c)
                     ? fold_piece(c, scratch, in.data + at, (char *)c->recv.base + at, n)
                     : send_to(c, c->signature.root, span_of(in.data + at, n));
        at += n;
    } while (status == CT_OK && at < in.bytes);
    call_scratch_end(c, scratch);
    return status;
}

const struct algorithm reduce_direct = { "direct", NULL, reduce_direct_run, 0, NULL };
