/* SPDX-License-Identifier: Apache-2.0 */
/* libcuda_memory.c - the fake driver's allocations.
 *
 * Device addresses come from a range that is reserved and never mapped, first fit:
 * what is freed and allocated again lies at the same place.  Where the range is
 * used from depends on the process, so that no two agree on an address by chance.
 * What is there lies in a file without a name, which vanishes with the last
 * process that has it, mapped elsewhere between two pages that nobody may touch:
 *
 *     | no access | who uses it | the bytes ... | no access | */
#include "tests/fake/libcuda.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { POISON = 0xA5, MAX_USERS = 32 };
#define ARENA ((size_t)24 << 30)
#define STEP ((size_t)1 << 20)   /* between the beginnings of two processes */
#define SHARED ((size_t)2 << 20) /* FAKE_CUDA_BLOCKS: a block that several allocations lie in */
#define SMALL ((size_t)4 << 30)  /* of the range, for these */
#define STEPS 4096

/* How many enqueued things use a block, in each process that has it, and whether it has it mapped
 * from another. */
struct in_use {
    struct user {
        _Atomic int pid; /* 0: free */
        _Atomic int count;
        _Atomic int mapped;
    } by[MAX_USERS];
    _Atomic int freed; /* by its owner */
};

_Static_assert(sizeof(struct in_use) <= FAKE_PAGE, "one page before the bytes");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all that follows */
static struct block *blocks;                             /* by address */
static unsigned long long last_id;
static CUdeviceptr arena, arena_end;

static size_t whole_pages(size_t bytes)
{
    return (bytes + FAKE_PAGE - 1) / FAKE_PAGE * FAKE_PAGE;
}

/* ---- Who uses it ------------------------------------------------------------ */

static struct user *ours(struct in_use *in_use)
{
    const int pid = getpid();

    for (int i = 0; i < MAX_USERS; i++) {
        int there = 0;

        if (atomic_compare_exchange_strong(&in_use->by[i].pid, &there, pid) || there == pid)
            return &in_use->by[i];
    }
    fake_dies("more than %d processes use one allocation", MAX_USERS);
}

static int is_alive(int pid)
{
    char path[32], line[256], state = 'Z';
    const char *after;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    file = fopen(path, "re");
    if (!file)
        return 0;
    if (fgets(line, sizeof line, file) && (after = strrchr(line, ')')))
        sscanf(after + 1, " %c", &state);
    fclose(file);
    return state != 'Z' && state != 'X';
}

static int must_be_unmapped(const struct block *block)
{
    const char *mapped = getenv("FAKE_CUDA_MAPPED");

    return block->kind == PLAIN && mapped && !strcmp(mapped, "stays");
}

static void check_unused(const struct block *block)
{
    const int strict = must_be_unmapped(block);

    for (int i = 0; i < MAX_USERS; i++) {
        const int count = atomic_load(&block->in_use->by[i].count);
        const int pid = atomic_load(&block->in_use->by[i].pid);

        /* Who unmaps it answers for its own use alone, an owner that frees it for everybody's;
         * what a dead process has enqueued is gone. */
        if (count > 0 && (block->kind != IMPORTED || pid == getpid()) && is_alive(pid))
            fake_dies("%zu bytes at 0x%llx are %s while %d things enqueued by process %d use them",
                      block->bytes, block->base, block->kind == IMPORTED ? "unmapped" : "freed",
                      count, pid);
        if (strict && atomic_load(&block->in_use->by[i].mapped) && is_alive(pid))
            fake_dies("%zu bytes at 0x%llx are freed while process %d has them mapped",
                      block->bytes, block->base, pid);
    }
}

/* ---- Blocks ----------------------------------------------------------------- */

static int make_arena(void)
{
    void *range = mmap(NULL, ARENA, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (range == MAP_FAILED)
        return 0;
    arena = (CUdeviceptr)(uintptr_t)range + (size_t)getpid() % STEPS * STEP;
    arena_end = (CUdeviceptr)(uintptr_t)range + ARENA;
    return 1;
}

static int is_small(size_t bytes)
{
    return bytes <= SHARED / 2 && fake_setting_is("FAKE_CUDA_BLOCKS", "shared");
}

/* The first place from there on that may be taken. */
static CUdeviceptr allowed(CUdeviceptr at, size_t bytes, CUdeviceptr not_at, int small)
{
    at += at == not_at ? FAKE_PAGE : 0;
    if (small && at / SHARED != (at + bytes - 1) / SHARED)
        at = (at / SHARED + 1) * SHARED;
    return at;
}

/* The list's lock is held.  0: the range is full. */
static CUdeviceptr find_place(size_t bytes, CUdeviceptr not_at)
{
    const int small = is_small(bytes);
    CUdeviceptr at, end;

    if (!arena && !make_arena())
        return 0;
    end = small ? arena + SMALL : arena_end;
    at = arena + (small || !fake_setting_is("FAKE_CUDA_BLOCKS", "shared") ? 0 : SMALL);
    at = allowed(at, bytes, not_at, small);
    for (const struct block *b = blocks; b && b->base < end; b = b->next) {
        const CUdeviceptr behind = b->base + whole_pages(b->bytes) + FAKE_PAGE;

        if (at + bytes + FAKE_PAGE <= b->base)
            return at;
        if (behind > at)
            at = allowed(behind, bytes, not_at, small);
    }
    return at + bytes <= end ? at : 0;
}

/* The list's lock is held.  The shared block of a new one is that of others in the same place. */
static unsigned long long shared_block(const struct block *block)
{
    if (block->kind != PLAIN || !is_small(block->bytes))
        return 0;
    for (const struct block *b = blocks; b; b = b->next)
        if (b->kind == PLAIN && b->shared && b->base / SHARED == block->base / SHARED)
            return b->shared;
    return block->id;
}

static void *map_bytes(size_t bytes, int file)
{
    const size_t inner = FAKE_PAGE + whole_pages(bytes);
    unsigned char *outer =
        mmap(NULL, inner + 2 * FAKE_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *mapped;

    if (outer == MAP_FAILED)
        return NULL;
    mapped = mmap(outer + FAKE_PAGE, inner, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_FIXED | (file < 0 ? MAP_ANONYMOUS : 0), file, 0);
    if (mapped != MAP_FAILED)
        return mapped;
    munmap(outer, inner + 2 * FAKE_PAGE);
    return NULL;
}

static int new_file(size_t bytes)
{
    const int file = memfd_create("fake-cuda", MFD_CLOEXEC);

    if (file >= 0 && ftruncate(file, (off_t)(FAKE_PAGE + whole_pages(bytes))) == 0)
        return file;
    if (file >= 0)
        close(file);
    return -1;
}

/* Frees all that was made of it so far. */
static void discard(struct block *block)
{
    if (block->kind == TAKEN_IN)
        free(block->in_use);
    else if (block->in_use)
        munmap((unsigned char *)block->in_use - FAKE_PAGE,
               whole_pages(block->bytes) + 3 * FAKE_PAGE);
    if (block->file >= 0)
        close(block->file);
    free(block);
}

/* The list's lock is held. */
static void add(struct block *block)
{
    struct block **place = &blocks;

    while (*place && (*place)->base < block->base)
        place = &(*place)->next;
    block->next = *place;
    *place = block;
}

CUresult block_create(CUcontext context, enum block_kind kind, size_t bytes, int file,
                      CUdeviceptr not_at, struct block **made)
{
    struct block *block = calloc(1, sizeof *block);

    if (!block)
        return CUDA_ERROR_OUT_OF_MEMORY;
    block->kind = kind;
    block->bytes = bytes;
    block->context = context;
    block->device = context->device;
    block->file = kind == PLAIN ? new_file(bytes) : -1;
    if (kind != PLAIN || block->file >= 0)
        block->in_use = map_bytes(bytes, kind == IMPORTED ? file : block->file);
    if (!block->in_use) {
        discard(block);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    block->alias = (unsigned char *)block->in_use + FAKE_PAGE;
    if (kind == IMPORTED)
        atomic_store(&ours(block->in_use)->mapped, 1);
    else
        memset(block->alias, POISON, whole_pages(bytes));
    pthread_mutex_lock(&lock);
    block->id = ++last_id;
    block->base =
        block_is_host(block) ? (CUdeviceptr)(uintptr_t)block->alias : find_place(bytes, not_at);
    if (block->base) {
        block->shared = shared_block(block);
        add(block);
    }
    pthread_mutex_unlock(&lock);
    if (!block->base) {
        discard(block);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *made = block;
    return CUDA_SUCCESS;
}

CUresult block_take_in(CUcontext context, CUdeviceptr at, size_t bytes)
{
    struct block *block = calloc(1, sizeof *block);
    struct block *other;

    if (!block || !(block->in_use = calloc(1, sizeof *block->in_use)))
        fake_dies("no memory");
    block->kind = TAKEN_IN;
    block->base = at;
    block->bytes = bytes;
    block->alias = (unsigned char *)(uintptr_t)at;
    block->context = context;
    block->device = context->device;
    block->file = -1;
    pthread_mutex_lock(&lock);
    block->id = ++last_id;
    for (other = blocks; other && (other->base >= at + bytes || at >= other->base + other->bytes);)
        other = other->next;
    if (!other)
        add(block);
    pthread_mutex_unlock(&lock);
    if (!other)
        return CUDA_SUCCESS;
    discard(block);
    return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
}

void block_destroy(struct block *block)
{
    struct block **place = &blocks;

    if (block->kind != IMPORTED) /* first: who begins to use it now sees that */
        atomic_store(&block->in_use->freed, 1);
    check_unused(block);
    pthread_mutex_lock(&lock);
    while (*place != block)
        place = &(*place)->next;
    *place = block->next;
    pthread_mutex_unlock(&lock);
    if (block->kind == IMPORTED)
        atomic_store(&ours(block->in_use)->mapped, 0);
    discard(block);
}

static struct block *find(CUdeviceptr at)
{
    struct block *block = blocks;

    while (block && (at < block->base || at >= block->base + block->bytes))
        block = block->next;
    return block;
}

struct block *block_of(CUdeviceptr at)
{
    struct block *block;

    pthread_mutex_lock(&lock);
    block = find(at);
    pthread_mutex_unlock(&lock);
    return block;
}

struct block *block_import_of(ino_t inode)
{
    struct block *block;

    pthread_mutex_lock(&lock);
    block = blocks;
    while (block && (block->kind != IMPORTED || block->inode != inode))
        block = block->next;
    pthread_mutex_unlock(&lock);
    return block;
}

/* A block of 2 MiB is mapped whole, and one at a time may be in a place. */
static int is_over(const struct block *block, CUdeviceptr base, size_t bytes,
                   unsigned long long shared)
{
    return block->shared || shared
               ? block->theirs / SHARED == base / SHARED && block->shared != shared
               : block->theirs < base + bytes && base < block->theirs + block->bytes;
}

int block_import_over(pid_t owner, CUdeviceptr base, size_t bytes, unsigned long long shared)
{
    struct block *block;

    pthread_mutex_lock(&lock);
    block = blocks;
    while (block
           && (block->kind != IMPORTED || block->owner != owner
               || !is_over(block, base, bytes, shared)))
        block = block->next;
    pthread_mutex_unlock(&lock);
    return block != NULL;
}

struct block *block_use(CUdeviceptr at, size_t bytes)
{
    struct block *block;

    pthread_mutex_lock(&lock);
    block = find(at);
    if (block && bytes > block->bytes - (at - block->base))
        block = NULL;
    if (block)
        atomic_fetch_add(&ours(block->in_use)->count, 1);
    pthread_mutex_unlock(&lock);
    return block;
}

int block_was_freed(const struct block *block)
{
    return atomic_load(&block->in_use->freed);
}

void block_done(struct block *block)
{
    atomic_fetch_sub(&ours(block->in_use)->count, 1);
}
