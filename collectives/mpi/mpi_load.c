/* SPDX-License-Identifier: Apache-2.0 */
/* mpi_load.c - loads the plug-in libct-mpi.so.  Its path is CT_LIBMPI, or else the folder of
 * libct.so, or else what the loader finds.
 *
 * The plug-in loads the MPI that it is linked with, unless the program has already loaded an MPI.
 * The loaded MPI must be of the same family, which the loader recognises by the name of the
 * library. */
#include "collectives/mpi/mpi_group.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/util/log.h"

#define PLUGIN "libct-mpi.so"

static struct {
    pthread_mutex_t lock;
    const struct mpi_plugin *plugin; /* NULL: not started yet */
    struct mpi_world world;
} library = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Writes the path of the plug-in in the folder of libct.so. */
static void beside_us(char *path, size_t size)
{
    Dl_info us = { 0 };
    const char *slash;

    *path = 0;
    if (dladdr((void *)(uintptr_t)mpi_load, &us) && us.dli_fname
        && (slash = strrchr(us.dli_fname, '/')))
        snprintf(path, size, "%.*s/" PLUGIN, (int)(slash - us.dli_fname), us.dli_fname);
}

/* Uses RTLD_GLOBAL, since the libraries of an MPI search for each other's symbols in the global
 * scope. */
static void *open_plugin(char *why, size_t size)
{
    const char *path = getenv("CT_LIBMPI");
    const int is_given = path && *path;
    char beside[4096];
    void *plugin;

    beside_us(beside, sizeof beside);
    plugin = dlopen(is_given ? path : beside, RTLD_NOW | RTLD_GLOBAL);
    snprintf(why, size, "%s", plugin ? "" : dlerror());
    return plugin || is_given ? plugin : dlopen(PLUGIN, RTLD_NOW | RTLD_GLOBAL);
}

ct_status mpi_says(const struct mpi_plugin *plugin, int error, const char *what)
{
    char words[512];
    int is_truncation = 0;

    if (error == 0)
        return CT_OK;
    plugin->describe(error, words, sizeof words, &is_truncation);
    return ct_fail(is_truncation ? CT_ERR_MISMATCH : CT_ERR_SYSTEM, "MPI: %s: %s", what, words);
}

static ct_status mpi_load_start(void)
{
    char why[512];
    void *plugin = open_plugin(why, sizeof why);
    const struct mpi_plugin *found = plugin ? dlsym(plugin, PLUGIN_SYMBOL) : NULL;
    ct_status status;

    if (!plugin)
        return ct_fail(CT_ERR_UNSUPPORTED,
                       "backend \"mpi\" needs " PLUGIN
                       ": %s; compile it with your MPI (docs/mpi.md "
                       "has the command) and set CT_LIBMPI to its path",
                       why);
    if (!found || found->version != PLUGIN_VERSION)
        return ct_fail(CT_ERR_UNSUPPORTED, "backend \"mpi\": " PLUGIN
                                           " belongs to another version of libct; compile it "
                                           "again (docs/mpi.md has the command)");
    status = mpi_says(found, found->start(&library.world), "MPI_Init_thread()");
    if (status != CT_OK)
        return status;
    log_line(LOG_INFO, "backend mpi: rank %d of %d of %s", library.world.rank, library.world.size,
             library.world.library);
    library.plugin = found;
    return CT_OK;
}

ct_status mpi_load(const struct mpi_plugin **plugin, const struct mpi_world **world)
{
    ct_status status = CT_OK;

    pthread_mutex_lock(&library.lock);
    if (!library.plugin)
        status = mpi_load_start();
    pthread_mutex_unlock(&library.lock);
    *plugin = library.plugin;
    *world = &library.world;
    return status;
}
