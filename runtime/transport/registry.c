/* SPDX-License-Identifier: Apache-2.0 */
/* registry.c - lists all kinds of links, the best first, and all kinds of device memory.  This is
 * the only file of runtime/ that refers to cuda/. */
#include "runtime/device/memory_kind.h"
#include "runtime/transport/link.h"
#include "runtime/util/error.h"

extern const struct link_ops link_shm, link_tcp;

const struct link_ops *const link_kinds[] = { &link_shm, &link_tcp, NULL };

#ifdef CT_WITH_CUDA
extern const struct space space_cuda;
#endif

static const struct space *const spaces[] = {
#ifdef CT_WITH_CUDA
    &space_cuda,
#endif
    NULL
};

int spaces_are_there(void)
{
    int there = 0;

    for (int i = 0; spaces[i]; i++)
        there |= spaces[i]->is_there();
    return there;
}

ct_status place_of(const void *pointer, struct place *place)
{
    ct_status status = CT_OK;

    *place = (struct place){ NULL, NULL };
    for (int i = 0; spaces[i] && status == CT_OK && !place->device; i++) {
        status = spaces[i]->device_of(pointer, &place->device);
        if (place->device)
            place->space = spaces[i];
    }
    return status;
}

ct_status place_current(struct place *place)
{
    ct_status status = ct_fail(CT_ERR_UNSUPPORTED, "libct was built without CUDA");

    for (int i = 0; spaces[i]; i++) {
        *place = (struct place){ spaces[i], NULL };
        status = spaces[i]->current(&place->device);
        if (status == CT_OK)
            return CT_OK;
    }
    return status;
}
