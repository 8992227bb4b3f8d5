/* SPDX-License-Identifier: Apache-2.0 */
/* pointer_query.c - whether a pointer points to GPU memory.
 *
 * libct never loads libcuda.  Only a program that loaded libcuda can have device pointers.  So as
 * long as no new library was loaded, the answer stays no.  The loader counts the libraries, but
 * reading its count costs two locks.  Its list grows only at the end: while the last library at
 * start is still the last one, reading one pointer is enough. */
#include "cuda/device_internal.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>

typedef CUresult pointer_attributes(unsigned count, CUpointer_attribute *which, void **into,
                                    CUdeviceptr pointer);

static _Atomic uintptr_t found; /* the driver's function; 0: the program has no driver */
static _Atomic unsigned long long counted;
static struct link_map *last_at_start; /* NULL: not known */

static int count_libraries(struct dl_phdr_info *info, size_t size, void *loaded)
{
    (void)size;
    *(unsigned long long *)loaded = info->dlpi_adds;
    return 1; /* stops: the first entry has the count */
}

static void look_for_driver(void)
{
    unsigned long long loaded = 0;
    void *driver;

    dl_iterate_phdr(count_libraries, &loaded);
    if (loaded == atomic_load_explicit(&counted, memory_order_relaxed))
        return;
    driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (driver) {
        atomic_store(&found, (uintptr_t)dlsym(driver, "cuPointerGetAttributes"));
        dlclose(driver); /* the program keeps it loaded */
    }
    atomic_store_explicit(&counted, loaded, memory_order_relaxed);
}

/* Finds the last library at start.  If one dlopen() loaded that library and us, it might be
 * unloaded before us.  So it is kept loaded, and its entry stays in the list. */
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
