/* SPDX-License-Identifier: Apache-2.0 */
/* places.h - where a survivor can wait: a function and a row in places.c. */
#ifndef DETECTION_WORKER_PLACES_H
#define DETECTION_WORKER_PLACES_H

#include "include/ct.h"

struct place {
    const char *name;
    /* Waits for what the victim never does; what it returns is what the call did. */
    ct_status (*wait)(int victim, int rank, int size);
};

const struct place *place_find(const char *name); /* NULL: no such place */

#endif
