/* SPDX-License-Identifier: Apache-2.0 */
/* error_files.c - <parent>/ctrun_XXXXXX/attempt_<n>/<local rank>/error.json, where
 * the parent is $TMPDIR, else /dev/shm, else /tmp. */
#include "launcher/error_files.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* "<top>/attempt_<attempt>[/<worker>[/error.json]]" without stdio, for the guard.
 * The path has room: top is short, numbers are numbers. */
static char *number(char *to, int value)
{
    char digits[12];
    int count = 0;

    do
        digits[count++] = (char)('0' + value % 10);
    while ((value /= 10) > 0);
    while (count > 0)
        *to++ = digits[--count];
    return to;
}

struct path {
    char text[256];
};

static struct path path_of(const struct error_files *files, int attempt, int worker,
                           const char *name)
{
    struct path path;
    char *to = stpcpy(path.text, files->top);

    to = number(stpcpy(to, "/attempt_"), attempt);
    if (worker >= 0)
        to = number(stpcpy(to, "/"), worker);
    stpcpy(to, name);
    return path;
}

/* A folder on a disk costs 50 us to make and as much to remove, in memory 5. */
void error_files_create(struct error_files *files, int workers, int restarts)
{
    const char *chosen = getenv("TMPDIR");
    const char *const parents[] = { chosen && *chosen ? chosen : "/dev/shm", "/tmp" };

    *files = (struct error_files){ .workers = workers, .attempts = restarts + 1 };
    for (int i = 0; i < 2; i++) {
        if (strlen(parents[i]) + sizeof "/ctrun_XXXXXX" > sizeof files->top)
            continue;
        stpcpy(stpcpy(files->top, parents[i]), "/ctrun_XXXXXX");
        if (mkdtemp(files->top))
            return;
    }
    *files->top = '\0';
}

void error_files_attempt(const struct error_files *files, int attempt)
{
    if (!*files->top)
        return;
    mkdir(path_of(files, attempt, -1, "").text, 0700);
    for (int i = 0; i < files->workers; i++)
        if (mkdir(path_of(files, attempt, i, "").text, 0700) < 0) /* a round without a restart */
            unlink(path_of(files, attempt, i, "/error.json").text);
}

void error_files_path(const struct error_files *files, int attempt, int worker, char *path,
                      size_t size)
{
    const struct path made = path_of(files, attempt, worker, "/error.json");

    *path = '\0';
    if (*files->top && strlen(made.text) < size)
        strcpy(path, made.text);
}

void error_files_remove(const struct error_files *files)
{
    if (!*files->top)
        return;
    for (int attempt = 0; attempt < files->attempts; attempt++) {
        for (int i = 0; i < files->workers; i++) {
            const struct path folder = path_of(files, attempt, i, "");

            if (rmdir(folder.text) < 0) { /* empty nearly always: one call, not two */
                unlink(path_of(files, attempt, i, "/error.json").text);
                rmdir(folder.text);
            }
        }
        if (rmdir(path_of(files, attempt, -1, "").text) < 0)
            break; /* attempts that were never made */
    }
    rmdir(files->top);
}
