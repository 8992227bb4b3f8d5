/* SPDX-License-Identifier: Apache-2.0 */
/* peer_access_check.c - copies another device's test pattern to this device, then to the host, and
 * compares the bytes. */
#include "runtime/device/peer_access_check.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/util/error.h"

struct access_check {
    struct place place;
    void *into;
    const void *from;
    enum { NOT_BEGUN, TO_DEVICE, TO_HOST } step;
    void *copied; /* mark of the current step's copy; NULL if no copy runs */
    unsigned char id[16], seen[TEST_PATTERN_BYTES];
};

/* Fills `bytes` with random numbers of xorshift (Marsaglia, 2003).  The id determines the start
 * state. */
void test_pattern_fill(const unsigned char id[16], unsigned char bytes[TEST_PATTERN_BYTES])
{
    uint64_t state = 0x9e3779b97f4a7c15u;

    for (int i = 0; i < 16; i++)
        state = (state ^ id[i]) * 0x100000001b3u;
    state |= 1; /* a state of 0 would stay 0 */
    for (size_t at = 0; at < TEST_PATTERN_BYTES; at += sizeof state) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        memcpy(bytes + at, &state, sizeof state);
    }
}

struct access_check *access_check_create(struct place place, void *into, const void *from,
                                         const unsigned char id[16])
{
    struct access_check *t = malloc(sizeof *t);

    if (!t)
        return NULL;
    t->place = place;
    t->into = into;
    t->from = from;
    t->step = NOT_BEGUN;
    t->copied = NULL;
    memcpy(t->id, id, sizeof t->id);
    return t;
}

/* Starts a copy.  Returns CT_ERR_TIMEOUT if the copy is under way. */
static ct_status peer_access_begin_copy(struct access_check *t, enum copy_way way, void *to,
                                        const void *from)
{
    const struct space *space = t->place.space;
    ct_status status = space->begin_copy(t->place.device, way, to, from, TEST_PATTERN_BYTES);

    if (status == CT_OK)
        status = space->mark_copies(t->place.device, way, &t->copied);
    if (status != CT_OK)
        space->end_copies(t->place.device);
    return status == CT_OK ? CT_ERR_TIMEOUT : status;
}

/* Checks once whether the copy is done.  If the device can't say, waits for all copies. */
static ct_status poll_copy(struct access_check *t)
{
    const struct space *space = t->place.space;
    const ct_status status = space->wait_for(t->place.device, t->copied, (struct patience){ 0 });

    if (status == CT_ERR_TIMEOUT)
        return status;
    space->forget(t->place.device, t->copied);
    t->copied = NULL;
    if (status != CT_OK)
        space->end_copies(t->place.device);
    return status;
}

static ct_status peer_access_compare(const struct access_check *t)
{
    unsigned char right[TEST_PATTERN_BYTES];

    test_pattern_fill(t->id, right);
    return memcmp(t->seen, right, TEST_PATTERN_BYTES) == 0
               ? CT_OK
               : ct_fail(
                   CT_ERR_UNSUPPORTED,
                   "a trial copy from the other GPU's memory brought other bytes (is an IOMMU, "
                   "or PCIe's access control, between the two?)");
}

ct_status access_check_step(struct access_check *t)
{
    ct_status status = t->copied ? poll_copy(t) : CT_OK;

    if (status != CT_OK)
        return status;
    switch (t->step) {
    case NOT_BEGUN:
        t->step = TO_DEVICE;
        return peer_access_begin_copy(t, COPY_BETWEEN_DEVICES, t->into, t->from);
    case TO_DEVICE:
        t->step = TO_HOST;
        return peer_access_begin_copy(t, COPY_TO_HOST, t->seen, t->into);
    default:
        return peer_access_compare(t);
    }
}

void access_check_free(struct access_check *t)
{
    if (t && t->copied)
        t->place.space->forget(t->place.device, t->copied);
    free(t);
}
