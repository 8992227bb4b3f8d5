/* SPDX-License-Identifier: Apache-2.0 */
/* libcuda_share.c - the fake driver's memory in several processes.
 *
 * A handle says where its owner has the file open; /proc opens it once more.  So
 * nothing has a name, and a killed process leaves nothing behind. */
#include "tests/fake/libcuda.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct ticket {
    uint64_t magic;
    uint64_t base, bytes;
    uint64_t inode; /* the number of the descriptor may be another file's by now */
    uint64_t shared;
    int32_t pid, file;
    int32_t machine_device;
};

#define MAGIC 0x656c646e61686370u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of mappings that come and go */

_Static_assert(sizeof(struct ticket) <= sizeof(CUipcMemHandle), "a ticket is a handle");

CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr at)
{
    struct ticket ticket = { .magic = MAGIC, .pid = getpid() };
    struct block *block;
    CUcontext context;
    struct stat file;
    const CUresult result = fake_begin_in(__func__, &context);

    if (result != CUDA_SUCCESS)
        return result;
    if (!fake_allows_ipc())
        return CUDA_ERROR_NOT_SUPPORTED;
    block = block_of(at);
    if (!block || block->kind != PLAIN || fstat(block->file, &file) < 0)
        return CUDA_ERROR_INVALID_VALUE;
    ticket.base = block->base;
    ticket.bytes = block->bytes;
    ticket.shared = block->shared;
    ticket.inode = file.st_ino;
    ticket.file = block->file;
    ticket.machine_device = fake_machine_device(block->device);
    memset(handle, 0, sizeof *handle);
    memcpy(handle, &ticket, sizeof ticket);
    return CUDA_SUCCESS;
}

/* -1: the owner is gone, or has freed it. */
static int open_file(const struct ticket *ticket)
{
    char path[64];
    struct stat file;
    int fd;

    snprintf(path, sizeof path, "/proc/%d/fd/%d", ticket->pid, ticket->file);
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return -1;
    if (fstat(fd, &file) == 0 && file.st_ino == ticket->inode)
        return fd;
    close(fd);
    return -1;
}

static CUresult import(CUcontext context, const struct ticket *ticket, CUdeviceptr *at)
{
    struct block *block = block_import_of(ticket->inode);
    const int fd = open_file(ticket);
    CUresult result = CUDA_ERROR_INVALID_HANDLE;

    if (fd < 0)
        return fake_setting_is("FAKE_CUDA_GONE", "device") && kill(ticket->pid, 0) < 0
                   ? CUDA_ERROR_INVALID_DEVICE
                   : result;
    if (block) {
        result = CUDA_SUCCESS;
    } else if (block_import_over(ticket->pid, ticket->base, ticket->bytes, ticket->shared)) {
        result = CUDA_ERROR_ALREADY_MAPPED; /* freed since, as UCX reports */
    } else {
        result = block_create(context, IMPORTED, ticket->bytes, fd, ticket->base, &block);
        if (result == CUDA_SUCCESS) {
            block->inode = ticket->inode;
            block->owner = ticket->pid;
            block->theirs = ticket->base;
            block->shared = ticket->shared;
            block->device = fake_device_of_machine(ticket->machine_device);
        }
    }
    if (result == CUDA_SUCCESS) {
        block->opened++;
        *at = block->base;
    }
    close(fd);
    return result;
}

CUresult cuIpcOpenMemHandle(CUdeviceptr *at, CUipcMemHandle handle, unsigned flags)
{
    struct ticket ticket;
    CUcontext context;
    CUresult result = fake_begin_in(__func__, &context);

    if (result != CUDA_SUCCESS)
        return result;
    if (!fake_allows_ipc())
        return CUDA_ERROR_NOT_SUPPORTED;
    memcpy(&ticket, &handle, sizeof ticket);
    if (flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS || ticket.magic != MAGIC)
        return CUDA_ERROR_INVALID_VALUE;
    if (ticket.pid == getpid())
        return CUDA_ERROR_INVALID_CONTEXT; /* as the real one does */
    if (fake_device_of_machine(ticket.machine_device) < 0)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!fake_can_reach(context->device, fake_device_of_machine(ticket.machine_device)))
        return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    pthread_mutex_lock(&lock);
    result = import(context, &ticket, at);
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult cuIpcCloseMemHandle(CUdeviceptr at)
{
    CUcontext context;
    CUresult result = fake_begin_in(__func__, &context);
    struct block *block;
    int keeps;

    if (result != CUDA_SUCCESS)
        return result;
    keeps = fake_keep_driver();
    fake_wait_for_words(); /* as cuMemFree(): the real one may */
    fake_release_driver(keeps);
    pthread_mutex_lock(&lock);
    block = block_of(at);
    if (!block || block->kind != IMPORTED || block->base != at)
        result = CUDA_ERROR_INVALID_VALUE;
    else if (--block->opened == 0)
        block_destroy(block);
    pthread_mutex_unlock(&lock);
    return result;
}
