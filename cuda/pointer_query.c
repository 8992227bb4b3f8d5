/* SPDX-License-Identifier: Apache-2.0 */
/* pointer_query.c - tests whether a pointer points to GPU memory.
 *
 * libct never loads libcuda.  A program can have device pointers only if it has loaded libcuda.  So
 * while no new library is loaded, the answer stays no.  dl_iterate_phdr() returns the number of
 * libraries loaded so far, but the call locks two locks.  The loader's list of libraries grows only
 * at the end.  So while the library that was last in the list at start has no successor, no library
 * is new, and libct reads only that one pointer. */
#include "cuda/device_internal.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>

typedef CUresult pointer_attributes(unsigned count, CUpointer_attribute *which, void **into,
                                    CUdeviceptr pointer);

static _Atomic uintptr_t found; /* address of cuPointerGetAttributes(); 0 if no driver is loaded */
static _Atomic unsigned long long counted; /* stored after `found` */
static struct link_map *last_at_start;     /* NULL if unknown */

static int count_libraries(struct dl_phdr_info *info, size_t size, void *loaded)
{
    (void)size;
    *(unsigned long long *)loaded = info->dlpi_adds;
    return 1; /* ends the iteration, since the first entry already has the count */
}

static void look_for_driver(void)
{
    unsigned long long loaded = 0;
    void *driver;

    dl_iterate_phdr(count_libraries, &loaded);
    if (loaded == atomic_load_explicit(&counted, memory_order_acquire))
        return;
    driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (driver) {
        atomic_store(&found, (uintptr_t)dlsym(driver, "cuPointerGetAttributes"));
        dlclose(driver); /* the program keeps the library loaded */
    }
    atomic_store_explicit(&counted, loaded, memory_order_release);
}

/* Finds the library that is last in the loader's list at start.  If one dlopen() loaded that
 * library and libct, the loader might unload that library before libct.  So libct keeps the library
 * loaded, and its entry stays in the list. */
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
