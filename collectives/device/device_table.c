/* SPDX-License-Identifier: Apache-2.0 */
/* device_table.c - what the ranks tell each other about their devices.
 *
 * In the group's first call on device memory each shows a card: which device it has, and what its
 * user wishes.  All see all of them, so all draw the same conclusions.  The words travel as the
 * call's own: by a round over shared slots, where the group has them, else by messages. */
#include "collectives/device/device_call.h"

#include <stdlib.h>
#include <string.h>

#include "collectives/core/sendrecv.h"
#include "runtime/group/shm_group.h"

/* In step k each rank gives all that it has to the one 2^k on the left (all_gather_bruck.c), so the
 * ranks' words come in an order that begins with its own. */
static ct_status tell_by_messages(struct call *c, const void *mine, size_t bytes, char *all)
{
    const int p = c->group->size, rank = c->group->rank;
    char *heard = malloc((size_t)p * bytes);
    ct_status status = CT_OK;

    if (!heard)
        return ct_fail(CT_ERR_NOMEM, "no memory for the words of %d ranks", p);
    memcpy(heard, mine, bytes);
    for (int have = 1; have < p && status == CT_OK; have *= 2) {
        const size_t more = (size_t)(have < p - have ? have : p - have) * bytes;

        status = exchange(c, (rank - have + p) % p, span_of(heard, more), (rank + have) % p,
                          span_of(heard + (size_t)have * bytes, more));
    }
    for (int i = 0; i < p && status == CT_OK; i++)
        memcpy(all + (size_t)((rank + i) % p) * bytes, heard + (size_t)i * bytes, bytes);
    free(heard);
    return status;
}

static ct_status tell_by_round(struct call *c, const void *mine, size_t bytes, char *all)
{
    struct flat *f = c->group->flat;
    ct_status status = flat_turn(f, bytes);

    if (status == CT_OK) {
        flat_show(f, 0, mine, bytes);
        status = flat_arrive(f);
    }
    if (status == CT_OK)
        status = flat_wait_all(f);
    for (int i = 0; i < c->group->size && status == CT_OK; i++)
        memcpy(all + (size_t)i * bytes, flat_slot(f, i), bytes);
    return status;
}

ct_status device_tell(struct call *c, const void *mine, size_t bytes, void *all)
{
    return c->group->flat ? tell_by_round(c, mine, bytes, all)
                          : tell_by_messages(c, mine, bytes, all);
}

/* ---- Cards ---------------------------------------------------------------------- */

struct card {
    unsigned char device[16];
    int32_t has_device;
    int32_t talks;
    int32_t wish;
    int32_t by_streams;
};

static struct card card_of(const struct call *c)
{
    const struct place *place = &c->place;
    struct card card;

    memset(&card, 0, sizeof card); /* no byte of what travels is left undefined */
    card.wish = c->group->choices->device;
    card.by_streams = c->group->choices->by_streams;
    if (place->device) {
        place->space->id(place->device, card.device);
        card.has_device = 1;
        card.talks = place->space->talks != NULL;
    }
    return card;
}

/* Who wishes "staged" has a reason; of other wishes that differ none counts. */
static enum device_wish wish_of_all(const struct card *cards, int size)
{
    int wish = cards[0].wish;

    for (int i = 1; i < size && wish != WISH_STAGED; i++)
        if (cards[i].wish != wish)
            wish = cards[i].wish == WISH_STAGED ? WISH_STAGED : WISH_NONE;
    return (enum device_wish)wish;
}

static const unsigned char *device_of(int rank, const void *cards)
{
    return ((const struct card *)cards)[rank].device;
}

static ct_status look_at(const struct card *cards, int rank, int size, struct devices *d)
{
    const ct_status status = executors_find(&d->executors, rank, size, device_of, cards);

    if (status != CT_OK)
        return status;
    d->apart = d->executors.count == size;
    d->talks = d->by_streams = 1;
    for (int i = 0; i < size; i++) {
        d->talks &= cards[i].talks;
        d->by_streams &= cards[i].by_streams;
    }
    d->wish = wish_of_all(cards, size);
    d->known = 1;
    return CT_OK;
}

ct_status device_cards(struct call *c, struct devices *devices)
{
    const struct card mine = card_of(c);
    struct card *cards = malloc((size_t)c->group->size * sizeof *cards);
    ct_status status;

    if (!cards)
        return ct_fail(CT_ERR_NOMEM, "no memory for the cards of %d ranks", c->group->size);
    status = device_tell(c, &mine, sizeof mine, cards);
    for (int i = 0; i < c->group->size && status == CT_OK; i++)
        if (!cards[i].has_device)
            status = ct_fail(CT_ERR_UNSUPPORTED, "rank %d has no GPU that is current",
                             c->group->ranks[i]);
    if (status == CT_OK)
        status = look_at(cards, c->group->rank, c->group->size, devices);
    if (status == CT_OK)
        devices->place = c->place;
    free(cards);
    return status;
}
