/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_library.c - finds NCCL's functions in the library that the process has loaded, or loads the
 * library.
 *
 * The library takes a few hundred MB of address space, so only a group that uses NCCL loads it.  If
 * the process already has a copy, perhaps PyTorch's, libct uses that copy.  Two copies would each
 * need their own connections and GPU memory. */
#include "cuda/nccl/nccl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/util/error.h"
#include "runtime/util/log.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct nccl found;
static int is_found;

static const struct {
    const char *name;
    void **function;
    int late;
} places[] = {
#define PLACE(name) { #name, (void **)&found.name, 0 },
#define LATE_PLACE(name) { #name, (void **)&found.name, 1 },
    NCCL_FUNCTIONS(PLACE) NCCL_LATE_FUNCTIONS(LATE_PLACE)
#undef PLACE
#undef LATE_PLACE
};

static void *nccl_library_open(void)
{
    const char *path = getenv("CT_LIBNCCL");
    void *library = dlopen("libnccl.so.2", RTLD_LAZY | RTLD_NOLOAD);

    return library ? library
                   : dlopen(path && *path ? path : "libnccl.so.2", RTLD_LAZY | RTLD_LOCAL);
}

static ct_status nccl_library_find(void)
{
    void *library = nccl_library_open();
    ct_status status;

    if (!library)
        return ct_fail(CT_ERR_UNSUPPORTED, "NCCL can't be loaded: %s", dlerror());
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        *places[i].function = dlsym(library, places[i].name);
        if (!*places[i].function && !places[i].late) {
            dlclose(library);
            return ct_fail(CT_ERR_UNSUPPORTED, "the NCCL library has no %s: it is too old",
                           places[i].name);
        }
    }
    status = nccl_says(&found, NULL, found.ncclGetVersion(&found.version), "asking its version");
    if (status == CT_OK)
        log_line(LOG_INFO, "NCCL %d is loaded", found.version);
    else
        dlclose(library);
    return status;
}

ct_status nccl_find(const struct nccl **nccl)
{
    ct_status status = CT_OK;

    pthread_mutex_lock(&lock);
    if (!is_found) {
        status = nccl_library_find();
        is_found = status == CT_OK;
    }
    pthread_mutex_unlock(&lock);
    if (status == CT_OK)
        *nccl = &found;
    return status;
}

ct_status nccl_says(const struct nccl *nccl, ncclComm_t comm, ncclResult_t result, const char *what,
                    ...)
{
    const char *words;
    char tried[200];
    va_list args;

    if (result == ncclSuccess || result == ncclInProgress)
        return CT_OK;
    va_start(args, what);
    vsnprintf(tried, sizeof tried, what, args);
    va_end(args);
    words = nccl->ncclGetLastError(comm);
    return ct_fail(CT_ERR_NCCL, "NCCL: %s: %s%s%.300s", tried, nccl->ncclGetErrorString(result),
                   words && *words ? ": " : "", words ? words : "");
}
