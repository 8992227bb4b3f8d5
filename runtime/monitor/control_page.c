/* SPDX-License-Identifier: Apache-2.0 */
/* control_page.c - opens the control page of a rank: the page that ctrun made, or else a page that
 * the rank makes itself.
 *
 * ctrun passes CT_CONTROL="memory:event:worker".  "memory" and "event" are the numbers of inherited
 * descriptors, "worker" is the index of the worker on its host.  A wrapper may have closed the
 * descriptors and opened other files under their numbers, so control_take() checks what each
 * descriptor refers to.  A worker may start several programs that use libct.  The first of these
 * programs owns the page until the program ends. */
#include "runtime/monitor/control_page.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "runtime/util/clock.h"
#include "runtime/util/memory_file.h"
#include "runtime/util/forks.h"
#include "runtime/util/signal_name.h"

/* ---- The page that ctrun made ------------------------------------------------ */

static int is_control(const struct control_head *head, size_t bytes, int worker)
{
    return head->magic == CONTROL_MAGIC && head->version == CONTROL_VERSION && worker >= 0
           && worker < head->local && head->world >= head->local
           && control_bytes(head->local, head->world) <= bytes;
}

/* The pid with which this program claimed the page; 0 before the claim.  exec() resets the pid to
 * 0. */
static struct {
    pthread_mutex_t lock;
    pid_t pid;
} owner = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void forget_last_program(struct control_rank *own)
{
    for (int i = 0; i < CONTROL_GROUPS; i++) {
        atomic_store(&own->groups[i].id, 0);
        atomic_store(&own->groups[i].was, 0);
    }
    atomic_store(&own->state, CONTROL_STARTED);
    atomic_store(&own->stop_checked, 0);
    atomic_store(&own->stopped_at, 0);
    own->waiting_for[0] = '\0';
    atomic_store(&own->waiting_version, 0); /* odd if the last program ended during a write */
    for (int i = 0; i < CONTROL_GROUPS; i++)
        atomic_store(&own->places[i].version, 0);
    atomic_store(&own->blamed, BLAME_NONE);
    atomic_store(&own->blame_version, 0);
}

/* Claims the page for this process; the caller holds owner.lock.  Returns 0 if another live process
 * has the page.  If the program that had the page ended or called exec(), its data is cleared. */
static int claim_locked(struct control_rank *own)
{
    const enum inherited_claim to = inherited_claim(&own->pid);

    if (to == INHERITED_FROM_DEAD || (to == INHERITED_ALREADY && owner.pid != getpid()))
        forget_last_program(own);
    return to != INHERITED_BY_OTHER;
}

static int claim(struct control_rank *own)
{
    int is_ours;

    pthread_mutex_lock(&owner.lock);
    is_ours = claim_locked(own);
    if (is_ours)
        owner.pid = getpid();
    pthread_mutex_unlock(&owner.lock);
    return is_ours;
}

/* Returns fd if it is an eventfd, else -1.  A rank writes to the eventfd to wake ctrun; without
 * this check, the write could go to another file that has got the same number. */
static int if_event(int fd)
{
    static const char event[] = "anon_inode:[eventfd]";
    char path[48], link[sizeof event];

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return readlink(path, link, sizeof link) == sizeof event - 1
                   && !memcmp(link, event, sizeof event - 1)
               ? fd
               : -1;
}

int control_claim(struct control *control)
{
    return claim(control->own);
}

int control_map(struct control *control)
{
    const char *text = getenv("CT_CONTROL");
    int memory, event, worker;
    size_t bytes;
    void *base;

    *control = (struct control){ .event_fd = -1, .memory_fd = -1, .worker = -1 };
    if (!text || sscanf(text, "%d:%d:%d", &memory, &event, &worker) != 3
        || !(base = inherited_map(memory, CONTROL_HEAD_BYTES, &bytes)))
        return 0;
    if (!is_control(base, bytes, worker)) {
        munmap(base, bytes);
        return 0;
    }
    *control = (struct control){ .head = base,
                                 .own = control_rank_at(base, worker),
                                 .bytes = bytes,
                                 .event_fd = if_event(event),
                                 .memory_fd = -1 };
    control->worker = control->own->rank;
    control->base = control->head->base;
    control->local = control->head->local;
    control->world = control->head->world;
    control->deaths = control_death_at(base, 0);
    return 1;
}

int control_take(struct control *control)
{
    if (!control_map(control))
        return 0;
    if (control_claim(control))
        return 1;
    control_close(control);
    return 0;
}

/* ---- A page without ctrun ---------------------------------------------------- */

static ct_status control_make_own(struct control *control, int rank)
{
    const size_t bytes = control_bytes(1, 0);
    struct control_head *head;
    int fd;

    if (memory_file(CONTROL_NAME, bytes, bytes, &fd) != CT_OK)
        return ct_fail_in(CT_ERR_SYSTEM, "the control page: ");
    head = memory_map(fd, 0, bytes);
    if (!head) {
        const int cause = errno;

        close(fd);
        return ct_fail(CT_ERR_SYSTEM, "no memory for the control page: %s", strerror(cause));
    }
    head->version = CONTROL_VERSION;
    head->local = head->world = head->nodes = 1;
    head->own_memory = 1;
    head->launcher = getpid();
    head->started_ns = clock_ns(CLOCK_REALTIME);
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
    /* last, since readers trust a page with this number */
    __atomic_store_n(&head->magic, CONTROL_MAGIC, __ATOMIC_RELEASE);
    return CT_OK;
}

/* ---- Life ---------------------------------------------------------------- */

ct_status control_open(struct control *control, int rank)
{
    return control_take(control) ? CT_OK : control_make_own(control, rank);
}

void control_close(struct control *control)
{
    if (!control->head)
        return;
    munmap(control->head, control->bytes);
    if (control->memory_fd >= 0)
        descriptor_close(control->memory_fd);
    *control = (struct control){ .event_fd = -1, .memory_fd = -1, .worker = -1 };
}

/* ---- Deaths -------------------------------------------------------------- */

void control_death_words(const struct control_death *death, char *text, size_t size)
{
    char name[32];

    if (death->how == CONTROL_HOST_LOST && death->code == CONTROL_CLOSED)
        snprintf(text, size,
                 "is lost: its ctrun ended, or was cut off (the connection to it was closed)");
    else if (death->how == CONTROL_HOST_LOST)
        snprintf(text, size, "is lost with its host, which gives no sign of life");
    else if (death->how == CLD_EXITED && death->code == 0)
        snprintf(text, size, "ended (exit code 0) before this call was over");
    else if (death->how == CLD_EXITED)
        snprintf(text, size, "exited with code %d%s", death->code,
                 death->asked ? " after ctrun had asked it to stop" : "");
    else
        snprintf(text, size, "was killed by %s%s%s", signal_name(death->code, name, sizeof name),
                 death->how == CLD_DUMPED ? " (core dumped)" : "",
                 death->asked ? " after ctrun had asked it to stop" : "");
}

void control_death_sentence(const struct control_death *death, char *text, size_t size)
{
    char words[96];

    control_death_words(death, words, sizeof words);
    snprintf(text, size, "rank %d (pid %d on %.63s) %s", death->rank, death->pid, death->host,
             words);
}

int control_alarm(const struct control *control)
{
    struct epoll_event event = { .events = EPOLLIN | EPOLLET };
    int fd;

    if (control->event_fd < 0 || (fd = epoll_create1(EPOLL_CLOEXEC)) < 0)
        return -1;
    if (epoll_ctl(fd, EPOLL_CTL_ADD, control->event_fd, &event) == 0) {
        epoll_wait(fd, &event, 1, 0); /* discards earlier notices */
        return fd;
    }
    close(fd);
    return -1;
}

void control_sleep(const struct control *control, uint32_t seen, int ms)
{
    const struct timespec timeout = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };

    syscall(SYS_futex, &control->head->notices, FUTEX_WAIT, seen, &timeout, NULL, 0);
}

/* ---- What a rank writes of itself -------------------------------------------- */

enum control_state control_set_state(struct control *control, enum control_state state)
{
    enum control_state before;

    if (!control->own)
        return state;
    before = (enum control_state)atomic_load(&control->own->state);
    atomic_store_explicit(&control->own->since_ns, clock_coarse_ns(), memory_order_relaxed);
    atomic_store_explicit(&control->own->state, (uint32_t)state, memory_order_release);
    return before;
}

void control_nap(void)
{
    poll(NULL, 0, 1);
}

void control_waiting(struct control *control, const char *format, ...)
{
    struct control_rank *own = control->own;
    char words[sizeof own->waiting_for] = "";
    uint32_t version;
    va_list args;

    if (!own)
        return;
    va_start(args, format);
    vsnprintf(words, sizeof words, format, args);
    va_end(args);
    version = control_write(&own->waiting_version);
    own->waiting_since_ns = clock_coarse_ns();
    memcpy(own->waiting_for, words, sizeof words);
    control_written(&own->waiting_version, version);
}

void control_note_place(struct control_place *place, uint64_t seq, const char *text)
{
    const uint32_t version = control_write(&place->version);

    place->seq = seq;
    place->noted_ns = clock_coarse_ns();
    snprintf(place->text, sizeof place->text, "%s", text);
    control_written(&place->version, version);
}

/* ---- Because of which rank it failed ------------------------------------------ */

/* Several threads may call this function at a time; control_write() lets one in. */
void control_blame(struct control *control, const struct control_blame *blame)
{
    struct control_rank *own = control->own;
    uint32_t version;

    if (!own || control->worker < 0 || blame->on.rank == control->worker)
        return;
    version = control_write(&own->blame_version);
    if (atomic_load(&own->blamed) == BLAME_NONE || own->blame.group == 0) {
        own->blame = *blame;
        own->blame.at_ns = clock_coarse_ns();
        own->blame.call_hash = control_call_hash(&blame->call);
        atomic_store(&own->blamed, (uint32_t)blame->on.reason);
    }
    control_written(&own->blame_version, version);
}

void control_forgive(struct control_rank *own, uint64_t group, uint64_t begun_ns)
{
    const uint32_t version = control_write(&own->blame_version);

    if (group == 0 || (own->blame.group != group && begun_ns >= own->blame.at_ns))
        atomic_store(&own->blamed, BLAME_NONE);
    control_written(&own->blame_version, version);
}

int control_line_read(const struct control_group *line, uint64_t id, struct control_call *call)
{
    for (int i = 0; i < 100; i++) {
        const uint32_t before = atomic_load_explicit(&line->version, memory_order_acquire);

        memcpy(call, &line->now, sizeof *call);
        control_read_fence();
        if (before % 2 == 0 && before == atomic_load_explicit(&line->version, memory_order_relaxed))
            return atomic_load(&line->id) == id;
    }
    return 0;
}

int control_blame_read(struct control_rank *page, int world, struct control_blame *blame)
{
    const uint32_t reason = atomic_load(&page->blamed);

    for (int i = 0; i < CONTROL_SPINS && reason != BLAME_NONE && reason < BLAME_REASONS; i++) {
        const uint32_t before = atomic_load_explicit(&page->blame_version, memory_order_acquire);

        memcpy(blame, &page->blame, sizeof *blame);
        control_read_fence();
        if (before % 2 == 0
            && before == atomic_load_explicit(&page->blame_version, memory_order_relaxed))
            return blame->on.reason > BLAME_NONE && blame->on.reason < BLAME_REASONS
                   && blame->on.rank >= 0 && blame->on.rank < world;
    }
    return 0;
}
