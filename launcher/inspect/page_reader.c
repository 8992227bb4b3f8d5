/* SPDX-License-Identifier: Apache-2.0 */
/* page_reader.c - copies a control page while ranks write to it.
 *
 * The page is read with pread() and never mapped.  If a process truncates the file meanwhile,
 * pread() returns fewer bytes, and no SIGBUS occurs.  Nothing orders the loads of one pread().  So
 * what a writer stores last is read by an earlier pread() than the rest (docs/memory-order.md).
 *
 * A copy of an entry is valid if the entry's version was even, and was the same before and after
 * the copy.  If the entry changes during each attempt, its rank is making calls.  If the writer was
 * stopped in the middle, the version stays odd.  Then the reader uses the ring, which has the whole
 * call, since ranks write the ring first. */
#include "launcher/inspect/page_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/types/call_signature.h"
#include "runtime/util/clock.h"

#define MOST_COPIES 20 /* most attempts to copy an entry */
/* An observer that does not answer for so long is silent. */
#define ANSWER_NS (UINT64_C(500) * 1000000)

/* The fence orders the bytes of this pread() before those of the next one. */
static int read_at(int fd, size_t at, void *to, size_t size)
{
    const ssize_t got = pread(fd, to, size, (off_t)at);

    control_read_fence();
    if (got >= 0 && (size_t)got < size)
        errno = EBADMSG;
    return got == (ssize_t)size ? 0 : -1;
}

/* ---- Text ------------------------------------------------------------------ */

/* Returns the length in bytes of the UTF-8 character at data; 0 if the character is not valid, or
 * is a control character. */
static size_t character(const unsigned char *data, size_t left)
{
    const size_t size = *data < 0x80 ? 1 : *data < 0xc2 ? 0 : *data < 0xe0 ? 2 : 3;

    if (size == 1)
        return *data >= ' ' && *data != 0x7f;
    if (size == 0 || size > left || *data >= 0xf0)
        return 0; /* names contain no characters of four bytes */
    for (size_t i = 1; i < size; i++)
        if ((data[i] & 0xc0) != 0x80)
            return 0;
    if (*data == 0xc2 && data[1] < 0xa0) /* C1 control characters */
        return 0;
    return (*data == 0xe0 && data[1] < 0xa0) || (*data == 0xed && data[1] > 0x9f) ? 0 : size;
}

void page_text(char *text, size_t size, const char *bytes, size_t most)
{
    const size_t length = strnlen(bytes, most);
    size_t used = 0;

    for (size_t at = 0; at < length;) {
        const size_t step = character((const unsigned char *)bytes + at, length - at);

        if (used + (step ? step : 1) >= size)
            break;
        if (step)
            memcpy(text + used, bytes + at, step);
        else
            text[used] = '?';
        used += step ? step : 1;
        at += step ? step : 1;
    }
    text[used] = '\0';
}

/* ---- The head -------------------------------------------------------------- */

static int head_is_valid(const struct control_head *head, size_t bytes)
{
    return head->magic == CONTROL_MAGIC && head->version == CONTROL_VERSION && head->local >= 0
           && head->local <= SNAPSHOT_LOCAL && head->world >= 0 && head->world <= SNAPSHOT_RANKS
           && head->base >= 0 && head->base <= SNAPSHOT_RANKS && head->nodes >= 0 && head->node >= 0
           && control_bytes(head->local, 0) <= bytes
           && (head->own_memory || control_bytes(head->local, head->world) <= bytes);
}

static void take_head(struct job_snapshot *job, const struct control_head *head)
{
    page_text(job->run_id, sizeof job->run_id, *head->run_id ? head->run_id : "-",
              sizeof head->run_id);
    page_text(job->generation, sizeof job->generation, head->generation, sizeof head->generation);
    page_text(job->host, sizeof job->host, head->host, sizeof head->host);
    page_text(job->program, sizeof job->program, head->program, sizeof head->program);
    job->node = head->node;
    job->nodes = head->nodes > 0 ? head->nodes : 1;
    job->base = head->base;
    job->local = head->local;
    job->world = head->world;
    job->launcher = head->launcher > 0 ? head->launcher : 0;
    job->restarts = head->restarts > 0 ? head->restarts : 0;
    job->own_memory = head->own_memory != 0;
    job->started_ns = head->started_ns > 0 ? head->started_ns : 0;
}

/* ---- A rank ---------------------------------------------------------------- */

static int call_is_valid(const struct control_call *call)
{
    return call->operation < OPERATION_COUNT && call->phase <= CONTROL_FAILED
           && call->group <= CONTROL_GROUPS;
}

static struct call_snapshot take_call(const struct control_call *call)
{
    return (struct call_snapshot){ .seq = call->seq,
                                   .count = call->count,
                                   .begun_ns = call->begun_ns,
                                   .operation = call->operation,
                                   .dtype = call->dtype,
                                   .op = call->op,
                                   .root = call->root < 0 ? -1 : call->root,
                                   .phase = (enum control_phase)call->phase,
                                   .group = call->group };
}

/* Copies the ring, the newest call first.  Stops at the first invalid call, because older calls
 * can't be relied on. */
static void take_ring(struct rank_snapshot *rank, const struct control_rank *page)
{
    const uint64_t calls = atomic_load(&page->calls);
    const uint64_t kept = calls < CONTROL_CALLS ? calls : CONTROL_CALLS;

    rank->ring_used = 0;
    for (uint64_t back = 1; back <= kept; back++) {
        const struct control_call call = control_call_at(page, calls - back);

        if (!call_is_valid(&call))
            return;
        rank->ring[rank->ring_used++] = take_call(&call);
    }
}

/* Copies an entry.  Returns 1 if the entry was copied between two writes, 0 if it changed during
 * each copy, or -1 if it can't be read or its writer stopped in the middle. */
static int copy_entry(int fd, size_t at, struct control_group *line)
{
    const size_t version = at + offsetof(struct control_group, version);
    uint32_t before = 0, after = 0, first = 0;

    for (int i = 0; i < MOST_COPIES; i++) {
        if (read_at(fd, version, &before, sizeof before) < 0
            || read_at(fd, at, line, sizeof *line) < 0
            || read_at(fd, version, &after, sizeof after) < 0)
            return -1;
        if (before == after && before % 2 == 0)
            return 1;
        if (i == 0)
            first = before;
    }
    return first == after ? -1 : 0;
}

/* Copies the ring again after the writer of this entry stopped in the middle, since the first copy
 * of the ring may be too old to have the call.  Returns -1 if the entry has not changed since, or 0
 * if its writer has continued. */
static int take_ring_again(int fd, size_t at, size_t line, struct rank_snapshot *rank)
{
    const size_t version = line + offsetof(struct control_group, version);
    uint32_t before, after;
    struct control_rank page;

    if (read_at(fd, version, &before, sizeof before) < 0 || read_at(fd, at, &page, sizeof page) < 0
        || read_at(fd, version, &after, sizeof after) < 0)
        return -1;
    take_ring(rank, &page);
    return before == after && before % 2 ? -1 : 0;
}

static void take_entry(struct rank_snapshot *rank, int index, const struct control_group *line,
                       int valid)
{
    struct group_snapshot *group = &rank->group[index];
    const uint64_t id = atomic_load(&line->id);

    *group = (struct group_snapshot){ .id = 0 };
    if (id == UINT64_MAX || line->rank < 0 || line->size < 1 || line->rank >= line->size
        || line->size > SNAPSHOT_RANKS || !call_is_valid(&line->now))
        return;
    group->id = id;
    group->was = id ? 0 : atomic_load(&line->was);
    page_text(group->name, sizeof group->name, line->name, sizeof line->name);
    group->rank = line->rank;
    group->size = line->size;
    group->begun = atomic_load(&line->begun);
    group->done = atomic_load(&line->done);
    group->now = take_call(&line->now);
    group->now.group = index;
    group->moving = valid == 0;
    group->is_observed = line->caller == CONTROL_OBSERVED;
    group->caller = group->is_observed ? 0 : line->caller;
    for (int i = 0; valid < 0 && i < rank->ring_used; i++)
        if (rank->ring[i].group == index) {
            group->now = rank->ring[i];
            group->caller = 0;
            break;
        }
    group->now.tag = line->tag;
    if (group->is_observed && rank->observer == OBSERVER_SILENT)
        group->now.phase = CONTROL_IDLE; /* the rank may have left the call since */
    if (group->now.phase == CONTROL_IN && group->now.seq > group->begun)
        group->begun = group->now.seq; /* the rank writes ->begun shortly after ->now */
}

static void take_waiting(int fd, size_t at, struct rank_snapshot *rank,
                         const struct control_rank *page)
{
    const size_t version = at + offsetof(struct control_rank, waiting_version);
    char words[sizeof page->waiting_for];
    uint64_t since = 0;
    uint32_t before = 1, after = 0;

    for (int i = 0; i < MOST_COPIES && (before != after || before % 2); i++)
        if (read_at(fd, version, &before, sizeof before) < 0
            || read_at(fd, at + offsetof(struct control_rank, waiting_for), words, sizeof words) < 0
            || read_at(fd, at + offsetof(struct control_rank, waiting_since_ns), &since,
                       sizeof since)
                   < 0
            || read_at(fd, version, &after, sizeof after) < 0)
            return;
    if (before != after || before % 2)
        return; /* half of a text would name something wrong */
    page_text(rank->waiting_for, sizeof rank->waiting_for, words, sizeof words);
    rank->waiting_since_ns = since;
}

/* Copies a place.  Returns 1, or 0 if there is none or if it changed during each copy. */
static int take_place(int fd, size_t at, struct control_place *place)
{
    uint32_t before = 1, after = 0;

    for (int i = 0; i < MOST_COPIES && (before != after || before % 2); i++)
        if (read_at(fd, at, &before, sizeof before) < 0 || read_at(fd, at, place, sizeof *place) < 0
            || read_at(fd, at, &after, sizeof after) < 0)
            return 0;
    return before == after && before > 0 && before % 2 == 0;
}

/* Copies the place of the call of each group, if it is the place of the call in the snapshot. */
static void take_places(int fd, size_t at, struct rank_snapshot *rank)
{
    struct control_place place;

    for (int i = 0; i < CONTROL_GROUPS; i++) {
        struct group_snapshot *group = &rank->group[i];

        if (group->id
            && take_place(fd, at + offsetof(struct control_rank, places) + (size_t)i * sizeof place,
                          &place)
            && group->now.seq == place.seq && group->now.begun_ns <= place.noted_ns) {
            page_text(group->where, sizeof group->where, place.text, sizeof place.text);
            group->caller = 0; /* the caller is a function of the language binding */
        }
    }
    if ((rank->observer == OBSERVER_ANSWERED || rank->observer == OBSERVER_ASKED)
        && take_place(fd, at + offsetof(struct control_rank, main_place), &place))
        page_text(rank->main_place, sizeof rank->main_place, place.text, sizeof place.text);
}

/* Takes from the page whether the observer has answered the last question. */
static void take_observer(struct rank_snapshot *rank, const struct control_rank *page,
                          const struct control_head *head)
{
    const uint32_t answered = atomic_load(&page->answered), asked = atomic_load(&head->asked);
    const int is_new = clock_coarse_ns() < atomic_load(&head->asked_ns) + ANSWER_NS;

    rank->observer_pid = atomic_load(&page->observer);
    rank->stacks_fd = atomic_load(&page->stacks_fd);
    rank->answers_ms = atomic_load(&page->answers_ns) / 1000000;
    rank->observer = rank->observer_pid <= 0                                ? OBSERVER_NONE
                     : answered == asked || answered == CONTROL_LAST_ANSWER ? OBSERVER_ANSWERED
                     : is_new && answered > 0 && answered + 1 == asked      ? OBSERVER_ASKED
                                                                            : OBSERVER_SILENT;
    if (rank->observer == OBSERVER_NONE)
        rank->observer_pid = 0;
}

static int take_rank(int fd, const struct job_snapshot *job, int index,
                     const struct control_head *head, struct rank_snapshot *rank)
{
    const size_t at = control_bytes(index, 0);
    struct control_rank page;
    uint32_t state, answered;

    if (read_at(fd, at + offsetof(struct control_rank, answered), &answered, sizeof answered) < 0
        || read_at(fd, at, &page, sizeof page) < 0)
        return -1;
    atomic_init(&page.answered, answered); /* the observer stores it after its answer */
    state = atomic_load(&page.state);
    *rank = (struct rank_snapshot){ .rank = job->own_memory ? page.rank : job->base + index,
                                    .local_rank = index,
                                    .worker = atomic_load(&page.worker),
                                    .pid = atomic_load(&page.pid),
                                    .state = state <= CONTROL_OUTSIDE ? (enum control_state)state
                                                                      : CONTROL_STARTED,
                                    .since_ns = atomic_load(&page.since_ns),
                                    .calls = atomic_load(&page.calls),
                                    .bytes = atomic_load(&page.bytes_before) };
    if (rank->rank < 0 || rank->rank >= SNAPSHOT_RANKS)
        rank->rank = 0;
    rank->worker = rank->worker > 0 ? rank->worker : 0;
    rank->pid = rank->pid > 0 ? rank->pid : 0;
    take_ring(rank, &page);
    take_waiting(fd, at, rank, &page);
    take_observer(rank, &page, head);
    for (int i = 0; i < CONTROL_GROUPS; i++) {
        const size_t where =
            at + offsetof(struct control_rank, groups) + (size_t)i * sizeof page.groups[i];
        int valid = 1;

        if (atomic_load(&page.groups[i].id))
            valid = copy_entry(fd, where, &page.groups[i]);
        if (valid < 0)
            valid = take_ring_again(fd, at, where, rank);
        /* only for groups that exist, since bytes_before includes the bytes of destroyed groups */
        if (atomic_load(&page.groups[i].id))
            rank->bytes += page.groups[i].bytes;
        take_entry(rank, i, &page.groups[i], valid);
    }
    take_places(fd, at, rank);
    return 0;
}

/* ---- The whole ------------------------------------------------------------- */

static int reader_take_deaths(int fd, struct job_snapshot *job, const struct control_head *head)
{
    const uint32_t deaths = job->own_memory ? 0 : atomic_load(&head->deaths);
    const int count = deaths < (uint32_t)job->world ? (int)deaths : job->world;

    if (count > 0 && !(job->death = calloc((size_t)count, sizeof *job->death)))
        return -1;
    for (int i = 0; i < count; i++) {
        struct death_snapshot *death = &job->death[job->deaths];
        struct control_death from;

        if (read_at(fd, control_bytes(job->local, i), &from, sizeof from) < 0)
            return -1;
        if (from.rank < 0 || from.rank >= job->world)
            continue;
        *death = (struct death_snapshot){ .rank = from.rank,
                                          .how = from.how,
                                          .code = from.code,
                                          .pid = from.pid,
                                          .asked = from.asked,
                                          .tombs = from.tombs };
        if (death->tombs < 0 || death->tombs > CONTROL_TOMBS)
            death->tombs = 0;
        memcpy(death->tomb, from.tomb, sizeof death->tomb);
        page_text(death->host, sizeof death->host, from.host, sizeof from.host);
        job->deaths++;
    }
    return 0;
}

int page_read(int fd, struct job_snapshot *job)
{
    struct control_head head;
    struct stat info;
    uint32_t magic;

    *job = (struct job_snapshot){ .rank = NULL };
    if (fstat(fd, &info) < 0 || read_at(fd, 0, &magic, sizeof magic) < 0
        || read_at(fd, 0, &head, sizeof head) < 0)
        return -1;
    head.magic = magic; /* its writer stores it last */
    if (!S_ISREG(info.st_mode) || !head_is_valid(&head, (size_t)info.st_size)) {
        errno = EBADMSG;
        return -1;
    }
    take_head(job, &head);
    job->uid = info.st_uid;
    job->rank = calloc((size_t)(job->local > 0 ? job->local : 1), sizeof *job->rank);
    for (int i = 0; job->rank && i < job->local; i++, job->ranks++)
        if (take_rank(fd, job, i, &head, &job->rank[i]) < 0)
            break;
    if (!job->rank || job->ranks < job->local || reader_take_deaths(fd, job, &head) < 0) {
        snapshot_free(job);
        return -1;
    }
    job->now_ns = clock_coarse_ns();
    job->asked_ns = atomic_load(&head.asked_ns);
    return 0;
}

void snapshot_free(struct job_snapshot *job)
{
    free(job->rank);
    free(job->death);
    *job = (struct job_snapshot){ .rank = NULL };
}

const struct death_snapshot *snapshot_death_of(const struct job_snapshot *job, int rank)
{
    for (int i = 0; i < job->deaths; i++)
        if (job->death[i].rank == rank)
            return &job->death[i];
    return NULL;
}
