/* SPDX-License-Identifier: Apache-2.0 */
/* control.c - a rank takes its page: ctrun's where there is one, else one of its own.
 *
 * ctrun's comes as CT_CONTROL="memory:event:worker": two inherited descriptors and the number of
 * the worker on its host.  They are believed only if they are what they should be, since a
 * wrapper may have closed them and opened something else.  A worker may start several
 * programs that use libct: the page is the first one's while it lives. */
#include "runtime/control.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "runtime/clock.h"
#include "runtime/log.h"

/* ---- ctrun's ------------------------------------------------------------- */

static int is_control(const struct control_head *head, size_t bytes, int worker)
{
    return head->magic == CONTROL_MAGIC && head->version == CONTROL_VERSION && worker >= 0
           && worker < head->local && head->world >= head->local
           && control_bytes(head->local, head->world) <= bytes;
}

/* The page of a program that ended is free again, with nothing of it left. */
static int claim(struct control_rank *own)
{
    int32_t there = 0;

    if (atomic_compare_exchange_strong(&own->pid, &there, getpid()) || there == getpid())
        return 1;
    if (kill(there, 0) == 0 || errno != ESRCH
        || !atomic_compare_exchange_strong(&own->pid, &there, getpid()))
        return 0;
    for (int i = 0; i < CONTROL_GROUPS; i++)
        atomic_store(&own->groups[i].id, 0);
    return 1;
}

/* 0: there is none that could be used. */
static int take_launchers(struct control *control)
{
    const char *text = getenv("CT_CONTROL");
    struct stat info;
    int memory, event, worker;
    void *base;

    if (!text || sscanf(text, "%d:%d:%d", &memory, &event, &worker) != 3 || fstat(memory, &info) < 0
        || !S_ISREG(info.st_mode) || (size_t)info.st_size < CONTROL_HEAD_BYTES)
        return 0;
    base = mmap(NULL, (size_t)info.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    if (base == MAP_FAILED)
        return 0;
    if (!is_control(base, (size_t)info.st_size, worker) || !claim(control_rank_at(base, worker))) {
        munmap(base, (size_t)info.st_size);
        return 0;
    }
    *control = (struct control){ .head = base,
                                 .own = control_rank_at(base, worker),
                                 .bytes = (size_t)info.st_size,
                                 .event_fd = event,
                                 .memory_fd = -1 };
    control->worker = control->own->rank;
    return 1;
}

/* ---- Our own ------------------------------------------------------------- */

static int64_t realtime_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static ct_status make_own(struct control *control, int rank)
{
    const size_t bytes = control_bytes(1, 0);
    const int fd = memfd_create(CONTROL_NAME, MFD_CLOEXEC);
    struct control_head *head = MAP_FAILED;

    if (fd >= 0 && ftruncate(fd, (off_t)bytes) == 0)
        head = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (head == MAP_FAILED) {
        const int cause = errno;

        if (fd >= 0)
            close(fd);
        return ct_fail(CT_ERR_SYSTEM, "no memory for the control page: %s", strerror(cause));
    }
    head->version = CONTROL_VERSION;
    head->local = head->world = head->nodes = 1;
    head->own_memory = 1;
    head->launcher = getpid();
    head->started_ns = realtime_ns();
    gethostname(head->host, sizeof head->host - 1);
    snprintf(head->program, sizeof head->program, "%s", program_invocation_name);
    *control = (struct control){ .head = head,
                                 .own = control_rank_at(head, 0),
                                 .bytes = bytes,
                                 .event_fd = -1,
                                 .memory_fd = fd,
                                 .worker = -1 };
    control->own->rank = rank;
    atomic_store(&control->own->pid, getpid());
    head->magic = CONTROL_MAGIC; /* last: from here on a reader believes the rest */
    return CT_OK;
}

/* ---- Life ---------------------------------------------------------------- */

ct_status control_open(struct control *control, int rank)
{
    return take_launchers(control) ? CT_OK : make_own(control, rank);
}

void control_close(struct control *control)
{
    if (!control->head)
        return;
    munmap(control->head, control->bytes);
    if (control->memory_fd >= 0)
        close(control->memory_fd);
    control->head = NULL;
    control->own = NULL;
}

void control_set_state(struct control *control, enum control_state state)
{
    atomic_store_explicit(&control->own->since_ns, clock_coarse_ns(), memory_order_relaxed);
    atomic_store_explicit(&control->own->state, (uint32_t)state, memory_order_release);
}

void control_waiting(struct control *control, const char *format, ...)
{
    struct control_rank *own = control->own;
    va_list args;

    atomic_fetch_add(&own->waiting_version, 1);
    own->waiting_since_ns = clock_coarse_ns();
    va_start(args, format);
    vsnprintf(own->waiting_for, sizeof own->waiting_for, format, args);
    va_end(args);
    atomic_fetch_add(&own->waiting_version, 1);
}
