/* SPDX-License-Identifier: Apache-2.0 */
/* device_offer.h - what a rank shows of its buffers, and who works with what all have shown; parts
 * of device_fused.c. */
#ifndef COLLECTIVES_DEVICE_OFFER_H
#define COLLECTIVES_DEVICE_OFFER_H

#include "collectives/device.h"

enum {
    WORKS_FOR_ALL = 0 /* this rank */
};

/* Of the rank that works for all: the call is done, or which calls go another way. */
enum word { DONE = 1, NOT_THIS_CALL, NEVER };

struct offer {
    unsigned char device[16];
    int32_t usable;                  /* 0: not this call */
    int32_t same;                    /* it receives where it sends */
    char why[160];                   /* if it is not */
    struct device_handle send, recv; /* bytes 0: it has none */
};

/* This rank's, for all to see (device_offer.c).  CT_ERR_INVALID: a buffer is longer than its
 * allocation. */
ct_status offer_make(const struct call *c, struct offer *offer);

/* Of all ranks, offers[size]: by their group's first rank, with its device (device_work.c).  *word:
 * what it came to; not DONE, then nothing was touched. */
ct_status work_for_all(struct call *c, const struct offer *const *offers, enum word *word);

#endif
