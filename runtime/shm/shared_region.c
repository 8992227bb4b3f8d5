/* SPDX-License-Identifier: Apache-2.0 */
/* shared_region.c - parts of the shared file, mapped while they are in use.
 *
 * A read-write lock guards the list of regions: calls read it, ct_mem_alloc() and ct_mem_free()
 * change it.  Until a region exists, a call reads only one flag.  The pages of a part are allocated
 * when the part is created, so that a lack of memory is reported then.  ct_mem_free() frees the
 * pages by punching a hole into the file, even if other ranks still map them. */
#include "runtime/shm/shared_region.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/shm/host_segment.h"
#include "runtime/util/memory_file.h"
#include "runtime/util/log.h"

#ifndef MADV_POPULATE_WRITE
/* Since Linux 5.14; older kernels return EINVAL, and the pages are then allocated when touched. */
#define MADV_POPULATE_WRITE 23
#endif

struct region {
    struct region *next;
    char *base;   /* start of the mapping, which has all parts */
    size_t bytes; /* of the mapping */
    char *own;
    size_t own_bytes;
    uint64_t offset; /* of base in the file; 0 if the region is not shared */
    int cut_off;     /* true once some pages are private; the region is then never offered again */
    int our_own;
    uint64_t group;
    uint64_t members[NODE_SET_WORDS];
};

static size_t in_pages(size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);

    return (bytes + page - 1) / page * page;
}

size_t region_part(size_t bytes)
{
    if (bytes > SIZE_MAX / 4 / NODE_MOST)
        return 0;
    return in_pages(bytes > 0 ? bytes : 1);
}

uint64_t region_reserve(struct node *node, size_t bytes)
{
    uint64_t at;

    if (!node->base || node->file_bytes == node->bytes || node->size > NODE_MOST)
        return 0;
    at = atomic_fetch_add(&node->head->given, bytes) + in_pages(node->bytes);
    return at + bytes > node->file_bytes ? 0 : at;
}

static ct_status region_no_memory(size_t bytes, int cause)
{
    return ct_fail(cause == ENOMEM || cause == EFAULT ? CT_ERR_NOMEM : CT_ERR_SYSTEM,
                   "%zu bytes of shared memory: %s", bytes,
                   cause == EFAULT ? "the host has no pages left for it" : strerror(cause));
}

static void *map_private(size_t bytes)
{
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (base == MAP_FAILED)
        return NULL;
    madvise(base, bytes, MADV_DONTDUMP);
    return base;
}

static ct_status region_map_pages(struct node *node, const struct region_plan *plan,
                                  struct region *r)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;
    int full;

    r->bytes = plan->offset ? plan->bytes * (size_t)plan->parts : plan->bytes;
    r->own_bytes = plan->bytes;
    r->offset = plan->offset;
    r->group = plan->group;
    r->our_own = plan->our_own;
    r->base = plan->offset ? memory_map(node->fd, plan->offset, r->bytes) : map_private(r->bytes);
    if (!r->base)
        return region_no_memory(r->bytes, errno);
    r->own = plan->offset ? r->base + plan->bytes * (size_t)plan->own : r->base;
    full = plan->offset
               ? node_reserve(node, plan->offset + (uint64_t)(r->own - r->base), plan->bytes)
               : 0;
    if (full)
        return region_no_memory(plan->bytes, full);
    for (int i = 0; plan->offset && i < plan->parts; i++)
        node_set_add(r->members, plan->locals[i]);
    if (madvise(r->own, plan->bytes, MADV_POPULATE_WRITE) < 0) {
        if (errno != EINVAL)
            return region_no_memory(plan->bytes, errno);
        log_missing(&said, "MADV_POPULATE_WRITE",
                    "the kernel allocates pages when they are touched");
    }
    return CT_OK;
}

static void region_free(struct node *node, struct region *r)
{
    if (!r)
        return;
    if (r->own && r->offset)
        fallocate(node->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  (off_t)(r->offset + (uint64_t)(r->own - r->base)), (off_t)r->own_bytes);
    if (r->base)
        munmap(r->base, r->bytes);
    free(r);
}

ct_status region_map(struct node *node, const struct region_plan *plan, void **own)
{
    struct region *r = calloc(1, sizeof *r);
    ct_status status;

    if (!r)
        return ct_fail(CT_ERR_NOMEM, "no memory to note a region");
    status = region_map_pages(node, plan, r);
    if (status != CT_OK) {
        region_free(node, r);
        return status;
    }
    pthread_rwlock_wrlock(&node->regions_lock);
    r->next = node->regions;
    node->regions = r;
    atomic_store(&node->shares_regions, 1);
    pthread_rwlock_unlock(&node->regions_lock);
    *own = r->own;
    return CT_OK;
}

int region_of(struct node *node, const void *own, uint64_t *group, uint64_t *offset)
{
    const struct region *r;

    pthread_rwlock_rdlock(&node->regions_lock);
    for (r = node->regions; r && r->own != own;)
        r = r->next;
    if (r) {
        *group = r->group;
        *offset = r->offset;
    }
    pthread_rwlock_unlock(&node->regions_lock);
    return r != NULL;
}

static struct region *region_unlist(struct node *node, const void *own)
{
    struct region **link, *r;

    pthread_rwlock_wrlock(&node->regions_lock);
    for (link = &node->regions; *link && (*link)->own != own;)
        link = &(*link)->next;
    r = *link;
    if (r)
        *link = r->next;
    pthread_rwlock_unlock(&node->regions_lock);
    return r;
}

void region_unmap(struct node *node, void *own)
{
    region_free(node, region_unlist(node, own));
}

void region_leave(struct node *node, const void *own)
{
    free(region_unlist(node, own));
}

void regions_free(struct node *node)
{
    while (node->regions) {
        struct region *next = node->regions->next;

        region_free(node, node->regions);
        node->regions = next;
    }
}

static int lies_in(uintptr_t from, size_t size, uintptr_t at, size_t bytes)
{
    return at >= from && at - from < size && bytes <= size - (at - from);
}

int regions_look(struct node *node)
{
    if (!atomic_load_explicit(&node->shares_regions, memory_order_relaxed))
        return 0;
    pthread_rwlock_rdlock(&node->regions_lock);
    return 1;
}

void regions_looked(struct node *node)
{
    pthread_rwlock_unlock(&node->regions_lock);
}

uint64_t region_find(const struct node *node, const void *data, size_t bytes,
                     const uint64_t *members)
{
    for (const struct region *r = node->regions; r; r = r->next)
        if (r->offset && !r->cut_off
            && lies_in((uintptr_t)r->base, r->bytes, (uintptr_t)data, bytes)
            && node_set_within(members, r->members))
            return r->offset + ((uintptr_t)data - (uintptr_t)r->base);
    return 0;
}

void *region_at(const struct node *node, uint64_t offset, size_t bytes)
{
    for (const struct region *r = node->regions; r; r = r->next)
        if (r->offset && lies_in(r->offset, r->bytes, offset, bytes))
            return r->base + (offset - r->offset);
    return NULL;
}

/* ---- Offers --------------------------------------------------------------- */

static uint64_t first_page(const struct region_offer *o)
{
    const uint64_t page = in_pages(1);

    return o->offset / page * page;
}

static uint64_t end_of_pages(const struct region_offer *o)
{
    return in_pages(o->offset + o->bytes);
}

static int shares_a_page(const struct region_offer *a, const struct region_offer *b)
{
    return first_page(a) < end_of_pages(b) && first_page(b) < end_of_pages(a);
}

static int is_in_use(const struct node *node, const struct region_offer *offer)
{
    const struct region_offer *o = node->offers;

    while (o && !shares_a_page(o, offer))
        o = o->next;
    return o != NULL;
}

void regions_offer(struct node *node, struct region_offer *offers, int count,
                   const uint64_t *members)
{
    if (!atomic_load_explicit(&node->shares_regions, memory_order_relaxed))
        return;
    pthread_rwlock_wrlock(&node->regions_lock);
    for (int i = 0; i < count; i++) {
        struct region_offer *o = &offers[i];

        o->offset = o->bytes > 0 ? region_find(node, o->data, o->bytes, members) : 0;
        if (o->offset && is_in_use(node, o))
            o->offset = 0;
    }
    for (int i = 0; i < count; i++) /* after all checks: buffers of one call may share pages */
        if (offers[i].offset) {
            offers[i].next = node->offers;
            node->offers = &offers[i];
        }
    pthread_rwlock_unlock(&node->regions_lock);
}

/* The caller holds regions_lock. */
static void withdraw_locked(struct node *node, struct region_offer *offer)
{
    struct region_offer **link = &node->offers;

    while (*link && *link != offer)
        link = &(*link)->next;
    if (*link)
        *link = offer->next;
    offer->offset = 0;
}

static int is_offered(const struct region_offer *offers, int count)
{
    int i = 0;

    while (i < count && !offers[i].offset)
        i++;
    return i < count;
}

void regions_withdraw(struct node *node, struct region_offer *offers, int count)
{
    if (!is_offered(offers, count))
        return;
    pthread_rwlock_wrlock(&node->regions_lock);
    for (int i = 0; i < count; i++)
        withdraw_locked(node, &offers[i]);
    pthread_rwlock_unlock(&node->regions_lock);
}

/* Replaces the pages by private copies at the same address.  A page that is mapped privately is
 * copied when it is first written to.  So this writes to each page without changing it.  Bytes
 * before or behind the buffer that another thread writes meanwhile are in the copy. */
static void cut_off(const struct node *node, struct region *r, char *data, size_t bytes)
{
    const size_t page = in_pages(1);
    char *const first = data - (uintptr_t)data % page;
    const size_t all = in_pages((size_t)(data - first) + bytes);

    r->cut_off = 1;
    if (mmap(first, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED, node->fd,
             (off_t)(r->offset + (uint64_t)(first - r->base)))
        == MAP_FAILED) {
        log_line(LOG_ERROR,
                 "a rank that is still in a call that failed here may write to %zu bytes of "
                 "ct_mem_alloc() at %p: %s",
                 bytes, (void *)data, strerror(errno));
        return;
    }
    madvise(first, all, MADV_DONTDUMP);
    for (char *at = data; at < data + bytes; at = at - (uintptr_t)at % page + page)
        /* Volatile, since the compiler must not drop the write. */
        atomic_fetch_or((volatile _Atomic unsigned char *)(void *)at, 0);
}

static void cut_offer_off(const struct node *node, const struct region_offer *offer)
{
    struct region *r = node->regions;

    while (r && !(r->offset && lies_in(r->offset, r->bytes, offer->offset, offer->bytes)))
        r = r->next;
    if (r && !r->our_own)
        cut_off(node, r, r->base + (offer->offset - r->offset), offer->bytes);
}

static void join_offers(struct region_offer *whole, const struct region_offer *o)
{
    const uint64_t end = whole->offset + whole->bytes, its = o->offset + o->bytes;

    whole->offset = whole->offset < o->offset ? whole->offset : o->offset;
    whole->bytes = (end > its ? end : its) - whole->offset;
}

/* Joins buffers that share pages before it cuts them off.  Mapping a page for the second time would
 * undo what was written to it since the first time. */
void regions_cut_off(struct node *node, struct region_offer *offers, int count)
{
    if (!is_offered(offers, count))
        return;
    pthread_rwlock_wrlock(&node->regions_lock);
    for (int i = 0; i < count; i++) {
        struct region_offer whole = offers[i];

        for (int j = i + 1; j < count && whole.offset; j++)
            if (offers[j].offset && shares_a_page(&whole, &offers[j])) {
                join_offers(&whole, &offers[j]);
                withdraw_locked(node, &offers[j]);
            }
        if (whole.offset)
            cut_offer_off(node, &whole);
        withdraw_locked(node, &offers[i]);
    }
    pthread_rwlock_unlock(&node->regions_lock);
}
