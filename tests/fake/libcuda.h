/* SPDX-License-Identifier: Apache-2.0 */
/* libcuda.h - a CUDA driver without a GPU, for tests: what its files share.
 *
 * Built as libcuda.so.1 from the real <cuda.h>, so a wrong prototype is a compile
 * error.  It is stricter than the real one wherever that leaves a choice:
 *  - Device memory is an address range that nothing can touch: a process that dereferences
 *    a device pointer dies.  The driver itself works on an alias of it.
 *  - What is enqueued runs on the stream's own thread, and always a little later
 *    than it could; the settings below make it far later.
 *  - To free memory that something enqueued still uses, here or in a process that
 *    imported it, ends the program with a sentence; so does the launch of a graph
 *    that uses memory which was freed.
 *  - While a thread captures a stream, every call that might be unsafe is (libcuda_capture.c).
 *
 * Settings are read from the environment by each cuInit():
 *   FAKE_CUDA_DEVICES=n        so many GPUs (1); CUDA_VISIBLE_DEVICES renumbers them
 *   FAKE_CUDA_LAG_RANK=r       in the process whose RANK is r ("all": in each) everything
 *   FAKE_CUDA_LAG_US=us        enqueued starts so late (3000)
 *   FAKE_CUDA_IPC=0            no memory can be exported or imported
 *   FAKE_CUDA_FAIL_ALLOC=n     the n-th allocation from now on finds no memory
 *   FAKE_CUDA_FAIL=name:n      the n-th call of that function from now on fails
 *   FAKE_CUDA_ORDER=seed       what may come in any order does: work starts at a time that is
 *                              drawn, a launch's blocks run in an order that is, and a query
 *                              may learn late that something is done
 * and, as often as they are asked for:
 *   FAKE_CUDA_MAPPED=stays     to free what another living process has mapped ends the program
 *   FAKE_CUDA_ALLOC=waits      cuMemAlloc() waits for all streams that wait for words, as
 *                              cuMemFree() does
 *   FAKE_CUDA_KERNELS=02       no module has code for other GPUs than these (a digit each)
 *   FAKE_CUDA_VERSION=12040    the CUDA that the driver is of
 *   FAKE_CUDA_ADDRESSES=own    host memory that was registered has to be asked for its address
 *   FAKE_CUDA_WORDS=0          no stream can wait for a word in memory
 *   FAKE_CUDA_PEERS=0-1,2-3    who reaches whom (all); other copies go through the host at 1 GB/s,
 *                              and nothing else touches the others' memory
 *   FAKE_CUDA_PEERS_CORRUPT=0-1  between whom a direct copy or a kernel ends with a wrong bit
 * What a real driver may do, and no program should need it not to (scripts/hostile):
 *   FAKE_CUDA_LOCK=kept        a call that frees, registers or unmaps keeps the driver's lock while
 *                              it waits for the device: meanwhile no other thread gets into the
 *                              driver; FAKE_CUDA_LOCK_SAYS=file: it is made when such a call finds
 *                              a stream that waits for a word
 *   FAKE_CUDA_QUEUES=shared    the streams of a context share CUDA_DEVICE_MAX_CONNECTIONS (8)
 *                              queues, those of high priority as many others; what is in one queue
 *                              runs in the order in which it was enqueued
 *   FAKE_CUDA_BLOCKS=shared    allocations of 1 MiB at most lie in blocks of 2 MiB, which are
 *                              exported whole
 *   FAKE_CUDA_PAGEABLE=waits   a copy from or to host memory that is not registered waits until it
 *                              is done
 *   FAKE_CUDA_GONE=device      a handle of a process that is gone is CUDA_ERROR_INVALID_DEVICE
 *   FAKE_CUDA_ADDRESSES=own, FAKE_CUDA_ORDER=seed  as above */
#ifndef TESTS_FAKE_LIBCUDA_H
#define TESTS_FAKE_LIBCUDA_H

#pragma GCC visibility push(default) /* the driver's functions; all else is hidden */
#include <cuda.h>
#pragma GCC visibility pop

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tests/fake/kernels.h"

enum { MAX_DEVICES = 16, FAKE_PAGE = 4096 };

struct CUctx_st {
    int device;         /* its number in this process */
    CUstream legacy;    /* the default stream */
    _Atomic int failed; /* a CUresult: an error of the device ends its context */
};

/* ---- libcuda.c ---- */

/* First in every function: is there a driver, and shall this call fail? */
CUresult fake_begin(const char *function);
/* And is there such a device? */
CUresult fake_begin_device(const char *function, int device);
/* And the current context, which must be there and sound. */
CUresult fake_begin_in(const char *function, CUcontext *context);
/* cuMemAlloc is also cuMemAlloc_v2. */
int fake_is_named(const char *function, const char *name);
int fake_lag_us(void);
int fake_allows_ipc(void);
/* Which GPU of the machine has this number here, and the other way round (-1: none). */
int fake_machine_device(int device);
int fake_device_of_machine(int machine_device);
/* Prints the sentence and ends the program. */
_Noreturn void fake_dies(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- libcuda_hostile.c ---- */

/* Has this setting that value now? */
int fake_setting_is(const char *name, const char *value);
/* Waits while another thread keeps the driver's lock. */
void fake_wait_for_driver(void);
/* FAKE_CUDA_LOCK: no other thread gets into the driver until it is released with what this returns.
 */
int fake_keep_driver(void);
void fake_release_driver(int keeps);
/* Waits until no stream of this process waits for a word, as a driver does that waits for all work.
 */
void fake_wait_for_words(void);
/* FAKE_CUDA_ORDER; 0: nothing is drawn. */
void fake_seed(uint32_t seed);
/* 0 to below - 1; always 0 without a seed. */
unsigned fake_draw(unsigned below);

/* ---- libcuda_memory.c ---- */

enum block_kind {
    PLAIN,    /* cuMemAlloc */
    POOLED,   /* cuMemAllocAsync: of no context, not exportable */
    MANAGED,  /* cuMemAllocManaged: the host may touch it */
    PINNED,   /* cuMemAllocHost: the host's */
    TAKEN_IN, /* cuMemHostRegister: the host's, and none of ours */
    IMPORTED, /* of another process */
};

/* One allocation. */
struct block {
    struct block *next;
    enum block_kind kind;
    CUdeviceptr base;
    size_t bytes;
    unsigned char *alias;  /* where the driver reads and writes it */
    struct in_use *in_use; /* before alias, shared with those that import it */
    int file;              /* its memory; -1: not exportable, or not ours */
    CUcontext context;     /* that allocated or imported it */
    int device;            /* that has it */
    unsigned long long id;
    int opened;                /* IMPORTED: how often */
    ino_t inode;               /* IMPORTED: of the owner's file */
    unsigned long long shared; /* FAKE_CUDA_BLOCKS: the block of 2 MiB that it lies in; 0: none */
    pid_t owner;               /* IMPORTED: the exporting process, */
    CUdeviceptr theirs;        /* from where */
};

/* A new one in the list, or the error.  file: IMPORTED, what is mapped. */
CUresult block_create(CUcontext context, enum block_kind kind, size_t bytes, int file,
                      CUdeviceptr not_at, struct block **block);
/* The block of an allocation's first byte, out of the list, with nothing left of it but this. */
void block_destroy(struct block *block);
/* The block with all these bytes, marked as in use until block_done(); NULL: there is none. */
struct block *block_use(CUdeviceptr at, size_t bytes);
void block_done(struct block *block);
int block_was_freed(const struct block *block); /* by its owner */
/* The allocation with this byte; NULL: none.  Valid until it is freed. */
struct block *block_of(CUdeviceptr at);
struct block *block_import_of(ino_t inode);
/* Is something mapped that lay in this place in that process?  shared: of the new one. */
int block_import_over(pid_t owner, CUdeviceptr base, size_t bytes, unsigned long long shared);
/* The host's own memory becomes one.  CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED: some of it is. */
CUresult block_take_in(CUcontext context, CUdeviceptr at, size_t bytes);
static inline unsigned char *block_alias(const struct block *block, CUdeviceptr at)
{
    return block->alias + (at - block->base);
}
static inline int block_is_host(const struct block *block)
{
    return block->kind == MANAGED || block->kind == PINNED || block->kind == TAKEN_IN;
}

/* ---- libcuda_peers.c ---- */

/* May what runs in this context touch that block?  Else it kills the context. */
int fake_touches(CUcontext context, const struct block *block);
/* Do other bytes arrive there, or from there, than were sent? */
int fake_spoils(CUcontext context, const struct block *block);
/* By its number in this process; itself too. */
int fake_can_reach(int device, int peer);
struct op;
/* How a copy from one to the other is done. */
void (*fake_copy_between(const struct block *to, const struct block *from))(struct op *op);

/* ---- libcuda_op.c ---- */

/* A place in a stream: all before it is done when so many are. */
struct point {
    CUstream stream;
    uint64_t number;
};

/* Memory of a graph's. */
struct kept {
    CUdeviceptr base;
    unsigned long long id;
};

/* Something enqueued; the stream frees it. */
struct op {
    struct op *next;
    void (*run)(struct op *op); /* NULL: only a place in the stream */
    int64_t start_us;           /* not earlier */
    struct point *after;        /* other streams' work that comes first */
    int afters;
    struct block **used;
    int uses;
    struct kept *kept; /* in a graph: instead of used, so that they can be freed */
    int keeps;
    unsigned char *to;
    const unsigned char *from; /* NULL: fills */
    size_t bytes;
    unsigned char fill;
    uint32_t value; /* of a word, */
    unsigned flags; /* and how it is compared */
    int is_wait;    /* for a word */
    host_kernel_fn *kernel;
    void *args;
    size_t args_bytes;
    unsigned blocks, threads;
    CUhostFn call;
    void *argument;   /* of call; the caller's */
    CUresult failure; /* with which it ends its context */
};

struct op *op_create(void (*run)(struct op *op));
/* The bytes there for the op to use; NULL: they are no device memory. */
unsigned char *op_uses(struct op *op, CUdeviceptr at, size_t bytes);
void op_waits_for(struct op *op, const struct point *point);
void op_destroy(struct op *op);
/* Of a graph: it uses nothing until it is enqueued; then another one like it.  Who launches what
 * uses freed memory ends the program. */
void op_keep(struct op *op);
/* And again in use: ends the program if some of it was freed meanwhile, also by its owner in
 * another process.  what: the op. */
void op_use_kept(struct op *op, const char *what);
struct op *op_again(const struct op *kept);

/* ---- libcuda_stream.c ---- */

/* As fake_begin_in(); the handle becomes the stream that it means. */
CUresult fake_begin_stream(const char *function, CUstream *stream);
/* And something may be enqueued there. */
CUresult fake_begin_enqueue(const char *function, CUstream *stream);
/* The stream of the context that the handle means; NULL: it is none of it. */
CUstream fake_stream(CUcontext context, CUstream handle);
CUcontext fake_context_of(CUstream stream);
int fake_is_blocking(CUstream stream); /* the default stream, and those that wait for it */
/* Gives the place behind it; of a stream that is captured: none. */
struct point fake_enqueue(CUstream stream, struct op *op);
CUresult fake_query(const struct point *point);
void fake_wait(const struct point *point);
int fake_same_context(const struct point *one, const struct point *other);
/* For all that was enqueued until now; the context's error, if it has one. */
CUresult fake_wait_for_stream(CUstream stream);
CUresult fake_wait_for_all(CUcontext context);
CUresult fake_add_stream(CUcontext context, int blocking, int priority, CUstream *stream);

/* ---- libcuda_word.c ---- */

int fake_waits_for_words(void); /* how many, of this process's streams */
void fake_will_wait_for_word(void);

/* ---- libcuda_capture.c ---- */

enum { CAPTURED_STREAMS = 16 };

/* An event that was recorded in a stream that is captured: how far the capture's streams were. */
struct captured {
    unsigned long long capture; /* 0: none */
    uint64_t seen[CAPTURED_STREAMS];
};

/* May this thread make this call, with what is captured now? */
CUresult capture_allows(const char *function);
/* May something be enqueued there; may it be asked, or anything of the context? */
CUresult capture_admits(CUstream stream);
CUresult capture_asks(CUstream stream);
CUresult capture_asks_all(CUcontext context);
CUresult capture_asks_event(const struct captured *event);
int capture_has(CUstream stream);
/* 1: the stream is captured, and the op or event belongs to that. */
int capture_takes(CUstream stream, struct op *op);
int capture_records(CUstream stream, struct captured *event);
CUresult capture_waits(CUstream stream, const struct captured *event, int *taken);

/* ---- libcuda_graph.c ---- */

CUgraph graph_create(void);
void graph_add(CUgraph graph, struct op *op);

#endif
