/* SPDX-License-Identifier: Apache-2.0 */
/* find_jobs.c - finds control pages.  Each page is a memfd that its creator holds open, so
 * /proc/<pid>/fd shows it.
 *
 * Each page contains the pid of its creator.  A descriptor in any other process is an inherited
 * copy, and is skipped.  Each page of ctrun is a job.  A rank that another launcher started creates
 * its own page.  A rank of ctrun that has closed the inherited descriptors also creates its own
 * page.  The variable CT_GENERATION then tells which job the rank belongs to, and the rank's page
 * replaces the rank's part of ctrun's page.  All other ranks with the same launcher form one job.
 * The launcher is identified by the variables that launchers set, or else by the parent process. */
#include "launcher/inspect/find_jobs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/inspect/ask.h"
#include "launcher/inspect/page_reader.h"
#include "launcher/inspect/proc_info.h"
#include "runtime/util/clock.h"

#define MEMFD "/memfd:" CONTROL_NAME
/* the name of an unlinked file, which replaces the memfd on systems without memfd */
#define NO_MEMFD "/" CONTROL_NAME "."
#define OLD_NS (UINT64_C(300) * 1000000) /* answers of an older question are out of date */
#define AGAIN_MS 500                     /* how long a reader waits if it asked again */
#define PAGES_OF_ONE 64                  /* most pages of a process; each thread may be a rank */

struct search {
    struct job_list *jobs;
    int room, failed;
    /* 0 in a first search, which asks the observers of each page; in the second search, the time
     * until which it waits for their answers */
    int64_t answers_until;
    int asked;                /* 1 if a page of the first search has an observer */
    ino_t seen[PAGES_OF_ONE]; /* inodes of the pages found in the process that is searched now */
    int pages;
};

/* ---- The key of a rank without ctrun ---------------------------------------- */

/* Returns the value of variable `name` in an environment block; NULL if the variable is not set or
 * empty. */
static const char *jobs_variable(const char *environment, size_t size, const char *name)
{
    const size_t length = strlen(name);

    for (const char *at = environment, *end = at + size; at < end; at += strlen(at) + 1)
        if (!strncmp(at, name, length) && at[length] == '=' && at[length + 1])
            return at + length + 1;
    return NULL;
}

void job_key(const char *environment, size_t size, pid_t parent, char *key, size_t room)
{
    const char *port = jobs_variable(environment, size, "MASTER_PORT");
    const char *host = jobs_variable(environment, size, "MASTER_ADDR");
    const char *space = jobs_variable(environment, size, "PMIX_NAMESPACE");
    const char *job = jobs_variable(environment, size, "SLURM_JOB_ID");
    const char *step = jobs_variable(environment, size, "SLURM_STEP_ID");
    char words[300];

    if (port)
        snprintf(words, sizeof words, "%s:%s", host ? host : "", port);
    else if (space)
        snprintf(words, sizeof words, "%s", space);
    else if (job)
        snprintf(words, sizeof words, "%s.%s", job, step ? step : "");
    else
        snprintf(words, sizeof words, "parent-%d", (int)parent);
    page_text(key, room, words, sizeof words);
}

static void name_own(struct job_snapshot *job, pid_t pid)
{
    static const size_t room = 1 << 16;
    const struct process_snapshot process = process_read(pid);
    char *environment = malloc(room);
    const size_t size = environment ? process_file(pid, "environ", environment, room) : 0;
    const char *id = environment ? jobs_variable(environment, size, "TORCHELASTIC_RUN_ID") : NULL;

    job_key(environment ? environment : "", size, process.parent, job->key, sizeof job->key);
    page_text(job->run_id, sizeof job->run_id, id ? id : job->key, sizeof job->key);
    job->launcher = process.parent;
    id = environment ? jobs_variable(environment, size, "CT_GENERATION") : NULL;
    page_text(job->generation, sizeof job->generation, id ? id : "", sizeof job->generation);
    free(environment);
}

/* ---- Pages ------------------------------------------------------------------ */

static struct job_snapshot *next_job(struct search *search)
{
    struct job_list *jobs = search->jobs;

    if (jobs->count == search->room) {
        const int room = search->room ? 2 * search->room : 8;
        struct job_snapshot *more = realloc(jobs->job, (size_t)room * sizeof *more);

        if (!more)
            return NULL;
        jobs->job = more;
        search->room = room;
    }
    return &jobs->job[jobs->count];
}

static int is_new(struct search *search, ino_t inode)
{
    for (int i = 0; i < search->pages; i++)
        if (search->seen[i] == inode)
            return 0;
    if (search->pages == PAGES_OF_ONE)
        return 0;
    search->seen[search->pages++] = inode;
    return 1;
}

/* Asks the observers of the page in file fd. */
static void page_ask(struct search *search, int fd)
{
    char path[32];
    int writable;

    /* opens the same file, whatever the process has under its number by now */
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    writable = open(path, O_RDWR | O_CLOEXEC);
    if (writable < 0)
        return;
    ask_observers(writable);
    close(writable);
    search->asked = 1;
}

/* Waits for answers, and then copies the page again.  If the observers of another job took long,
 * the answers of this page are old, and it is asked again.  A page is not asked again while one of
 * its observers has not answered the first question.  Returns 0, or -1 if the page can't be read
 * any more.  Then the caller has nothing to free. */
static int page_await(struct search *search, int fd, struct job_snapshot *job)
{
    int64_t deadline = search->answers_until;

    if (ask_is_possible(job) && !ask_is_open(job) && snapshot_age(job, job->asked_ns) > OLD_NS) {
        page_ask(search, fd);
        deadline = deadline_after(AGAIN_MS);
        snapshot_free(job);
        if (page_read(fd, job) < 0)
            return -1;
    }
    while (ask_is_open(job) && time_left_ms(deadline, 1) > 0) {
        snapshot_free(job);
        poll(NULL, 0, 2);
        if (page_read(fd, job) < 0)
            return -1;
    }
    return 0;
}

/* Opens the page, and adds it to the list if process pid created it.  Checks the file again,
 * because the descriptor may belong to another file by now.  Returns 0 (also if the file is not
 * such a page), or -1 if memory is exhausted. */
static int take_page(struct search *search, pid_t pid, uid_t uid, const char *path)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct job_snapshot *job = next_job(search);
    struct stat info;

    if (fd < 0 || !job) {
        if (fd >= 0)
            close(fd);
        return job ? 0 : -1;
    }
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && is_new(search, info.st_ino)) {
        if (page_read(fd, job) == 0) {
            if (job->launcher == pid && !search->answers_until && ask_is_possible(job))
                page_ask(search, fd);
            if (job->launcher == pid
                && (!search->answers_until || page_await(search, fd, job) == 0)) {
                job->uid = uid;
                search->jobs->count++;
                if (job->own_memory)
                    name_own(job, pid);
            } else {
                snapshot_free(job);
            }
        } else if (errno == ENOMEM) {
            close(fd);
            return -1;
        }
    }
    close(fd);
    return 0;
}

static int search_process(void *arg, pid_t pid, uid_t uid)
{
    struct search *search = arg;
    char path[64], link[300];
    struct dirent *entry;
    DIR *all;

    if ((geteuid() != 0 && uid != geteuid()) || pid == getpid())
        return 0;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    if (!(all = opendir(path)))
        return 0;
    search->pages = 0;
    while (!search->failed && (entry = readdir(all))) {
        const ssize_t length = readlinkat(dirfd(all), entry->d_name, link, sizeof link - 1);

        link[length < 0 ? 0 : length] = 0;
        if (strncmp(link, MEMFD, sizeof MEMFD - 1) != 0 && !strstr(link, NO_MEMFD))
            continue;
        snprintf(path, sizeof path, "/proc/%d/fd/%.16s", (int)pid, entry->d_name);
        search->failed = take_page(search, pid, uid, path) < 0;
    }
    closedir(all);
    return search->failed;
}

/* ---- Jobs ------------------------------------------------------------------- */

static int by_rank(const void *a, const void *b)
{
    const struct rank_snapshot *x = a, *y = b;

    return x->rank != y->rank ? (x->rank > y->rank) - (x->rank < y->rank)
                              : (x->pid > y->pid) - (x->pid < y->pid);
}

/* Returns the size of the job's largest group. */
static int world_of(const struct job_snapshot *job)
{
    int world = 1;

    for (int i = 0; i < job->ranks; i++)
        for (int j = 0; j < CONTROL_GROUPS; j++)
            if (job->rank[i].group[j].id && job->rank[i].group[j].size > world)
                world = job->rank[i].group[j].size;
    return world;
}

/* Moves the ranks of `more` to job.  Returns 0, or -1 if memory is exhausted, and then both jobs
 * are unchanged. */
static int jobs_add_ranks(struct job_snapshot *job, struct job_snapshot *more)
{
    const size_t count = (size_t)(job->ranks + more->ranks);
    struct rank_snapshot *all = realloc(job->rank, count * sizeof *all);

    if (!all)
        return -1;
    memcpy(&all[job->ranks], more->rank, (size_t)more->ranks * sizeof *all);
    job->rank = all;
    job->ranks = (int)count;
    if (more->launcher != job->launcher)
        job->launcher = 0;
    if (more->started_ns < job->started_ns)
        job->started_ns = more->started_ns;
    if (more->now_ns > job->now_ns)
        job->now_ns = more->now_ns;
    snapshot_free(more);
    return 0;
}

static struct rank_snapshot *rank_without_pid(struct job_snapshot *job, int rank)
{
    for (int i = 0; i < job->ranks; i++)
        if (job->rank[i].rank == rank && job->rank[i].state == CONTROL_STARTED)
            return &job->rank[i];
    return NULL;
}

/* A rank without ctrun has a page of libct and a page of its observer.  Adds what the second page
 * shows to the rank of the first. */
static void add_observed(struct rank_snapshot *to, const struct rank_snapshot *observed)
{
    to->observer = observed->observer;
    to->observer_pid = observed->observer_pid;
    to->stacks_fd = observed->stacks_fd;
    memcpy(to->main_place, observed->main_place, sizeof to->main_place);
    for (int i = 0, free_one = 0; i < CONTROL_GROUPS; i++) {
        while (free_one < CONTROL_GROUPS && to->group[free_one].id)
            free_one++;
        if (observed->group[i].id && free_one < CONTROL_GROUPS) {
            to->group[free_one] = observed->group[i];
            to->group[free_one].now.group = free_one;
        }
    }
}

static int is_observed_twin(const struct rank_snapshot *rank, const struct rank_snapshot *observed)
{
    return rank->pid == observed->pid && rank->rank == observed->rank
           && rank->observer == OBSERVER_NONE && observed->observer != OBSERVER_NONE;
}

/* The ranks are sorted, so the two pages of a rank are neighbours. */
static void join_twins(struct job_snapshot *job)
{
    for (int i = 0; i + 1 < job->ranks; i++) {
        struct rank_snapshot *const first = &job->rank[i];
        const int is_second = is_observed_twin(first, &first[1]);

        if (!is_second && !is_observed_twin(&first[1], first))
            continue;
        add_observed(is_second ? first : &first[1], is_second ? &first[1] : first);
        job->ranks--;
        memmove(&first[is_second], &first[is_second + 1],
                (size_t)(job->ranks - i - is_second) * sizeof *first);
    }
}

/* Moves the only rank of the page `own` into the job of that rank's ctrun.  Returns 1, or 0 if that
 * job is not in the list. */
static int join_ctruns_job(struct job_list *jobs, struct job_snapshot *own)
{
    for (int i = 0; i < jobs->count && *own->generation && own->ranks == 1; i++) {
        struct job_snapshot *job = &jobs->job[i];
        struct rank_snapshot *rank;
        pid_t worker;

        if (job->own_memory || job->uid != own->uid || strcmp(job->generation, own->generation) != 0
            || !(rank = rank_without_pid(job, own->rank[0].rank)))
            continue;
        worker = rank->worker;
        *rank = own->rank[0];
        rank->worker = worker;
        rank->local_rank = rank->rank - job->base;
        /* the rank created the page with its first group, so the rank is ready */
        if (rank->state == CONTROL_STARTED)
            rank->state = CONTROL_READY;
        if (own->now_ns > job->now_ns)
            job->now_ns = own->now_ns;
        snapshot_free(own);
        return 1;
    }
    return 0;
}

static void remove_job(struct job_list *jobs, int at)
{
    memmove(&jobs->job[at], &jobs->job[at + 1], (size_t)(jobs->count - at - 1) * sizeof *jobs->job);
    jobs->count--;
}

void job_list_merge(struct job_list *jobs)
{
    for (int i = jobs->count - 1; i >= 0; i--)
        if (jobs->job[i].own_memory && join_ctruns_job(jobs, &jobs->job[i]))
            remove_job(jobs, i);
    for (int i = 0; i < jobs->count; i++) {
        struct job_snapshot *job = &jobs->job[i];

        if (!job->own_memory)
            continue;
        for (int j = jobs->count - 1; j > i; j--) {
            struct job_snapshot *other = &jobs->job[j];

            if (other->own_memory && other->uid == job->uid && !strcmp(other->key, job->key)
                && jobs_add_ranks(job, other) == 0)
                remove_job(jobs, j);
        }
        qsort(job->rank, (size_t)job->ranks, sizeof *job->rank, by_rank);
        join_twins(job);
        job->local = job->ranks;
        job->world = world_of(job);
    }
}

static int by_start(const void *a, const void *b)
{
    const struct job_snapshot *x = a, *y = b;

    return (x->started_ns > y->started_ns) - (x->started_ns < y->started_ns);
}

int job_list_find(struct job_list *jobs)
{
    struct search search = { .jobs = jobs };

    *jobs = (struct job_list){ .count = 0 };
    process_each(search_process, &search);
    if (search.asked && !search.failed) {
        job_list_free(jobs);
        search = (struct search){ .jobs = jobs, .answers_until = clock_ms() + ASK_LIMIT_MS };
        process_each(search_process, &search);
    }
    job_list_merge(jobs);
    for (int i = 0; i < jobs->count; i++)
        process_read_all(&jobs->job[i]);
    if (jobs->count > 1)
        qsort(jobs->job, (size_t)jobs->count, sizeof *jobs->job, by_start);
    if (search.failed)
        errno = ENOMEM;
    return search.failed ? -1 : 0;
}

void job_list_free(struct job_list *jobs)
{
    for (int i = 0; i < jobs->count; i++)
        snapshot_free(&jobs->job[i]);
    free(jobs->job);
    *jobs = (struct job_list){ .count = 0 };
}
