/* SPDX-License-Identifier: Apache-2.0 */
/* premul.c - the ops that programs create with ct_op_premul().
 *
 * ct_op_premul() keeps the scalar in a slot of a small table.  The op's value holds the slot's
 * number and, above that number, how often the slot was used.  So an op that is used after
 * ct_op_free() is refused and not taken for a newer op in the same slot. */
#include "runtime/types/premul.h"

#include <pthread.h>
#include <string.h>

#include "runtime/types/dtype.h"
#include "runtime/util/error.h"

enum { SLOTS = 256, USES = 1 << 20 };

static struct slot {
    int taken;
    int uses; /* how often the slot was taken, modulo USES */
    ct_dtype dtype;
    unsigned char scalar[PREMUL_SCALAR_BYTES];
} slots[SLOTS];
static pthread_mutex_t slots_lock = PTHREAD_MUTEX_INITIALIZER;

static ct_op premul_op_of(int slot)
{
    return PREMUL_FIRST + slot + SLOTS * slots[slot].uses;
}

/* Returns the op's slot, or NULL if ct_op_premul() did not make the op or the op was freed.  The
 * caller holds the lock. */
static struct slot *premul_look_up(ct_op op)
{
    const int slot = op_is_premul(op) ? (op - PREMUL_FIRST) % SLOTS : 0;

    return slots[slot].taken && premul_op_of(slot) == op ? &slots[slot] : NULL;
}

ct_status ct_op_premul(const void *scalar, ct_dtype dtype, ct_op *op)
{
    ct_op made = -1;

    if (!scalar || !op)
        return ct_fail(CT_ERR_INVALID, "ct_op_premul: %s is NULL", scalar ? "op" : "scalar");
    if (!dtype_is_inexact(dtype))
        return ct_fail(CT_ERR_INVALID,
                       "ct_op_premul: dtype %s; it must be a floating or complex one",
                       dtype_name(dtype));
    pthread_mutex_lock(&slots_lock);
    for (int i = 0; i < SLOTS && made < 0; i++)
        if (!slots[i].taken) {
            slots[i].taken = 1;
            slots[i].uses = (slots[i].uses + 1) % USES;
            slots[i].dtype = dtype;
            memcpy(slots[i].scalar, scalar, ct_dtype_size(dtype));
            made = premul_op_of(i);
        }
    pthread_mutex_unlock(&slots_lock);
    if (made < 0)
        return ct_fail(CT_ERR_NOMEM,
                       "ct_op_premul: %d ops are in use; free those no longer needed with "
                       "ct_op_free()",
                       SLOTS);
    *op = made;
    return CT_OK;
}

ct_status ct_op_free(ct_op op)
{
    struct slot *slot;

    pthread_mutex_lock(&slots_lock);
    slot = premul_look_up(op);
    if (slot)
        slot->taken = 0;
    pthread_mutex_unlock(&slots_lock);
    if (!slot)
        return ct_fail(
            CT_ERR_INVALID,
            "ct_op_free: op %d does not exist; ct_op_premul() did not make it, or it was freed",
            op);
    return CT_OK;
}

ct_status premul_find(ct_op op, ct_dtype dtype, void *scalar)
{
    const struct slot *slot;
    ct_dtype made_for = dtype;

    pthread_mutex_lock(&slots_lock);
    slot = premul_look_up(op);
    if (slot) {
        made_for = slot->dtype;
        memcpy(scalar, slot->scalar, PREMUL_SCALAR_BYTES);
    }
    pthread_mutex_unlock(&slots_lock);
    if (!slot)
        return ct_fail(CT_ERR_INVALID,
                       "op %d does not exist; ct_op_premul() did not make it, or it was freed", op);
    if (made_for != dtype)
        return ct_fail(CT_ERR_INVALID, "op %d multiplies %s, but the buffer's dtype is %s", op,
                       dtype_name(made_for), dtype_name(dtype));
    return CT_OK;
}
