/* SPDX-License-Identifier: Apache-2.0 */
/* device_memory.c - is this pointer the GPU's?
 *
 * libcuda is never loaded from here.  A device pointer can only come from a
 * program that loaded it, so until a library is loaded that we have not looked
 * at, the answer is no; the loader counts them. */
#include "cuda/cuda.h"

#include <cuda.h>
#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>

typedef CUresult pointer_attribute(void *value, CUpointer_attribute attribute, CUdeviceptr pointer);

static int count_libraries(struct dl_phdr_info *info, size_t size, void *loaded)
{
    (void)size;
    *(unsigned long long *)loaded = info->dlpi_adds;
    return 1; /* the first entry carries the count */
}

/* NULL: the program has no driver. */
static pointer_attribute *find_driver(void)
{
    static _Atomic uintptr_t found;
    static _Atomic unsigned long long looked_at;
    unsigned long long loaded = 0;
    void *driver;

    if (atomic_load(&found))
        return (pointer_attribute *)atomic_load(&found);
    dl_iterate_phdr(count_libraries, &loaded);
    if (loaded == atomic_load_explicit(&looked_at, memory_order_relaxed))
        return NULL;
    driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (driver) {
        atomic_store(&found, (uintptr_t)dlsym(driver, "cuPointerGetAttribute"));
        dlclose(driver); /* the program keeps it */
    }
    atomic_store_explicit(&looked_at, loaded, memory_order_relaxed);
    return (pointer_attribute *)atomic_load(&found);
}

int cuda_owns(const void *pointer)
{
    pointer_attribute *ask = pointer ? find_driver() : NULL;
    unsigned kind = 0, managed = 0;

    if (!ask
        || ask(&kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)pointer)
               != CUDA_SUCCESS)
        return 0;
    ask(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, (CUdeviceptr)(uintptr_t)pointer);
    return kind == CU_MEMORYTYPE_DEVICE && !managed;
}
