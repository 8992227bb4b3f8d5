/* SPDX-License-Identifier: Apache-2.0 */
/* libcuda.c - finds the driver's functions in the library that the program has loaded.  libct never
 * closes its handle of the library, so that the library is not unloaded while libct uses it. */
#include "cuda/libcuda.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

#include "runtime/util/error.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct driver found;
static int is_found;

#define STRING(name) #name
#define NAME_OF(name) STRING(name)

/* The name of each function, and the pointer that receives its address. */
static const struct {
    const char *name;
    void **function;
} places[] = {
#define PLACE(name) { NAME_OF(name), (void **)&found.name },
    DRIVER_FUNCTIONS(PLACE)
#undef PLACE
};

static ct_status libcuda_find(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);

    if (!library)
        return ct_fail(CT_ERR_CUDA, "the program has not loaded a CUDA driver (libcuda.so.1)");
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        *places[i].function = dlsym(library, places[i].name);
        if (!*places[i].function) {
            dlclose(library);
            return ct_fail(CT_ERR_CUDA, "the CUDA driver has no %s: it is too old", places[i].name);
        }
    }
    return CT_OK;
}

ct_status driver_find(const struct driver **driver)
{
    ct_status status = CT_OK;

    pthread_mutex_lock(&lock);
    if (!is_found) {
        status = libcuda_find();
        is_found = status == CT_OK;
    }
    pthread_mutex_unlock(&lock);
    if (status == CT_OK)
        *driver = &found;
    return status;
}

ct_status driver_says(const struct driver *driver, CUresult result, const char *what, ...)
{
    const char *name = NULL, *words = NULL;
    char tried[300];
    va_list args;

    if (result == CUDA_SUCCESS)
        return CT_OK;
    va_start(args, what);
    vsnprintf(tried, sizeof tried, what, args);
    va_end(args);
    driver->cuGetErrorName(result, &name);
    driver->cuGetErrorString(result, &words);
    return ct_fail(CT_ERR_CUDA, "%s: %s (%s)", tried, words ? words : "an error without words",
                   name ? name : "unknown to the driver");
}
