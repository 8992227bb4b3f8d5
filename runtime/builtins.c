/* SPDX-License-Identifier: Apache-2.0 */
/* builtins.c - every kind of link, best first, and every kind of memory.  The one
 * file that names them all, so the one that looks up into cuda/. */
#include "runtime/link.h"
#include "runtime/space.h"

extern const struct link_ops link_shm, link_tcp;

const struct link_ops *const link_kinds[] = { &link_shm, &link_tcp, NULL };

#ifdef CT_WITH_CUDA
extern int cuda_owns(const void *pointer);

int is_device_memory(const void *pointer)
{
    return cuda_owns(pointer);
}
#else
int is_device_memory(const void *pointer)
{
    (void)pointer;
    return 0;
}
#endif
