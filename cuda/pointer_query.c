/* SPDX-License-Identifier: Apache-2.0 */
/* pointer_query.c - is this pointer the GPU's?
 *
 * libcuda is never loaded from here.  A device pointer can only come from a
 * program that loaded it, so until a library is loaded that we have not looked
 * at, the answer is no.  The loader counts them, at the price of two locks.  But its list
 * only grows at its end: in a program that loads nothing later on, that the last
 * library of its start is still the last one is one load to see. */
#include "cuda/device_internal.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>

typedef CUresult pointer_attributes(unsigned count, CUpointer_attribute *which, void **into,
                                    CUdeviceptr pointer);

static _Atomic uintptr_t found; /* the driver's function; 0: the program has no driver */
static _Atomic unsigned long long looked_at;
static struct link_map *last_at_start; /* NULL: not known */

static int count_libraries(struct dl_phdr_info *info, size_t size, void *loaded)
{
    (void)size;
    *(unsigned long long *)loaded = info->dlpi_adds;
    return 1; /* the first entry carries the count */
}

static void look_for_driver(void)
{
    unsigned long long loaded = 0;
    void *driver;

    dl_iterate_phdr(count_libraries, &loaded);
    if (loaded == atomic_load_explicit(&looked_at, memory_order_relaxed))
        return;
    driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (driver) {
        atomic_store(&found, (uintptr_t)dlsym(driver, "cuPointerGetAttributes"));
        dlclose(driver); /* the program keeps it */
    }
    atomic_store_explicit(&looked_at, loaded, memory_order_relaxed);
}

/* Whoever was loaded by a dlopen() together with us might be unloaded before us: it is kept, so
 * that its entry in the list stays. */
static __attribute__((constructor)) void note_libraries(void)
{
    struct link_map *map = _r_debug.r_map;

    while (map && map->l_next)
        map = map->l_next;
    if (map && *map->l_name && dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE))
        last_at_start = map;
    look_for_driver();
}

static pointer_attributes *find_driver(void)
{
    const struct link_map *last = last_at_start;

    if (!atomic_load_explicit(&found, memory_order_relaxed)) {
        if (last && !__atomic_load_n(&last->l_next, __ATOMIC_RELAXED))
            return NULL;
        look_for_driver();
    }
    return (pointer_attributes *)atomic_load(&found);
}

int cuda_is_there(void)
{
    return find_driver() != NULL;
}

int gpu_memory_of(const void *pointer, CUcontext *context, CUdevice *device)
{
    CUpointer_attribute which[] = { CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                    CU_POINTER_ATTRIBUTE_IS_MANAGED, CU_POINTER_ATTRIBUTE_CONTEXT,
                                    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL };
    unsigned kind = 0, managed = 0;
    void *into[] = { &kind, &managed, context, device };
    pointer_attributes *ask = pointer ? find_driver() : NULL;

    return ask
           && ask(sizeof which / sizeof which[0], which, into, (CUdeviceptr)(uintptr_t)pointer)
                  == CUDA_SUCCESS
           && kind == CU_MEMORYTYPE_DEVICE && !managed;
}
