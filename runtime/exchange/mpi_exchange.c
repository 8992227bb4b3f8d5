/* SPDX-License-Identifier: Apache-2.0 */
/* mpi_exchange.c - is there an MPI in this process, and a broadcast over it.
 *
 * Under hydra a program has one connection to its launcher, and an MPI needs that for itself.  All
 * MPIs that hydra starts (MPICH, Intel MPI, MVAPICH) have the binary interface of MPICH, whose
 * handles and types are numbers that stand here; so no MPI is needed to build libct.  The
 * broadcast is one that does not block, for the deadline's sake. */
#include "runtime/exchange/mpi_exchange.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/util/clock.h"
#include "runtime/util/log.h"

#define MPICH_COMM_WORLD 0x44000000
#define MPICH_BYTE 0x4c00010d

struct mpich_status {
    int fields[5];
};

typedef int flag_function(int *flag);
typedef int version_function(char *text, int *length);
typedef int ibcast_function(void *data, int count, int datatype, int root, int comm, int *request);
typedef int test_function(int *request, int *flag, struct mpich_status *status);

/* A library that Python loaded for one module is not among the symbols of all. */
static int find_library(struct dl_phdr_info *info, size_t size, void *arg)
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

static void *find_function(const char *name)
{
    void *library = NULL, *function = dlsym(RTLD_DEFAULT, name);

    if (!function && dl_iterate_phdr(find_library, &library)) {
        function = dlsym(library, name);
        dlclose(library); /* its own user keeps it loaded */
    }
    return function;
}

enum mpi_state mpi_state(void)
{
    flag_function *initialized, *finalized;
    int is_initialized = 0, is_finalized = 0;

    *(void **)&initialized = find_function("MPI_Initialized");
    *(void **)&finalized = find_function("MPI_Finalized");
    if (!initialized || !finalized)
        return MPI_ABSENT;
    initialized(&is_initialized);
    finalized(&is_finalized);
    return is_finalized ? MPI_OVER : is_initialized ? MPI_LIVES : MPI_EARLY;
}

static int is_of_mpich(void)
{
    static const char *const names[] = { "MPICH", "Intel(R) MPI", "MVAPICH", "CRAY MPICH" };
    version_function *version;
    char text[8192] = ""; /* MPICH needs MPI_MAX_LIBRARY_VERSION_STRING of this size */
    int length = 0, found = 0;

    *(void **)&version = find_function("MPI_Get_library_version");
    if (version)
        version(text, &length);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        found |= strstr(text, names[i]) != NULL;
    return found;
}

/* After a timeout buffer and request belong to MPI, which may still write there. */
struct broadcast {
    int request;
    char text[];
};

ct_status mpi_broadcast(char *text, size_t size, int64_t deadline)
{
    struct long_wait wait = long_wait_begin();
    struct mpich_status status;
    struct broadcast *b;
    ibcast_function *ibcast;
    test_function *test;
    int done = 0, result = 0;

    *(void **)&ibcast = find_function("MPI_Ibcast");
    *(void **)&test = find_function("MPI_Test");
    if (!is_of_mpich() || !ibcast || !test)
        return ct_fail(CT_ERR_UNSUPPORTED,
                       "the MPI of this program is none with the binary interface of MPICH, so its "
                       "ranks can't find rank 0 through it; set MASTER_ADDR to rank 0's host and "
                       "MASTER_PORT to a free port there");
    if (!(b = malloc(sizeof *b + size)))
        return ct_fail(CT_ERR_NOMEM, "no memory for a broadcast");
    memcpy(b->text, text, size);
    if (ibcast(b->text, (int)size, MPICH_BYTE, 0, MPICH_COMM_WORLD, &b->request) != 0) {
        free(b);
        return ct_fail(CT_ERR_SYSTEM, "MPI_Ibcast failed");
    }
    while ((result = test(&b->request, &done, &status)) == 0 && !done) {
        if (time_left_ms(deadline, 1) == 0)
            return ct_fail(CT_ERR_TIMEOUT, "not all ranks called ct_init_process_group() in time "
                                           "(MPI_Ibcast)");
        if (long_wait_is_due(&wait))
            log_line(LOG_WAITS, WAITS_FOR_RANKS " (MPI_Ibcast)", LONG_WAIT_MS / 1000);
        usleep(100);
    }
    if (result != 0)
        return ct_fail(CT_ERR_SYSTEM, "MPI_Test failed");
    memcpy(text, b->text, size);
    free(b);
    return CT_OK;
}
