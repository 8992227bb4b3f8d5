/* SPDX-License-Identifier: Apache-2.0 */
/* libcuda_peers.c - what lies between the fake driver's GPUs, and copies from one to another.
 *
 * Two GPUs reach each other if the matrix says so and their peer access is enabled; all other
 * copies go through the host's memory, in two steps and at a known rate at most, so that a test can
 * tell the ways apart by a time that no busy machine makes shorter. */
#include "tests/fake/libcuda.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CALLED = 24 }; /* bytes of a name */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned char enabled[MAX_DEVICES][MAX_DEVICES]; /* by numbers in this process */

/* ---- Peer access ---------------------------------------------------------------- */

/* Is the pair in a list such as "0-1,2-3"?  Both ways round; numbers are of the machine. */
static int is_listed(const char *list, int one, int other)
{
    while (list && *list) {
        int a, b, length = 0;

        if (sscanf(list, "%d-%d%n", &a, &b, &length) < 2)
            fake_dies("\"%s\" is no list of pairs like 0-1,2-3", list);
        if ((a == one && b == other) || (a == other && b == one))
            return 1;
        list += length + (list[length] == ',');
    }
    return 0;
}

static int reaches(int device, int peer)
{
    const char *list = getenv("FAKE_CUDA_PEERS");

    return device != peer
           && (!list || is_listed(list, fake_machine_device(device), fake_machine_device(peer)));
}

static int is_corrupt(int device, int peer)
{
    return is_listed(getenv("FAKE_CUDA_PEERS_CORRUPT"), fake_machine_device(device),
                     fake_machine_device(peer));
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
    CUresult result = fake_begin_device(__func__, device);

    if (result == CUDA_SUCCESS)
        result = fake_begin_device(__func__, peer);
    if (result == CUDA_SUCCESS)
        *can = reaches(device, peer);
    return result;
}

CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attribute, CUdevice device,
                                 CUdevice peer)
{
    CUresult result = fake_begin_device(__func__, device);

    if (result == CUDA_SUCCESS)
        result = fake_begin_device(__func__, peer);
    if (result != CUDA_SUCCESS)
        return result;
    if (device == peer)
        return CUDA_ERROR_INVALID_DEVICE;
    *value = attribute == CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED          ? reaches(device, peer)
             : attribute == CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED ? reaches(device, peer)
                                                                            : 0;
    return CUDA_SUCCESS;
}

/* Of the current context's GPU to the other's memory; both ways round need two calls. */
static CUresult change_access(const char *function, CUcontext peer, int on)
{
    CUresult result;
    CUcontext context;

    result = fake_begin_in(function, &context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!peer || peer == context)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!reaches(context->device, peer->device))
        return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    pthread_mutex_lock(&lock);
    if (enabled[context->device][peer->device] == on)
        result = on ? CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
    enabled[context->device][peer->device] = (unsigned char)on;
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags)
{
    return flags ? CUDA_ERROR_INVALID_VALUE : change_access(__func__, peer, 1);
}

CUresult cuCtxDisablePeerAccess(CUcontext peer)
{
    return change_access(__func__, peer, 0);
}

static int is_enabled(int device, int peer)
{
    int is;

    pthread_mutex_lock(&lock);
    is = enabled[device][peer] || enabled[peer][device];
    pthread_mutex_unlock(&lock);
    return is;
}

int fake_can_reach(int device, int peer)
{
    return device == peer || reaches(device, peer);
}

/* What was imported is mapped for the context that did. */
int fake_touches(CUcontext context, const struct block *block)
{
    int touches;

    if (block_is_host(block) || block->device == context->device)
        return 1;
    if (block->kind == IMPORTED)
        return reaches(context->device, block->device);
    pthread_mutex_lock(&lock);
    touches = enabled[context->device][block->device];
    pthread_mutex_unlock(&lock);
    return touches;
}

int fake_spoils(CUcontext context, const struct block *block)
{
    return block->device != context->device && is_corrupt(context->device, block->device);
}

/* ---- Copies ------------------------------------------------------------------------ */

static void run_direct(struct op *op)
{
    memmove(op->to, op->from, op->bytes);
}

/* As where the IOMMU sends a GPU's writes elsewhere: nothing fails, and nothing is right. */
static void run_corrupt(struct op *op)
{
    memmove(op->to, op->from, op->bytes);
    op->to[op->bytes / 2] ^= 1;
}

/* A GB/s is a byte in a nanosecond. */
static void run_by_the_host(struct op *op)
{
    const uint64_t ns = (uint64_t)op->bytes;
    const struct timespec time = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) };

    nanosleep(&time, NULL);
    memmove(op->to, op->from, op->bytes);
}

void (*fake_copy_between(const struct block *to, const struct block *from))(struct op *op)
{
    const int imported = to->kind == IMPORTED || from->kind == IMPORTED;

    if (from->device == to->device)
        return run_direct;
    if (imported ? !reaches(from->device, to->device) : !is_enabled(from->device, to->device))
        return run_by_the_host;
    return is_corrupt(from->device, to->device) ? run_corrupt : run_direct;
}

CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                           CUcontext from_context, size_t bytes, CUstream stream)
{
    CUresult result = fake_begin_enqueue(__func__, &stream);
    const struct block *there = block_of(to), *here = block_of(from);
    struct op *op;

    if (result != CUDA_SUCCESS)
        return result;
    if (!to_context || !from_context)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!there || !here || there->device != to_context->device
        || here->device != from_context->device)
        return CUDA_ERROR_INVALID_VALUE;
    op = op_create(fake_copy_between(there, here));
    op->bytes = bytes;
    op->to = op_uses(op, to, bytes);
    op->from = op_uses(op, from, bytes);
    if (!op->to || !op->from)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS || bytes == 0)
        op_destroy(op);
    else
        fake_enqueue(stream, op);
    return result;
}

/* ---- Their names -------------------------------------------------------------------- */

CUresult cuDeviceGetName(char *name, int size, CUdevice device)
{
    const CUresult result = fake_begin_device(__func__, device);

    if (result == CUDA_SUCCESS)
        snprintf(name, (size_t)size, "Fake GPU");
    return result;
}

/* One behind the other, as the machine counts them: the first is at 0000:01:00.0. */
CUresult cuDeviceGetPCIBusId(char *address, int size, CUdevice device)
{
    char text[CALLED];
    const CUresult result = fake_begin_device(__func__, device);

    if (result != CUDA_SUCCESS)
        return result;
    snprintf(text, sizeof text, "0000:%02x:00.0", (unsigned)fake_machine_device(device) + 1);
    if ((size_t)size <= strlen(text))
        return CUDA_ERROR_INVALID_VALUE;
    strcpy(address, text);
    return CUDA_SUCCESS;
}
