/* SPDX-License-Identifier: Apache-2.0 */
/* pickle.c - what the reader's values live in, and what it says when it refuses.
 *
 * Values and their items lie in blocks, at most MOST_BYTES of them, and all go with
 * pickle_free(). */
#include "launcher/nodes/c10d/pickle_machine.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { BLOCK = 1 << 16, MOST_BYTES = 128 << 20 };

#define RENDEZVOUS "torch.distributed.elastic.rendezvous.dynamic_rendezvous"

const struct pickle_name pickle_names[PICKLE_GLOBALS] = {
    [STATE_CLASS] = { RENDEZVOUS, "_RendezvousState" },
    [NODE_CLASS] = { RENDEZVOUS, "_NodeDesc" },
    [DATETIME] = { "datetime", "datetime" },
    [TIMEZONE] = { "datetime", "timezone" },
    [TIMEDELTA] = { "datetime", "timedelta" },
};

int pickle_wrong(struct why *why, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(why->text, sizeof why->text, format, args);
    va_end(args);
    for (char *c = why->text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            *c = '?';
    return -1;
}

/* ---- Memory ------------------------------------------------------------------- */

struct pickle_block {
    struct pickle_block *next;
    size_t used;
    _Alignas(max_align_t) unsigned char bytes[BLOCK];
};

void *pickle_allocate(struct pickle *pickle, size_t size, struct why *why)
{
    struct pickle_block *block = pickle->blocks;

    if (!block || block->used + size > BLOCK) {
        if (pickle->bytes + sizeof *block > MOST_BYTES) {
            pickle_wrong(why, "the rendezvous state takes more than %d MiB", MOST_BYTES >> 20);
            return NULL;
        }
        if (!(block = malloc(sizeof *block))) {
            pickle_wrong(why, "no memory for the rendezvous state");
            return NULL;
        }
        block->next = pickle->blocks;
        block->used = 0;
        pickle->blocks = block;
        pickle->bytes += sizeof *block;
    }
    block->used += size;
    return block->bytes + block->used - size;
}

void pickle_free(struct pickle *pickle)
{
    while (pickle->blocks) {
        struct pickle_block *block = pickle->blocks;

        pickle->blocks = block->next;
        free(block);
    }
    *pickle = (struct pickle){ 0 };
}
