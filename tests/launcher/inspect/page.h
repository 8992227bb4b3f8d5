/* SPDX-License-Identifier: Apache-2.0 */
/* page.h - a control page of a ctrun, for tests of its readers. */
#ifndef TESTS_LAUNCHER_INSPECT_PAGE_H
#define TESTS_LAUNCHER_INSPECT_PAGE_H

#include <sys/mman.h>
#include <unistd.h>

#include "runtime/monitor/control_page.h"
#include "tests/harness.h"

struct page {
    int fd;
    size_t bytes;
    struct control_head *head;
};

/* Makes a page on which this process is ctrun and all its workers. */
static inline struct page make_page(int local, int world)
{
    struct page page = { .bytes = control_bytes(local, world) };

    page.fd = memfd_create("ct-control-test", MFD_CLOEXEC);
    assert_true(page.fd >= 0);
    assert_int_equal(ftruncate(page.fd, (off_t)page.bytes), 0);
    page.head = mmap(NULL, page.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, page.fd, 0);
    assert_true(page.head != MAP_FAILED);
    page.head->magic = CONTROL_MAGIC;
    page.head->version = CONTROL_VERSION;
    page.head->local = local;
    page.head->world = world;
    page.head->nodes = 1;
    page.head->launcher = getpid();
    for (int i = 0; i < local; i++) {
        control_rank_at(page.head, i)->rank = i;
        control_rank_at(page.head, i)->worker = getpid();
    }
    return page;
}

static inline void free_page(struct page *page)
{
    munmap(page->head, page->bytes);
    close(page->fd);
}

#endif
