/* SPDX-License-Identifier: Apache-2.0 */
/* probe.c - device_probe: what libct assumes of a driver and only a real one can show; JSON lines.
 *
 *   device_probe                 all readings, some 10 s; no launcher, and nothing of libct
 *
 * driver: can GPU 0 be opened at all?  ipc: are small allocations of one block mapped right, also
 * when the owner has freed them and got others?  events: what does it cost that each rank of a GPU
 * records an event in each call?  descriptors: could another process map memory of cuMemCreate()
 * (PyTorch's expandable segments), and would it see that it was replaced?  locks: which calls wait
 * for a stream that waits, and keep other threads from launching meanwhile?  queues: which streams
 * keep ours from running while they wait?
 *
 * Each reading runs in its own process, since a driver does not survive fork(), and has a limit.
 * If one blocks in the driver, a line says so, and the next one begins.  Exits with 1 if it finds
 * no GPU. */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/cuda/device.h"

enum { SMALL = 64, LARGE = 1 << 26, HOST_BYTES = 1 << 24 };

static double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static const char *word(int yes)
{
    return yes ? "true" : "false";
}

/* For processes that are forked later as well. */
static void *get_shared(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        _exit(2);
    return memory;
}

static void open_or_end(void)
{
    if (!device_open(0))
        _exit(1);
}

/* 0 in the child, which opens the driver again and ends with this process. */
static pid_t fork_with_driver(void)
{
    const pid_t child = fork();

    if (child < 0)
        _exit(2);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        open_or_end();
    }
    return child;
}

static void read_driver(void)
{
    const double began = now_us();
    const int opens = device_open(0), loaded = device_load();
    const char *problem = loaded ? "" : dlerror();

    printf(
        "{\"reading\":\"driver\",\"opens\":%s,\"ms\":%.0f,\"init_code\":%d,\"problem\":\"%s\"}\n",
        word(opens), (now_us() - began) * 1e-3, loaded ? (int)device.cuInit(0) : -1, problem);
    if (!opens)
        _exit(1);
}

/* ---- Small allocations of one block, mapped by another process ------------------------- */

enum { BLOCKS = 64, BLOCK_BYTES = 4096, ROUNDS = 2 };

struct exported {
    CUipcMemHandle handles[BLOCKS], of_the_dead;
    _Atomic int step; /* 2 round + 1: the handles are there; 2 round + 2: they have been opened */
};

static void await_step(struct exported *e, int step)
{
    while (atomic_load(&e->step) < step)
        usleep(100);
}

static unsigned char byte_of(int round, int i)
{
    return (unsigned char)(round * BLOCKS + i + 1);
}

static void own_blocks(struct exported *e)
{
    void *blocks[BLOCKS];

    device.cuIpcGetMemHandle(&e->of_the_dead, at(device_alloc(LARGE, 0)));
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < BLOCKS; i++) {
            blocks[i] = device_alloc(BLOCK_BYTES, byte_of(round, i));
            device.cuIpcGetMemHandle(&e->handles[i], at(blocks[i]));
        }
        atomic_store(&e->step, 2 * round + 1);
        await_step(e, 2 * round + 2);
        for (int i = 0; i < BLOCKS; i++)
            device_free(blocks[i]);
    }
    _exit(0);
}

static void map_blocks(const struct exported *e, int round)
{
    int errors = 0, code = 0, wrong = 0;
    double us = 0;

    for (int i = 0; i < BLOCKS; i++) {
        const double began = now_us();
        unsigned char last = 0;
        CUdeviceptr block;
        const CUresult result =
            device.cuIpcOpenMemHandle(&block, e->handles[i], CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);

        us += now_us() - began;
        if (result != CUDA_SUCCESS) {
            errors++;
            code = (int)result;
        } else if (device.cuMemcpyDtoH(&last, block + BLOCK_BYTES - 1, 1) != CUDA_SUCCESS
                   || last != byte_of(round, i)) {
            wrong++;
        }
    }
    printf("{\"reading\":\"ipc\",\"again\":%s,\"blocks\":%d,\"errors\":%d,\"code\":%d,"
           "\"wrong_bytes\":%d,\"us_each\":%.0f}\n",
           word(round > 0), BLOCKS, errors, code, wrong, us / BLOCKS);
}

/* The first mappings are kept while the owner frees, and gets the same addresses again. */
static void read_ipc(void)
{
    struct exported *e = get_shared(sizeof *e);
    CUdeviceptr block;

    if (fork_with_driver() == 0)
        own_blocks(e);
    open_or_end();
    for (int round = 0; round < ROUNDS; round++) {
        await_step(e, 2 * round + 1);
        map_blocks(e, round);
        atomic_store(&e->step, 2 * round + 2);
    }
    wait(NULL);
    printf(
        "{\"reading\":\"dead owner\",\"code\":%d}\n",
        (int)device.cuIpcOpenMemHandle(&block, e->of_the_dead, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
}

/* ---- An event of each rank ------------------------------------------------------------- */

enum { CONTEXTS = 7, SAMPLES = 200 };

struct rounds {
    _Atomic int active; /* so many take part */
    _Atomic int go;     /* the round that is under way; -1: the end */
    _Atomic int done[CONTEXTS];
};

static void record_events(struct rounds *r, int i)
{
    CUevent event;
    int round, last = 0;

    device.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
    device.cuEventRecord(event, NULL);
    device.cuCtxSynchronize();
    for (atomic_store(&r->done[i], 0); (round = atomic_load(&r->go)) >= 0; last = round) {
        if (round == last || i >= atomic_load(&r->active)) {
            sched_yield();
            continue;
        }
        device.cuEventRecord(event, NULL);
        while (device.cuEventQuery(event) != CUDA_SUCCESS)
            sched_yield();
        atomic_store(&r->done[i], round);
    }
    _exit(0);
}

static int longer(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void await_round(struct rounds *r, int round, int ranks)
{
    for (int i = 0; i < ranks; i++)
        while (atomic_load(&r->done[i]) != round)
            sched_yield();
}

static void time_events(struct rounds *r, int active)
{
    const int before = atomic_load(&r->go);
    double us[SAMPLES];

    atomic_store(&r->active, active);
    for (int k = 0; k < SAMPLES; k++) {
        const double began = now_us();

        atomic_store(&r->go, before + k + 1);
        await_round(r, before + k + 1, active);
        us[k] = now_us() - began;
    }
    qsort(us, SAMPLES, sizeof *us, longer);
    printf("{\"reading\":\"events\",\"contexts\":%d,\"active\":%d,\"p50_us\":%.1f,"
           "\"p99_us\":%.1f}\n",
           CONTEXTS, active, us[SAMPLES / 2], us[SAMPLES * 99 / 100]);
}

static void read_events(void)
{
    struct rounds *r = get_shared(sizeof *r);

    for (int i = 0; i < CONTEXTS; i++) {
        atomic_store(&r->done[i], -1);
        if (fork_with_driver() == 0)
            record_events(r, i);
    }
    await_round(r, 0, CONTEXTS);
    time_events(r, 1);
    time_events(r, 3);
    time_events(r, CONTEXTS);
    atomic_store(&r->go, -1);
    for (int i = 0; i < CONTEXTS; i++)
        wait(NULL);
}

/* ---- Memory of cuMemCreate(), by its descriptor ---------------------------------------- */

enum { CHUNK = 2 << 20 };

#define CHUNK_FUNCTIONS(X)            \
    X(cuMemCreate)                    \
    X(cuMemAddressReserve)            \
    X(cuMemMap)                       \
    X(cuMemUnmap)                     \
    X(cuMemSetAccess)                 \
    X(cuMemExportToShareableHandle)   \
    X(cuMemImportFromShareableHandle) \
    X(cuMemRetainAllocationHandle)    \
    X(cuMemGetAddressRange)

/* The fake driver has none of them. */
static struct {
#define CHUNK_FIELD(name) __typeof__(name) *name;
    CHUNK_FUNCTIONS(CHUNK_FIELD)
#undef CHUNK_FIELD
} chunk_calls;

#define STRING(name) #name
#define NAME_OF(name) STRING(name)

static int load_chunk_calls(void)
{
    const struct {
        const char *name;
        void **function;
    } places[] = {
#define PLACE(name) { NAME_OF(name), (void **)&chunk_calls.name },
        CHUNK_FUNCTIONS(PLACE)
#undef PLACE
    };

    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (!(*places[i].function = dlsym(RTLD_DEFAULT, places[i].name)))
            return 0;
    return 1;
}

static const CUmemAllocationProp chunk_is = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                              .requestedHandleTypes =
                                                  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                              .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE } };

static CUresult map_chunk(CUdeviceptr place, CUmemGenericAllocationHandle chunk)
{
    const CUmemAccessDesc access = { .location = chunk_is.location,
                                     .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
    const CUresult result = chunk_calls.cuMemMap(place, CHUNK, 0, chunk, 0);

    return result == CUDA_SUCCESS ? chunk_calls.cuMemSetAccess(place, CHUNK, &access, 1) : result;
}

static CUresult create_chunk(CUdeviceptr place, CUmemGenericAllocationHandle *chunk)
{
    const CUresult result = chunk_calls.cuMemCreate(chunk, CHUNK, &chunk_is, 0);

    return result == CUDA_SUCCESS ? map_chunk(place, *chunk) : result;
}

/* As another process would. */
static CUresult import_chunk(int descriptor, CUdeviceptr *place)
{
    CUmemGenericAllocationHandle chunk;
    CUresult result = chunk_calls.cuMemImportFromShareableHandle(
        &chunk, (void *)(intptr_t)descriptor, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);

    if (result == CUDA_SUCCESS)
        result = chunk_calls.cuMemAddressReserve(place, CHUNK, 0, 0, 0);
    return result == CUDA_SUCCESS ? map_chunk(*place, chunk) : result;
}

/* By which libct tells an allocation from a later one at the same address. */
static unsigned long long id_of(CUdeviceptr place)
{
    unsigned long long id = 0;

    device.cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, place);
    return id;
}

/* An expandable segment of two chunks, of which the first is imported, then replaced. */
static void read_descriptors(void)
{
    CUmemGenericAllocationHandle chunk[3] = { 0 }, held = 0;
    CUdeviceptr segment = 0, mapped = 0, range = 0;
    double began, exported, imported;
    unsigned long long id;
    unsigned char byte = 0;
    int descriptor = -1, holds;
    CUresult results[4];
    size_t bytes = 0;

    open_or_end();
    if (!load_chunk_calls()) {
        printf("{\"reading\":\"descriptors\",\"there\":false}\n");
        return;
    }
    results[0] = chunk_calls.cuMemAddressReserve(&segment, 2 * CHUNK, 0, 0, 0);
    for (int i = 0; i < 2 && results[0] == CUDA_SUCCESS; i++)
        results[0] = create_chunk(segment + (CUdeviceptr)i * CHUNK, &chunk[i]);
    device.cuMemsetD8Async(segment, 7, 2 * CHUNK, NULL);
    device.cuCtxSynchronize();
    began = now_us();
    results[1] = chunk_calls.cuMemExportToShareableHandle(
        &descriptor, chunk[0], CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    exported = now_us();
    results[2] = import_chunk(descriptor, &mapped);
    imported = now_us();
    if (results[2] == CUDA_SUCCESS)
        device.cuMemcpyDtoH(&byte, mapped + CHUNK - 1, 1);
    chunk_calls.cuMemGetAddressRange(&range, &bytes, segment + CHUNK + 1);
    chunk_calls.cuMemRetainAllocationHandle(&held, (void *)(uintptr_t)segment);
    holds = held == chunk[0];
    id = id_of(segment);
    chunk_calls.cuMemUnmap(segment, CHUNK);
    results[3] = create_chunk(segment, &chunk[2]);
    printf("{\"reading\":\"descriptors\",\"there\":true,\"codes\":[%d,%d,%d,%d],"
           "\"export_us\":%.0f,\"import_us\":%.0f,\"right\":%s,\"range_bytes\":%zu,"
           "\"same_handle\":%s,\"id\":%llu,\"next_id\":%llu}\n",
           (int)results[0], (int)results[1], (int)results[2], (int)results[3], exported - began,
           imported - exported, word(byte == 7), bytes, word(holds), id, id_of(segment));
}

/* ---- A stream that waits for a word, as at a stream gate ------------------------------- */

static _Atomic uint32_t *flag; /* pinned */
static void *small;
static CUevent mark;
static int normal, high; /* priorities */

static CUstream new_stream(int priority)
{
    CUstream stream = NULL;

    device.cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, priority);
    return stream;
}

static CUresult wait_for_flag(CUstream stream)
{
    CUstreamBatchMemOpParams wait[1];

    memset(wait, 0, sizeof wait);
    wait[0].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
    wait[0].waitValue.address = at((const void *)flag);
    wait[0].waitValue.value = 1;
    wait[0].waitValue.flags = CU_STREAM_WAIT_VALUE_GEQ;
    atomic_store(flag, 0);
    return device.cuStreamBatchMemOp(stream, 1, wait, 0);
}

/* CUDA_ERROR_NOT_READY: what is enqueued there now is not done within so many us. */
static CUresult work_in(CUstream stream, double limit_us)
{
    const double began = now_us();
    CUresult result = device.cuMemsetD8Async(at(small), 1, SMALL, stream);

    if (result == CUDA_SUCCESS)
        result = device.cuEventRecord(mark, stream);
    while (result == CUDA_SUCCESS && (result = device.cuEventQuery(mark)) == CUDA_ERROR_NOT_READY
           && now_us() - began < limit_us) {
        usleep(20);
        result = CUDA_SUCCESS;
    }
    return result;
}

static void open_with_flag(void)
{
    void *memory = NULL;

    open_or_end();
    if (device.cuMemAllocHost(&memory, SMALL) != CUDA_SUCCESS || !(small = device_alloc(SMALL, 0))
        || device.cuEventCreate(&mark, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS
        || device.cuCtxGetStreamPriorityRange(&normal, &high) != CUDA_SUCCESS)
        _exit(1);
    flag = memory;
}

static CUcontext context, current;
static void *freed, *got_host, *freed_host, *registered;
static CUdeviceptr got;
static CUstream made;
static double call_began, call_ended;

#define PINNED (CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP)
#define OPERATIONS(X)                                                                           \
    X(cuCtxGetCurrent, (&current)) /* blocks none: if it seems to, the streams share a queue */ \
    X(cuMemFree, (at(freed)))                                                                   \
    X(cuMemAlloc, (&got, LARGE))                                                                \
    X(cuMemAllocHost, (&got_host, HOST_BYTES))                                                  \
    X(cuMemFreeHost, (freed_host))                                                              \
    X(cuMemHostRegister, (registered, HOST_BYTES, PINNED))                                      \
    X(cuMemHostUnregister, (registered))                                                        \
    X(cuCtxSynchronize, ())                                                                     \
    X(cuStreamCreateWithPriority, (&made, CU_STREAM_NON_BLOCKING, normal))

#define OPERATION(name, arguments)         \
    static void *call_##name(void *unused) \
    {                                      \
        device.cuCtxSetCurrent(context);   \
        call_began = now_us();             \
        device.name arguments;             \
        call_ended = now_us();             \
        return unused;                     \
    }
OPERATIONS(OPERATION)
#undef OPERATION

static const struct operation {
    const char *name;
    void *(*call)(void *unused);
} operations[] = {
#define ROW(name, arguments) { #name, call_##name },
    OPERATIONS(ROW)
#undef ROW
};

enum { FLAG_US = 600000, CALL_US = 50000, LONG_US = 400000 };

static void *raise_flag_later(void *unused)
{
    usleep(FLAG_US);
    atomic_store(flag, 1);
    return unused;
}

/* One thread makes the call while a stream waits; does another's work, in `ours`, go on? */
static void try_operation(const struct operation *o, CUstream waits, CUstream ours)
{
    const CUresult enqueued = wait_for_flag(waits);
    pthread_t caller, opener;
    CUresult worked;
    double began, us;

    pthread_create(&opener, NULL, raise_flag_later, NULL);
    pthread_create(&caller, NULL, o->call, NULL);
    usleep(CALL_US);
    began = now_us();
    worked = work_in(ours, FLAG_US + LONG_US);
    us = now_us() - began;
    pthread_join(caller, NULL);
    pthread_join(opener, NULL);
    device.cuStreamSynchronize(waits);
    printf("{\"reading\":\"locks\",\"call\":\"%s\",\"wait_code\":%d,\"ms\":%.1f,"
           "\"waits_for_the_stream\":%s,\"work_code\":%d,\"work_ms\":%.1f,"
           "\"blocks_others\":%s}\n",
           o->name, (int)enqueued, (call_ended - call_began) * 1e-3,
           word(call_ended - call_began > LONG_US), (int)worked, us * 1e-3, word(us > LONG_US));
}

static void read_locks(void)
{
    CUstream waits, ours;

    open_with_flag();
    device.cuCtxGetCurrent(&context);
    waits = new_stream(normal);
    ours = new_stream(high);
    freed = device_alloc(LARGE, 0);
    device.cuMemAllocHost(&freed_host, HOST_BYTES);
    registered = get_shared(HOST_BYTES);
    work_in(ours, FLAG_US); /* what the driver loads at first */
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        try_operation(&operations[i], waits, ours);
}

enum { STREAMS = 40, STUCK_US = 60000 };

static void count_stuck(const char *theirs, int priority)
{
    const char *connections = getenv("CUDA_DEVICE_MAX_CONNECTIONS");
    CUstream ours = new_stream(high), streams[STREAMS];
    CUresult code = CUDA_SUCCESS;
    int stuck = 0, first = -1;

    for (int i = 0; i < STREAMS; i++)
        streams[i] = new_stream(priority);
    for (int i = 0; i < STREAMS; i++) {
        code = wait_for_flag(streams[i]);
        device.cuMemsetD8Async(at(small), 2, SMALL, streams[i]);
        if (work_in(ours, STUCK_US) == CUDA_ERROR_NOT_READY && stuck++ == 0)
            first = i;
        atomic_store(flag, 1);
        device.cuStreamSynchronize(streams[i]);
        device.cuStreamSynchronize(ours);
    }
    for (int i = 0; i < STREAMS; i++)
        device.cuStreamDestroy(streams[i]);
    printf("{\"reading\":\"queues\",\"connections\":\"%s\",\"theirs\":\"%s\",\"wait_code\":%d,"
           "\"streams\":%d,\"stuck\":%d,\"first\":%d}\n",
           connections ? connections : "", theirs, (int)code, STREAMS, stuck, first);
}

static void read_queues(void)
{
    open_with_flag();
    count_stuck("normal", normal);
    count_stuck("high", high);
}

static void read_more_queues(void)
{
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
    read_queues();
}

/* ---- All ----------------------------------------------------------------------------- */

static const struct reading {
    const char *name;
    void (*read)(void);
    unsigned limit_s;
} readings[] = {
    { "driver", read_driver, 15 },      { "ipc", read_ipc, 10 },
    { "events", read_events, 20 },      { "descriptors", read_descriptors, 10 },
    { "locks", read_locks, 15 },        { "queues", read_queues, 10 },
    { "queues", read_more_queues, 10 },
};

/* Its exit code; 124: it was ended at its limit. */
static int take(const struct reading *reading)
{
    const pid_t child = fork();
    int status = 0;

    if (child == 0) {
        alarm(reading->limit_s);
        reading->read();
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        return 2;
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    return WTERMSIG(status) == SIGALRM ? 124 : 128 + WTERMSIG(status);
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0); /* what has been read stays, however this ends */
    for (size_t i = 0; i < sizeof readings / sizeof *readings; i++) {
        const int code = take(&readings[i]);

        if (code != 0)
            printf("{\"reading\":\"%s\",\"ended_with\":%d}\n", readings[i].name, code);
        if (code == 1 && i == 0)
            return 1;
    }
    return 0;
}
