/* SPDX-License-Identifier: Apache-2.0 */
/* peer_access_check.c - see peer_access_check.h. */
#include "runtime/device/peer_access_check.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/util/error.h"

struct trial {
    struct place place;
    void *into;
    const void *from;
    enum { BEGINS, COMES, IS_SHOWN } step;
    void *copied; /* when the copy of this step is done */
    unsigned char id[16], seen[SAMPLE_BYTES];
};

/* Numbers drawn by xorshift (Marsaglia, 2003), from a state that the id makes. */
void sample_fill(const unsigned char id[16], unsigned char bytes[SAMPLE_BYTES])
{
    uint64_t state = 0x9e3779b97f4a7c15u;

    for (int i = 0; i < 16; i++)
        state = (state ^ id[i]) * 0x100000001b3u;
    state |= 1; /* zero would stay zero */
    for (size_t at = 0; at < SAMPLE_BYTES; at += sizeof state) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        memcpy(bytes + at, &state, sizeof state);
    }
}

struct trial *trial_make(struct place place, void *into, const void *from,
                         const unsigned char id[16])
{
    struct trial *t = malloc(sizeof *t);

    if (!t)
        return NULL;
    t->place = place;
    t->into = into;
    t->from = from;
    t->step = BEGINS;
    t->copied = NULL;
    memcpy(t->id, id, sizeof t->id);
    return t;
}

/* CT_ERR_TIMEOUT, for it has begun. */
static ct_status begin(struct trial *t, enum copy_way way, void *to, const void *from)
{
    const struct space *space = t->place.space;
    ct_status status = space->begin_copy(t->place.device, way, to, from, SAMPLE_BYTES);

    if (status == CT_OK)
        status = space->mark_copies(t->place.device, way, &t->copied);
    if (status != CT_OK)
        space->end_copies(t->place.device);
    return status == CT_OK ? CT_ERR_TIMEOUT : status;
}

/* Where the device can't say whether the copy is done, all copies are waited for. */
static ct_status look(struct trial *t)
{
    const struct space *space = t->place.space;
    const ct_status status = space->wait_for(t->place.device, t->copied, 0, NULL);

    if (status == CT_ERR_TIMEOUT)
        return status;
    space->forget(t->place.device, t->copied);
    t->copied = NULL;
    if (status != CT_OK)
        space->end_copies(t->place.device);
    return status;
}

static ct_status compare(const struct trial *t)
{
    unsigned char right[SAMPLE_BYTES];

    sample_fill(t->id, right);
    return memcmp(t->seen, right, SAMPLE_BYTES) == 0
               ? CT_OK
               : ct_fail(
                   CT_ERR_UNSUPPORTED,
                   "a trial copy from the other GPU's memory brought other bytes (is an IOMMU, "
                   "or PCIe's access control, between the two?)");
}

ct_status trial_step(struct trial *t)
{
    ct_status status = t->copied ? look(t) : CT_OK;

    if (status != CT_OK)
        return status;
    switch (t->step) {
    case BEGINS:
        t->step = COMES;
        return begin(t, COPY_BETWEEN_DEVICES, t->into, t->from);
    case COMES:
        t->step = IS_SHOWN;
        return begin(t, COPY_TO_HOST, t->seen, t->into);
    default:
        return compare(t);
    }
}

void trial_free(struct trial *t)
{
    if (t && t->copied)
        t->place.space->forget(t->place.device, t->copied);
    free(t);
}
