/* SPDX-License-Identifier: Apache-2.0 */
/* launch_batch.h - folds or copies for one launch, put together part by part.
 *
 *     batch_add(b, count); batch_from(b, ...) and batch_to(b, ...);   ... the next part ...
 *     batch_fold(b, place, dtype, op, sources);                       enqueued; it is empty again
 */
#ifndef COLLECTIVES_DEVICE_LAUNCH_BATCH_H
#define COLLECTIVES_DEVICE_LAUNCH_BATCH_H

#include "runtime/device/memory_kind.h"

struct batch {
    struct fold_part *parts;
    int count;
    void **pointers; /* of the parts */
    size_t used;
};

/* Of so many parts, with so many sources and destinations in all. */
ct_status batch_make(struct batch *b, size_t parts, size_t pointers);
void batch_free(struct batch *b); /* also where it could not be made */

void batch_add(struct batch *b, size_t count); /* a part, of so many elements */
void batch_from(struct batch *b, char *source);
void batch_to(struct batch *b, char *destination);
void batch_copy(struct batch *b, char *from, char *to, size_t bytes); /* a part that is a copy */

/* All parts, of so many sources each; as space->fold(), in rank order. */
ct_status batch_fold(struct batch *b, const struct place *place, ct_dtype dtype, ct_op op,
                     int sources);
ct_status batch_copy_all(struct batch *b, const struct place *place); /* parts of one source */

#endif
