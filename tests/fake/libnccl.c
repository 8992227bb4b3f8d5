/* SPDX-License-Identifier: Apache-2.0 */
/* libnccl.c - the fake NCCL's settings, ids and communicators. */
#include "tests/fake/libnccl.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct ticket {
    uint64_t magic;
    int32_t pid, file;
};

#define MAGIC 0x6c63636e656b6166u
enum { POLLS = 2, MEMORY = 64 << 10 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all that follows */
static int is_set_up, fails_in, fails_rank = -1, late_rank = -1, late_ms;
static char fails[40];
static struct fake_driver driver;

void fake_nccl_dies(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fputs("fake NCCL: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    abort();
}

#define STRING(name) #name
#define NAME_OF(name) STRING(name)

/* With the lock held. */
static void set_up(void)
{
    static const struct {
        const char *name;
        void **function;
    } places[] = {
#define PLACE(name) { NAME_OF(name), (void **)&driver.name },
        FAKE_DRIVER_FUNCTIONS(PLACE)
#undef PLACE
    };
    const char *fail = getenv("FAKE_NCCL_FAIL"), *late = getenv("FAKE_NCCL_LATE");
    void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);

    if (is_set_up)
        return;
    is_set_up = 1;
    for (size_t i = 0; i < sizeof places / sizeof *places && library; i++)
        *places[i].function = dlsym(library, places[i].name);
    if (fail && sscanf(fail, "%39[^:]:%d:%d", fails, &fails_in, &fails_rank) < 2)
        fake_nccl_dies("FAKE_NCCL_FAIL=%s", fail);
    if (late && sscanf(late, "%d:%d", &late_rank, &late_ms) < 2)
        fake_nccl_dies("FAKE_NCCL_LATE=%s", late);
}

const struct fake_driver *fake_driver(void)
{
    pthread_mutex_lock(&lock);
    set_up();
    pthread_mutex_unlock(&lock);
    return &driver;
}

int fake_fails(const char *function, int rank)
{
    int now;

    pthread_mutex_lock(&lock);
    set_up();
    now = fails_in > 0 && !strcmp(function, fails) && (fails_rank < 0 || fails_rank == rank)
          && --fails_in == 0;
    pthread_mutex_unlock(&lock);
    return now;
}

int fake_late_ms(int rank)
{
    int late;

    pthread_mutex_lock(&lock);
    set_up();
    late = rank == late_rank ? late_ms : 0;
    pthread_mutex_unlock(&lock);
    return late;
}

ncclResult_t ncclGetVersion(int *version)
{
    const char *text = getenv("FAKE_NCCL_VERSION");

    *version = text ? atoi(text) : NCCL_VERSION_CODE;
    return fake_fails(__func__, -1) ? ncclSystemError : ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result)
{
    static const char *const words[] = { "no error",
                                         "unhandled cuda error",
                                         "unhandled system error",
                                         "internal error",
                                         "invalid argument",
                                         "invalid usage",
                                         "remote process exited or there was a network error",
                                         "NCCL operation in progress" };

    return result >= 0 && result < ncclNumResults ? words[result] : "unknown result code";
}

const char *ncclGetLastError(ncclComm_t comm)
{
    return comm ? comm->words : "";
}

/* ---- Ids ------------------------------------------------------------------------------ */

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    struct ticket ticket = { .magic = MAGIC, .pid = getpid() };

    if (fake_fails(__func__, -1))
        return ncclSystemError;
    ticket.file = memfd_create("fake-nccl", MFD_CLOEXEC);
    if (ticket.file < 0 || ftruncate(ticket.file, sizeof(struct commons)) < 0)
        return ncclSystemError;
    memset(id, 0, sizeof *id);
    memcpy(id, &ticket, sizeof ticket);
    return ncclSuccess;
}

static struct commons *map_commons(const struct ticket *ticket)
{
    void *mapped = MAP_FAILED;
    char path[64];
    int file;

    snprintf(path, sizeof path, "/proc/%d/fd/%d", ticket->pid, ticket->file);
    file = open(path, O_RDWR | O_CLOEXEC);
    if (file >= 0) {
        mapped = mmap(NULL, sizeof(struct commons), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        close(file);
    }
    return mapped == MAP_FAILED ? NULL : mapped;
}

/* ---- Life ------------------------------------------------------------------------------- */

void comm_fails(ncclComm_t comm, ncclResult_t error, const char *words)
{
    pthread_mutex_lock(&comm->lock);
    if (atomic_load(&comm->error) == ncclSuccess)
        snprintf(comm->words, sizeof comm->words, "%s", words);
    atomic_store(&comm->error, error); /* after the text, for readers of it */
    pthread_mutex_unlock(&comm->lock);
}

void comm_use(ncclComm_t comm)
{
    pthread_mutex_lock(&comm->lock);
    comm->users++;
    comm->jobs++;
    pthread_mutex_unlock(&comm->lock);
}

static void close_id(ncclComm_t comm)
{
    if (comm->id >= 0)
        close(comm->id);
    comm->id = -1;
}

static void let_go(ncclComm_t comm, int is_job)
{
    int last;

    pthread_mutex_lock(&comm->lock);
    comm->jobs -= is_job;
    last = --comm->users == 0;
    pthread_mutex_unlock(&comm->lock);
    if (!last)
        return;
    munmap(comm->commons, sizeof *comm->commons);
    pthread_mutex_destroy(&comm->lock);
    free(comm);
}

void comm_unuse(ncclComm_t comm)
{
    let_go(comm, 1);
}

static int jobs_of(ncclComm_t comm)
{
    int jobs;

    pthread_mutex_lock(&comm->lock);
    jobs = comm->jobs;
    pthread_mutex_unlock(&comm->lock);
    return jobs;
}

/* 0: there is no such id any more, or no GPU. */
static int fill(ncclComm_t comm, const ncclUniqueId *id, CUuuid *uuid)
{
    const struct fake_driver *cuda = fake_driver();
    struct ticket ticket;
    CUdevice device;

    memcpy(&ticket, id, sizeof ticket);
    if (ticket.magic != MAGIC || cuda->cuCtxGetCurrent(&comm->context) != CUDA_SUCCESS
        || cuda->cuCtxGetDevice(&device) != CUDA_SUCCESS
        || cuda->cuDeviceGetUuid(uuid, device) != CUDA_SUCCESS)
        return 0;
    comm->id = comm->rank == 0 && ticket.pid == getpid() ? ticket.file : -1; /* made here */
    if (cuda->cuMemAlloc(&comm->memory, MEMORY) != CUDA_SUCCESS)
        return 0;
    comm->commons = map_commons(&ticket);
    if (!comm->commons)
        cuda->cuMemFree(comm->memory);
    return comm->commons != NULL;
}

/* As the real one does, of its own. */
static int load_kernels(void)
{
    static const uint32_t fatbin[] = { 0xba55ed50u, 0, 0, 0 };
    CUmodule module;

    return fake_driver()->cuModuleLoadData(&module, fatbin) == CUDA_SUCCESS
           && fake_driver()->cuModuleUnload(module) == CUDA_SUCCESS;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *made, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t *config)
{
    ncclComm_t comm = calloc(1, sizeof *comm);
    CUuuid uuid;

    *made = NULL;
    if (!config || config->blocking != 0)
        fake_nccl_dies("rank %d joins and would block", rank);
    if (size < 1 || size > NCCL_RANKS || rank < 0 || rank >= size)
        fake_nccl_dies("rank %d of %d", rank, size);
    if (!comm)
        return ncclSystemError;
    comm->rank = rank;
    comm->size = size;
    comm->users = 1;
    comm->is_joining = 1;
    comm->polls = POLLS;
    if (!fill(comm, &id, &uuid)) {
        free(comm);
        return ncclInvalidArgument;
    }
    pthread_mutex_init(&comm->lock, NULL);
    if (!load_kernels() || fake_fails(__func__, rank)) {
        comm_fails(comm, ncclSystemError, "the join fails, as it was told to");
    } else {
        memcpy(comm->commons->gpu[rank], uuid.bytes, 16);
        atomic_fetch_add(&comm->commons->joined, 1);
    }
    *made = comm;
    return ncclInProgress;
}

static void look_whether_all_joined(ncclComm_t comm)
{
    struct commons *c = comm->commons;

    if (!comm->is_joining || atomic_load(&c->joined) < comm->size)
        return;
    comm->is_joining = 0;
    close_id(comm);
    for (int i = 0; i < comm->size; i++)
        for (int j = 0; j < i; j++)
            if (!memcmp(c->gpu[i], c->gpu[j], sizeof c->gpu[i]))
                comm_fails(comm, ncclInvalidUsage, "Duplicate GPU detected");
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *state)
{
    look_whether_all_joined(comm);
    *state = ncclInProgress;
    if (atomic_load(&comm->error) == ncclSuccess) {
        if (comm->is_joining || (comm->finalized && jobs_of(comm) > 0))
            return ncclSuccess;
        if (comm->polls > 0 && --comm->polls > 0)
            return ncclSuccess;
        jobs_enqueue(comm);
    }
    *state = (ncclResult_t)atomic_load(&comm->error);
    return ncclSuccess;
}

ncclResult_t comm_begin(ncclComm_t comm)
{
    if (atomic_load(&comm->error) != ncclSuccess)
        return (ncclResult_t)atomic_load(&comm->error);
    if (comm->is_joining || comm->polls > 0 || comm->finalized)
        fake_nccl_dies("rank %d makes a call while one is in progress", comm->rank);
    return ncclSuccess;
}

ncclResult_t comm_end(ncclComm_t comm)
{
    comm->polls = POLLS;
    return ncclInProgress;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
    const ncclResult_t result = comm_begin(comm);

    if (result != ncclSuccess)
        return result;
    comm->finalized = 1;
    return comm_end(comm);
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    if (!comm->finalized || comm->polls > 0 || jobs_of(comm) > 0)
        fake_nccl_dies("rank %d destroys what is in use", comm->rank);
    close_id(comm);
    fake_driver()->cuMemFree(comm->memory);
    let_go(comm, 0);
    return ncclSuccess;
}

/* What is enqueued ends, whatever it waits for. */
ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    atomic_store(&comm->aborted, 1);
    jobs_drop(comm);
    close_id(comm);
    fake_driver()->cuMemFree(comm->memory);
    let_go(comm, 0);
    return ncclSuccess;
}
