/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/cuda/device.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct device_functions device;

#define STRING(name) #name
#define NAME_OF(name) STRING(name)

static const struct {
    const char *name;
    void **function;
} places[] = {
#define PLACE(name) { NAME_OF(name), (void **)&device.name },
    DEVICE_FUNCTIONS(PLACE)
#undef PLACE
};

static const char *driver_name(void)
{
    const char *name = getenv("CT_TEST_DRIVER");

    return name && *name ? name : FAKE_DRIVER;
}

int device_is_fake(void)
{
    return !strcmp(driver_name(), FAKE_DRIVER);
}

static int loaded;

/* Never closed: a program has its driver to the end. */
static void load(void)
{
    void *library = dlopen(driver_name(), RTLD_NOW | RTLD_GLOBAL);

    for (size_t i = 0; library && i < sizeof places / sizeof places[0]; i++) {
        *places[i].function = dlsym(library, places[i].name);
        if (!*places[i].function)
            return;
    }
    loaded = library != NULL;
}

int device_load(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT; /* ranks may be threads */

    return pthread_once(&once, load) == 0 && loaded;
}

int device_open(int ordinal)
{
    CUcontext context;

    return device_load() && device.cuInit(0) == CUDA_SUCCESS
           && device.cuDevicePrimaryCtxRetain(&context, ordinal) == CUDA_SUCCESS
           && device.cuCtxSetCurrent(context) == CUDA_SUCCESS;
}

int device_open_late(int ordinal, int us)
{
    char text[16];

    snprintf(text, sizeof text, "%d", us);
    setenv("FAKE_CUDA_LAG_RANK", "all", 1);
    setenv("FAKE_CUDA_LAG_US", text, 1);
    return device_open(ordinal);
}

void *device_alloc(size_t bytes, unsigned char byte)
{
    CUdeviceptr at;

    if (device.cuMemAlloc(&at, bytes) != CUDA_SUCCESS
        || device.cuMemsetD8Async(at, byte, bytes, NULL) != CUDA_SUCCESS
        || device.cuStreamSynchronize(NULL) != CUDA_SUCCESS)
        return NULL;
    return (void *)(uintptr_t)at;
}

void device_free(void *memory)
{
    device.cuMemFree((CUdeviceptr)(uintptr_t)memory);
}

int device_allocations_here(void)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[512];
    int count = 0;

    while (maps && fgets(line, sizeof line, maps))
        count += strstr(line, "memfd:fake-cuda") != NULL;
    if (maps)
        fclose(maps);
    return count;
}

CUresult device_put(CUdeviceptr to, const void *from, size_t bytes)
{
    const CUresult result = device.cuMemcpyHtoD(to, from, bytes);

    return result == CUDA_SUCCESS ? device.cuStreamSynchronize(NULL) : result;
}

static void CUDA_CB stand_still(void *arg)
{
    struct gate *gate = arg;

    while (sem_wait(&gate->open) != 0 && errno == EINTR)
        ;
}

int gate_close(struct gate *gate, void *stream)
{
    return sem_init(&gate->open, 0, 0) == 0
           && device.cuLaunchHostFunc(stream, stand_still, gate) == CUDA_SUCCESS;
}

void gate_open(struct gate *gate)
{
    sem_post(&gate->open);
}

/* What the child says is kept from the terminal, and looked through. */
int device_ends(void (*what)(void), const char *word)
{
    char said[2000] = "";
    size_t length = 0;
    int status, pipe_ends[2];
    pid_t child;
    ssize_t got;

    if (pipe(pipe_ends) < 0 || (child = fork()) < 0)
        return 0;
    if (child == 0) {
        dup2(pipe_ends[1], STDERR_FILENO);
        signal(SIGSEGV, SIG_DFL); /* a sanitizer's report would be as good */
        what();
        _exit(0);
    }
    close(pipe_ends[1]);
    while (length < sizeof said - 1
           && (got = read(pipe_ends[0], said + length, sizeof said - 1 - length)) > 0)
        length += (size_t)got;
    close(pipe_ends[0]);
    return waitpid(child, &status, 0) == child && WIFSIGNALED(status) && strstr(said, word);
}
