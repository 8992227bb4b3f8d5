/* SPDX-License-Identifier: Apache-2.0 */
/* kept_job.c - finds and removes the folders of kept jobs, see kept_job.h. */
#include "launcher/detach/kept_job.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

int kept_jobs_folder(char *path, size_t size)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    const int has_state = state && *state == '/';
    char host[256] = "";

    gethostname(host, sizeof host - 1);
    if (!has_state && !(home && *home == '/')) {
        errno = ENOENT;
        return -1;
    }
    if (snprintf(path, size, "%s%s/ctrun/%s", has_state ? state : home,
                 has_state ? "" : "/.local/state", host)
        < (int)size)
        return 0;
    errno = ENAMETOOLONG;
    return -1;
}

void kept_job_remove(const char *path)
{
    DIR *folder = opendir(path);
    struct dirent *entry;

    while (folder && (entry = readdir(folder)) != NULL)
        unlinkat(dirfd(folder), entry->d_name, 0);
    if (folder)
        closedir(folder);
    rmdir(path);
}

int kept_job_runs(const struct kept_job *job, int waits)
{
    char path[PATH_MAX + 8];
    int fd, runs = 0;

    snprintf(path, sizeof path, "%s/lock", job->path);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && (runs = flock(fd, LOCK_SH | (waits ? 0 : LOCK_NB)) < 0) && errno == EINTR)
        continue;
    if (fd >= 0)
        close(fd);
    return runs;
}

/* Reads the text of a link in the folder.  Returns "" without such a link. */
static const char *link_text(const char *folder, const char *name, char *text, size_t size)
{
    char path[PATH_MAX + 8];
    ssize_t got;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    got = readlink(path, text, size - 1);
    text[got > 0 ? got : 0] = '\0';
    return text;
}

int kept_job_code(const struct kept_job *job)
{
    char text[16];

    return *link_text(job->path, "exit", text, sizeof text) ? atoi(text) : -1;
}

/* ---- All jobs of this host ---------------------------------------------------------- */

struct listed {
    pid_t pid;
    struct timespec began;
};

static int newest_first(const void *a, const void *b)
{
    const struct timespec *x = &((const struct listed *)a)->began;
    const struct timespec *y = &((const struct listed *)b)->began;

    return x->tv_sec != y->tv_sec ? (x->tv_sec < y->tv_sec) - (x->tv_sec > y->tv_sec)
                                  : (x->tv_nsec < y->tv_nsec) - (x->tv_nsec > y->tv_nsec);
}

/* Lists the jobs, the newest first.  Returns their number.  The caller frees *list. */
static int list_jobs(const char *path, struct listed **list)
{
    DIR *folder = opendir(path);
    struct dirent *entry;
    struct stat lock;
    int count = 0;

    *list = NULL;
    while (folder && (entry = readdir(folder)) != NULL) {
        char *end, name[300];
        const long pid = strtol(entry->d_name, &end, 10);
        struct listed *more;

        snprintf(name, sizeof name, "%s/lock", entry->d_name);
        if (pid <= 0 || *end || fstatat(dirfd(folder), name, &lock, 0) < 0
            || !(more = realloc(*list, (size_t)(count + 1) * sizeof *more)))
            continue;
        *list = more;
        more[count++] = (struct listed){ (pid_t)pid, lock.st_mtim };
    }
    if (folder)
        closedir(folder);
    if (count > 0)
        qsort(*list, (size_t)count, sizeof **list, newest_first);
    return count;
}

static int job_at(struct kept_job *job, const char *path, pid_t pid)
{
    job->pid = pid;
    return snprintf(job->path, sizeof job->path, "%s/%d", path, (int)pid) < (int)sizeof job->path
               ? 0
               : -1;
}

int kept_job_find(struct kept_job *job, const char *name)
{
    char path[PATH_MAX], run_id[PATH_MAX], *end = NULL;
    const long pid = name ? strtol(name, &end, 10) : 0;
    struct kept_job found = { .pid = 0 };
    struct listed *list = NULL;
    const int count = kept_jobs_folder(path, sizeof path) == 0 ? list_jobs(path, &list) : 0;

    for (int i = 0; i < count; i++) {
        if (job_at(job, path, list[i].pid) < 0)
            continue;
        if (name && end != name && !*end && job->pid == pid) {
            found = *job;
            break;
        }
        if (name && strcmp(link_text(job->path, "run_id", run_id, sizeof run_id), name) != 0)
            continue;
        if (found.pid == 0 || (!kept_job_runs(&found, 0) && kept_job_runs(job, 0)))
            found = *job;
    }
    free(list);
    *job = found;
    return found.pid > 0 ? 0 : -1;
}

void kept_jobs_prune(const char *path, int most)
{
    struct listed *list;
    const int count = list_jobs(path, &list);
    struct kept_job job;

    for (int i = 0, ended = 0; i < count; i++)
        if (job_at(&job, path, list[i].pid) == 0 && !kept_job_runs(&job, 0) && ++ended > most)
            kept_job_remove(job.path);
    free(list);
}
