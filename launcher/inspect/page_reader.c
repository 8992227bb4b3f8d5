/* SPDX-License-Identifier: Apache-2.0 */
/* page_reader.c - copies a control page while others write to it.
 *
 * It is read by pread(), never mapped: who makes the file shorter under us gets a short copy
 * and no SIGBUS. */
#include "launcher/inspect/page_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/util/clock.h"

int page_read_at(int fd, size_t at, void *to, size_t size)
{
    const ssize_t got = pread(fd, to, size, (off_t)at);

    if (got >= 0 && (size_t)got < size)
        errno = EBADMSG;
    return got == (ssize_t)size ? 0 : -1;
}

/* ---- Text ------------------------------------------------------------------ */

/* The length of the character at data, 0 if a terminal shall not see it. */
static size_t character(const unsigned char *data, size_t left)
{
    const size_t size = *data < 0x80 ? 1 : *data < 0xc2 ? 0 : *data < 0xe0 ? 2 : 3;

    if (size == 1)
        return *data >= ' ' && *data != 0x7f;
    if (size == 0 || size > left || *data >= 0xf0)
        return 0; /* what a name needs has three bytes at most */
    for (size_t i = 1; i < size; i++)
        if ((data[i] & 0xc0) != 0x80)
            return 0;
    if (*data == 0xc2 && data[1] < 0xa0) /* C1: controls of eight bits */
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

static int head_is_sound(const struct control_head *head, size_t bytes)
{
    return head->magic == CONTROL_MAGIC && head->version == CONTROL_VERSION && head->local >= 0
           && head->local <= LOOK_LOCAL && head->world >= 0 && head->world <= LOOK_RANKS
           && head->base >= 0 && head->base <= LOOK_RANKS && head->nodes >= 0 && head->node >= 0
           && control_bytes(head->local, 0) <= bytes
           && (head->own_memory || control_bytes(head->local, head->world) <= bytes);
}

static void take_head(struct look_job *job, const struct control_head *head)
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

/* ---- The whole ------------------------------------------------------------- */

static int take_deaths(int fd, struct look_job *job, const struct control_head *head)
{
    const uint32_t told = job->own_memory ? 0 : atomic_load(&head->deaths);
    const int count = told < (uint32_t)job->world ? (int)told : job->world;

    if (count > 0 && !(job->death = calloc((size_t)count, sizeof *job->death)))
        return -1;
    for (int i = 0; i < count; i++) {
        struct look_death *death = &job->death[job->deaths];
        struct control_death from;

        if (page_read_at(fd, control_bytes(job->local, i), &from, sizeof from) < 0)
            return -1;
        if (from.rank < 0 || from.rank >= job->world)
            continue;
        *death = (struct look_death){ .rank = from.rank,
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

int page_read(int fd, struct look_job *job)
{
    struct control_head head;
    struct stat info;

    *job = (struct look_job){ .rank = NULL };
    if (fstat(fd, &info) < 0 || page_read_at(fd, 0, &head, sizeof head) < 0)
        return -1;
    if (!S_ISREG(info.st_mode) || !head_is_sound(&head, (size_t)info.st_size)) {
        errno = EBADMSG;
        return -1;
    }
    take_head(job, &head);
    job->uid = info.st_uid;
    job->rank = calloc((size_t)(job->local > 0 ? job->local : 1), sizeof *job->rank);
    for (int i = 0; job->rank && i < job->local; i++, job->ranks++)
        if (page_take_rank(fd, job, i, &job->rank[i]) < 0)
            break;
    if (!job->rank || job->ranks < job->local || take_deaths(fd, job, &head) < 0) {
        look_free(job);
        return -1;
    }
    job->now_ns = clock_coarse_ns();
    return 0;
}

void look_free(struct look_job *job)
{
    free(job->rank);
    free(job->death);
    *job = (struct look_job){ .rank = NULL };
}

const struct look_death *look_death_of(const struct look_job *job, int rank)
{
    for (int i = 0; i < job->deaths; i++)
        if (job->death[i].rank == rank)
            return &job->death[i];
    return NULL;
}
