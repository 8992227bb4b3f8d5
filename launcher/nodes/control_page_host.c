/* SPDX-License-Identifier: Apache-2.0 */
/* control_page_host.c - tells the workers of this node which workers have ended.
 *
 * A worker sleeps in futex() on the control page, or in epoll_wait() if it has peers on other
 * hosts.  ctrun wakes both kinds: it increments `notices` in the page's head and wakes the futex
 * there, and it writes to an eventfd that all workers watch.  Two system calls reach all
 * workers. */
#include "launcher/nodes/control_page_host.h"

#include <errno.h>
#include <linux/futex.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "launcher/workers/worker.h"
#include "runtime/util/clock.h"
#include "runtime/util/memory_file.h"
#include "runtime/util/log.h"

static void fill_head(struct control_host *control, const struct plan *plan, int size,
                      const char *run_id, const char *program)
{
    struct control_head *head = control->head;

    head->version = CONTROL_VERSION;
    head->node = plan->node;
    head->nodes = plan->nodes;
    head->base = plan->base;
    head->local = size;
    head->world = plan->world;
    head->launcher = getpid();
    head->restarts = plan->restarts;
    head->started_ns = clock_ns(CLOCK_REALTIME);
    snprintf(head->generation, sizeof head->generation, "%s", plan->generation);
    snprintf(head->run_id, sizeof head->run_id, "%s", run_id);
    snprintf(head->program, sizeof head->program, "%s", program);
    gethostname(head->host, sizeof head->host - 1);
    for (int i = 0; i < size; i++) {
        control_rank_at(head, i)->rank = plan->base + i;
        control_rank_at(head, i)->local_rank = i;
    }
    __atomic_store_n(&head->magic, CONTROL_MAGIC, __ATOMIC_RELEASE);
}

static ct_status page_make_memory(struct control_host *control, int world)
{
    void *base = NULL;
    const ct_status status =
        inherited_create(CONTROL_NAME, control->bytes, &control->memory, &base);

    control->head = base;
    if (status != CT_OK)
        return status;
    if (!(control->dead = calloc((size_t)world, 1)))
        return ct_fail(CT_ERR_NOMEM, "no memory for %d ranks", world);
    control->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return control->event >= 0 ? CT_OK
                               : ct_fail(CT_ERR_SYSTEM, "memory to share: %s", strerror(errno));
}

int control_host_open(struct control_host *control, const struct plan *plan, int size,
                      const char *run_id, const char *program)
{
    control_host_close(control);
    control->bytes = control_bytes(size, plan->world);
    if (page_make_memory(control, plan->world) != CT_OK) {
        log_line(LOG_WARN, "no control page for the workers: %s; a death will be noticed later",
                 ct_last_error());
        control_host_close(control);
        return -1;
    }
    fill_head(control, plan, size, run_id, program);
    control->world = plan->world;
    control->deaths = control_death_at(control->head, 0);
    return 0;
}

void control_host_close(struct control_host *control)
{
    if (control->head)
        munmap(control->head, control->bytes);
    if (control->memory >= 0)
        close(control->memory);
    if (control->event >= 0)
        close(control->event);
    free(control->dead);
    *control = (struct control_host){ .memory = -1, .event = -1 };
}

void control_host_started(struct control_host *control, int local_rank, pid_t pid)
{
    if (control->head)
        atomic_store(&control_rank_at(control->head, local_rank)->worker, pid);
}

/* ---- Deaths -------------------------------------------------------------- */

/* Returns the call in which a worker was when it ended; the latest call if there are several. */
static struct control_blame last_call(const struct control_rank *page)
{
    struct control_blame in = { 0 };

    for (int i = 0; i < CONTROL_GROUPS; i++) {
        const struct control_group *line = &page->groups[i];
        const uint64_t id = atomic_load(&line->id);
        struct control_call call;

        if (id == 0 || id == UINT64_MAX || !control_line_read(line, id, &call)
            || call.phase != CONTROL_IN || call.begun_ns < in.call.begun_ns)
            continue;
        in = (struct control_blame){ .group = id,
                                     .call = call,
                                     .call_hash = control_call_hash(&call) };
    }
    return in;
}

void control_host_describe(const struct control_host *control, const struct worker *worker,
                           struct control_death *death)
{
    struct control_rank *page;

    *death = (struct control_death){ .rank = worker->rank,
                                     .how = worker->how,
                                     .code = worker->code,
                                     .pid = worker->pid,
                                     .asked = worker->asked,
                                     .stopped = worker->stopped };
    if (!control->head)
        return;
    memcpy(death->host, control->head->host, sizeof death->host);
    page = control_rank_at(control->head, worker->local_rank);
    for (int i = 0; i < CONTROL_GROUPS && death->tombs < CONTROL_TOMBS; i++) {
        const struct control_group *line = &page->groups[i];
        const uint64_t id = atomic_load(&line->id);

        if (id != 0 && id != UINT64_MAX)
            death->tomb[death->tombs++] =
                (struct control_tomb){ id, atomic_load(&line->begun), atomic_load(&line->done),
                                       control_call_hash(&line->now) };
    }
    if (!control_blame_read(page, control->world, &death->blame))
        death->blame = last_call(page);
}

static void wake_workers(struct control_host *control)
{
    const uint64_t one = 1;

    atomic_fetch_add(&control->head->notices, 1);
    syscall(SYS_futex, &control->head->notices, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    if (write(control->event, &one, sizeof one) < 0 && errno != EAGAIN)
        log_line(LOG_WARN, "telling the workers: %s", strerror(errno));
}

void control_host_died(struct control_host *control, const struct control_death *death, int count)
{
    struct control_head *head = control->head;
    const uint32_t before = control->told;

    if (!head || death->rank < 0 || count > control->world - death->rank)
        return;
    for (int rank = death->rank; rank < death->rank + count; rank++) {
        if (control->dead[rank])
            continue; /* counted as dead before, when its node was lost */
        control->dead[rank] = 1;
        control->deaths[control->told] = *death;
        control->deaths[control->told++].rank = rank;
    }
    if (control->told == before)
        return;
    atomic_store_explicit(&head->deaths, control->told, memory_order_release);
    wake_workers(control);
}
