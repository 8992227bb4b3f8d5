/* SPDX-License-Identifier: Apache-2.0 */
/* mpi_state.c - asks the MPI library that is loaded in this process for its state. */
#include "runtime/exchange/mpi_state.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

typedef int flag_function(int *flag);

/* Finds an MPI library that dlsym(RTLD_DEFAULT) does not find.  Python loads the library of a
 * module without making its symbols global.  Returns 1 and opens the library in *arg if this
 * library of the process is MPI. */
static int mpi_find_library(struct dl_phdr_info *info, size_t size, void *arg)
{
    const char *name = strrchr(info->dlpi_name, '/');
    void **library = arg;

    (void)size;
    if (!name || strncmp(name, "/libmpi", 7) != 0)
        return 0;
    *library = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    if (*library && dlsym(*library, "MPI_Initialized"))
        return 1;
    if (*library)
        dlclose(*library);
    *library = NULL;
    return 0;
}

static void *mpi_find_function(const char *name)
{
    void *library = NULL, *function = dlsym(RTLD_DEFAULT, name);

    if (!function && dl_iterate_phdr(mpi_find_library, &library)) {
        function = dlsym(library, name);
        dlclose(library); /* the module that uses MPI keeps the library loaded */
    }
    return function;
}

enum mpi_state mpi_state(void)
{
    flag_function *initialized, *finalized;
    int is_initialized = 0, is_finalized = 0;

    *(void **)&initialized = mpi_find_function("MPI_Initialized");
    *(void **)&finalized = mpi_find_function("MPI_Finalized");
    if (!initialized || !finalized)
        return MPI_ABSENT;
    initialized(&is_initialized);
    finalized(&is_finalized);
    return is_finalized ? MPI_OVER : is_initialized ? MPI_LIVES : MPI_EARLY;
}
