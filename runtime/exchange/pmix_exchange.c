/* SPDX-License-Identifier: Apache-2.0 */
/* pmix_exchange.c - sends a text from rank 0 to all ranks over PMIx.  Rank 0 puts the text under a
 * key, a fence distributes the text, and then the other ranks get the value of the key.
 *
 * libpmix is loaded at run time.  This file declares the few functions and structs that it needs,
 * so that libct builds without libpmix.  Their layout has not changed since PMIx 2.  PMIx_Init()
 * and PMIx_Finalize() count their calls, so the calls of libct do not disturb an MPI that is
 * initialised.
 *
 * The library must be the library that an MPI of this process has loaded or will load, and should
 * be the launcher's library.  So libct first looks for a libpmix that this process has loaded, then
 * for a libpmix that an ancestor process has loaded, and then asks the dynamic linker. */
#include "runtime/exchange/pmix_exchange.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/util/clock.h"
#include "runtime/util/log.h"
#include "runtime/util/process_state.h"

#define LIBRARY "libpmix.so.2"
#define KEY "libct.store"
#define SCOPE_GLOBAL 3
#define TYPE_BOOL 1
#define TYPE_STRING 3

struct pmix_proc {
    char nspace[256];
    uint32_t rank;
};

struct pmix_value {
    uint16_t type;
    union {
        char *string;
        uint8_t flag;
        char largest[64];
    } data;
};

struct pmix_info {
    char key[512];
    uint32_t flags;
    struct pmix_value value;
};

typedef void pmix_done(int status, void *arg);

#define PMIX_FUNCTIONS(X)                                                                       \
    X(PMIx_Init, (struct pmix_proc * self, struct pmix_info * infos, size_t count))             \
    X(PMIx_Finalize, (const struct pmix_info *infos, size_t count))                             \
    X(PMIx_Put, (uint8_t scope, const char *key, struct pmix_value *value))                     \
    X(PMIx_Commit, (void))                                                                      \
    X(PMIx_Fence_nb, (const struct pmix_proc *procs, size_t procs_count,                        \
                      const struct pmix_info *infos, size_t count, pmix_done *done, void *arg)) \
    X(PMIx_Get, (const struct pmix_proc *of, const char *key, const struct pmix_info *infos,    \
                 size_t count, struct pmix_value **value))

struct libpmix {
#define PMIX_FIELD(name, parameters) int(*name) parameters;
    PMIX_FUNCTIONS(PMIX_FIELD)
#undef PMIX_FIELD
    const char *(*PMIx_Error_string)(int status);
};

int pmix_is_offered(void)
{
    return getenv("PMIX_NAMESPACE") && getenv("PMIX_RANK");
}

/* ---- The library --------------------------------------------------------------- */

static pid_t parent_of(pid_t pid)
{
    char parent[PROCESS_FIELD];

    return atoi(process_stat(pid, 4, parent));
}

/* Writes the path of the libpmix that a process has mapped, and returns 1.  Returns 0 if the
 * process has no libpmix or belongs to another user. */
static int mapped_by(pid_t pid, char *library, size_t size)
{
    char path[64], line[4200], *file = NULL;
    FILE *maps;

    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    maps = fopen(path, "re");
    if (!maps)
        return 0;
    while (!file && fgets(line, sizeof line, maps))
        if (strstr(line, "/" LIBRARY) && (file = strchr(line, '/')))
            snprintf(library, size, "%.*s", (int)strcspn(file, "\n"), file);
    fclose(maps);
    return file != NULL;
}

/* Opens libpmix.  Makes its symbols global, since its plug-ins need them. */
static void *pmix_open_library(void)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
    char path[4096];

    for (pid_t pid = getppid(); !library && pid > 1; pid = parent_of(pid))
        if (mapped_by(pid, path, sizeof path))
            library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    return library ? library : dlopen(LIBRARY, RTLD_NOW | RTLD_GLOBAL);
}

/* Loads libpmix and its functions.  The library is never unloaded, since its threads and plug-ins
 * may outlive PMIx_Finalize(). */
static ct_status pmix_load(struct libpmix *pmix)
{
    void *library = pmix_open_library();

    if (!library)
        return ct_fail(CT_ERR_UNSUPPORTED,
                       "the launcher offers PMIx, but there is no " LIBRARY
                       " (%s); add its folder to LD_LIBRARY_PATH, or set MASTER_ADDR to rank 0's "
                       "host and MASTER_PORT to a free port there",
                       dlerror());
#define PMIX_LOAD(name, parameters) *(void **)&pmix->name = dlsym(library, #name);
    PMIX_FUNCTIONS(PMIX_LOAD)
#undef PMIX_LOAD
    *(void **)&pmix->PMIx_Error_string = dlsym(library, "PMIx_Error_string");
    if (pmix->PMIx_Init && pmix->PMIx_Finalize && pmix->PMIx_Put && pmix->PMIx_Commit
        && pmix->PMIx_Fence_nb && pmix->PMIx_Get && pmix->PMIx_Error_string)
        return CT_OK;
    return ct_fail(CT_ERR_UNSUPPORTED, LIBRARY " lacks functions of PMIx 2");
}

static ct_status pmix_check(const struct libpmix *pmix, const char *what, int result)
{
    return result == 0 ? CT_OK
                       : ct_fail(CT_ERR_SYSTEM,
                                 "PMIx, by which the ranks of this launcher find rank 0: %s: %s",
                                 what, pmix->PMIx_Error_string(result));
}

/* ---- The exchange -------------------------------------------------------------- */

/* State of a fence.  After a timeout the struct is not freed, since fence_done() may still be
 * called. */
struct fence {
    struct pmix_info collect; /* makes the fence distribute the values of all ranks */
    _Atomic int done;         /* 1 when the fence has ended */
    int result;               /* PMIx's status of the fence; valid when done is 1 */
};

static void fence_done(int status, void *arg)
{
    struct fence *f = arg;

    f->result = status;
    atomic_store(&f->done, 1);
}

static ct_status fence(const struct libpmix *pmix, int64_t deadline)
{
    struct long_wait wait = long_wait_begin();
    struct fence *f = calloc(1, sizeof *f);
    ct_status status;

    if (!f)
        return ct_fail(CT_ERR_NOMEM, "no memory for a fence");
    snprintf(f->collect.key, sizeof f->collect.key, "pmix.collect");
    f->collect.value.type = TYPE_BOOL;
    f->collect.value.data.flag = 1;
    status = pmix_check(pmix, "PMIx_Fence_nb",
                        pmix->PMIx_Fence_nb(NULL, 0, &f->collect, 1, fence_done, f));
    if (status != CT_OK) {
        free(f);
        return status;
    }
    while (!atomic_load(&f->done)) {
        if (time_left_ms(deadline, 1) == 0)
            return ct_fail(CT_ERR_TIMEOUT, "not all ranks of the launcher called "
                                           "ct_init_process_group() in time (PMIx's fence)");
        if (long_wait_is_due(&wait))
            log_line(LOG_WAITS, WAITS_FOR_RANKS " (PMIx's fence)", LONG_WAIT_MS / 1000);
        usleep(500);
    }
    status = pmix_check(pmix, "PMIx_Fence_nb", f->result);
    free(f);
    return status;
}

static ct_status pmix_put(const struct libpmix *pmix, char *text)
{
    struct pmix_value value = { .type = TYPE_STRING, .data.string = text };
    const ct_status status =
        pmix_check(pmix, "PMIx_Put", pmix->PMIx_Put(SCOPE_GLOBAL, KEY, &value));

    return status == CT_OK ? pmix_check(pmix, "PMIx_Commit", pmix->PMIx_Commit()) : status;
}

static ct_status pmix_get(const struct libpmix *pmix, struct pmix_proc root, char *text,
                          size_t size)
{
    struct pmix_value *value = NULL;
    ct_status status;

    root.rank = 0;
    status = pmix_check(pmix, "PMIx_Get", pmix->PMIx_Get(&root, KEY, NULL, 0, &value));
    if (status != CT_OK)
        return status;
    if (value->type != TYPE_STRING || !value->data.string || strlen(value->data.string) >= size)
        status = ct_fail(CT_ERR_SYSTEM, "PMIx has no text under " KEY);
    else
        snprintf(text, size, "%s", value->data.string);
    if (value->type == TYPE_STRING)
        free(value->data.string);
    free(value);
    return status;
}

ct_status pmix_broadcast(int rank, char *text, size_t size, int64_t deadline)
{
    struct libpmix pmix = { 0 };
    struct pmix_proc self = { .rank = 0 };
    ct_status status = pmix_load(&pmix);

    if (status == CT_OK)
        status = pmix_check(&pmix, "PMIx_Init", pmix.PMIx_Init(&self, NULL, 0));
    if (status != CT_OK)
        return status;
    if (rank == 0)
        status = pmix_put(&pmix, text);
    if (status == CT_OK)
        status = fence(&pmix, deadline);
    if (status == CT_OK && rank != 0)
        status = pmix_get(&pmix, self, text, size);
    if (status != CT_ERR_TIMEOUT) /* after a timeout, the fence still runs */
        pmix.PMIx_Finalize(NULL, 0);
    return status;
}
