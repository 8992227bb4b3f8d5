/* SPDX-License-Identifier: Apache-2.0 */
/* device_offer.c - a rank's buffers as handles that the rank which works for all can map. */
#include "collectives/device_offer.h"

#include <stdio.h>
#include <string.h>

static int is_plain(const struct blocks *b)
{
    return !b->list && !b->counts && !b->displs;
}

static void refuse(struct offer *offer, const char *why)
{
    offer->usable = 0;
    snprintf(offer->why, sizeof offer->why, "%s", why);
}

/* CT_ERR_INVALID: the allocation ends before the buffer does. */
static ct_status give(const struct call *c, const struct blocks *b, struct device_handle *handle,
                      struct offer *offer)
{
    const size_t bytes = blocks_bytes(c, b);
    ct_status status;

    if (b->blocks == 0 || bytes == 0 || !offer->usable)
        return CT_OK;
    status = c->place.space->give(c->place.device, b->base, bytes, handle);
    if (status != CT_OK && status != CT_ERR_INVALID)
        refuse(offer, ct_last_error());
    return status == CT_ERR_INVALID ? status : CT_OK;
}

ct_status offer_make(const struct call *c, struct offer *offer)
{
    ct_status status;

    memset(offer, 0, sizeof *offer);
    c->place.space->id(c->place.device, offer->device);
    offer->usable = 1;
    offer->same = c->send.base == c->recv.base;
    if (!is_plain(&c->send) || !is_plain(&c->recv))
        refuse(offer, "a buffer for each rank");
    else if (c->scalar)
        refuse(offer, "premul_sum");
    status = give(c, &c->send, &offer->send, offer);
    return status == CT_OK ? give(c, &c->recv, &offer->recv, offer) : status;
}
