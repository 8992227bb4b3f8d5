/* SPDX-License-Identifier: Apache-2.0 */
/* log_dir.c - makes, names and removes the files of a run, see log_dir.h. */
#include "launcher/stdio/log_dir.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/util/log.h"

#define BELOW 64 /* most bytes of a path below the folder */

/* ---- Names (made without stdio, since the guard process makes them, too) -------- */

static char *log_dir_number(char *to, int value)
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
    char text[PATH_MAX];
};

/* Returns "<folder>/attempt_<attempt>[/<worker>]<name>".  The buffer is large enough, since the
 * length of the folder's path is limited (BELOW). */
static struct path path_of(const struct run_folder *folder, int attempt, int worker,
                           const char *name)
{
    struct path path;
    char *to = stpcpy(path.text, folder->path);

    to = log_dir_number(stpcpy(to, "/attempt_"), attempt);
    if (worker >= 0)
        to = log_dir_number(stpcpy(to, "/"), worker);
    stpcpy(to, name);
    return path;
}

/* ---- Making the folder ---------------------------------------------------- */

/* Makes the folder for error files.  A job without log files runs even if there is no such
 * folder. */
static void create_for_errors(struct run_folder *folder)
{
    const char *chosen = getenv("TMPDIR");
    /* mkdir() and rmdir() take 50 us each on a disk, and 5 us in memory. */
    const char *const parents[] = { chosen && *chosen ? chosen : "/dev/shm", "/tmp" };

    for (int i = 0; i < 2; i++) {
        if (strlen(parents[i]) + sizeof "/ctrun_XXXXXX" + BELOW > sizeof folder->path)
            continue;
        stpcpy(stpcpy(folder->path, parents[i]), "/ctrun_XXXXXX");
        if (mkdtemp(folder->path))
            return;
    }
    *folder->path = '\0';
}

/* Logs that a folder can't be made.  Without --log-dir, the error message also has the option that
 * needs the folder, since the user did not choose the folder.  Returns ctrun's exit code. */
static int no_folder(const struct options *options, const char *path, const char *why)
{
    static const enum option wants[] = { OPTION_REDIRECTS, OPTION_TEE,
                                         OPTION_DUPLICATE_STDOUT_FILTERS,
                                         OPTION_DUPLICATE_STDERR_FILTERS };
    char words[600], what[700] = "";

    for (size_t i = 0; i < sizeof wants / sizeof *wants && !*what; i++)
        if (!options->log_dir && options->settings[wants[i]].from != FROM_DEFAULT) {
            setting_words(options, wants[i], words, sizeof words);
            snprintf(what, sizeof what, "; %s needs one, and --log-dir=DIR says where", words);
        }
    log_line(LOG_ERROR, "cannot make a folder for logs in %s: %s%s", path, why, what);
    return 1;
}

/* Makes the parent and the folders above it, as mkdir -p does.  Returns 0, or ctrun's exit code. */
static int make_parent(const struct options *options, char *path)
{
    struct stat found;
    int cause;

    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0777); /* after a failure here, the next mkdir() fails, too */
        *slash = '/';
    }
    if (mkdir(path, 0777) == 0)
        return 0;
    cause = errno;
    if (stat(path, &found) == 0 && S_ISDIR(found.st_mode))
        return 0;
    if (cause != EEXIST && stat(path, &found) < 0)
        return no_folder(options, path, strerror(cause));
    log_line(LOG_ERROR, "--log-dir: %s is a file", options->log_dir);
    return 1;
}

/* Writes a run id as the name of one folder, and returns its length.  A run id may be any text, so
 * each '/' is replaced, as in "a%2Fb". */
static size_t add_run_id(char *to, size_t room, const char *run_id)
{
    size_t used = 0;

    for (; *run_id && used + 4 < room; run_id++)
        used += (size_t)snprintf(to + used, room - used, *run_id == '/' ? "%%2F" : "%c", *run_id);
    return used;
}

/* Writes two random letters.  torchrun's names end in 8 random characters, but mkdtemp() makes only
 * 6. */
static void two_letters(char *to)
{
    unsigned char bytes[2] = { 0 };

    if (getrandom(bytes, sizeof bytes, GRND_NONBLOCK) < 0)
        bytes[0] = (unsigned char)getpid();
    to[0] = (char)('a' + bytes[0] % 26);
    to[1] = (char)('a' + bytes[1] % 26);
}

/* Makes the run's folder.  folder->path is the parent before the call, and the new folder after it.
 * Returns 0, or ctrun's exit code. */
static int create_below(struct run_folder *folder, const struct options *options,
                        const char *before, const char *run_id)
{
    size_t used = strlen(folder->path);
    char name[512];
    size_t length = (size_t)snprintf(name, sizeof name, "/%s", before);

    length += add_run_id(name + length, sizeof name - length - 16, run_id);
    strcpy(name + length, "_..XXXXXX");
    two_letters(name + length + 1);
    if (used + strlen(name) + BELOW > sizeof folder->path)
        return no_folder(options, folder->path, strerror(ENAMETOOLONG));
    strcpy(folder->path + used, name);
    if (mkdtemp(folder->path))
        return 0;
    folder->path[used] = '\0';
    return no_folder(options, folder->path, strerror(errno));
}

/* Writes the absolute path of `given`, since workers that change their working directory must still
 * find the folder.  Returns 0, or ctrun's exit code. */
static int absolute(const struct options *options, const char *given, char *path, size_t size)
{
    size_t used = 0;

    if (*given != '/') {
        if (!getcwd(path, size))
            return no_folder(options, given, strerror(errno));
        used = strlen(path);
        if (used + 1 < size)
            path[used++] = '/';
    }
    if (used + strlen(given) + BELOW > size)
        return no_folder(options, given, strerror(ENAMETOOLONG));
    strcpy(path + used, given);
    return 0;
}

static int wants_files(const struct options *options)
{
    static const struct stream_spec none;

    return memcmp(&options->redirects, &none, sizeof none) != 0
           || memcmp(&options->tee, &none, sizeof none) != 0 || options->duplicate_stdout_filters
           || options->duplicate_stderr_filters;
}

int run_folder_create(struct run_folder *folder, const struct options *options, const char *run_id,
                      int workers)
{
    const char *chosen = getenv("TMPDIR");
    const char *given = options->log_dir && *options->log_dir ? options->log_dir : NULL;
    int code;

    *folder->path = '\0';
    folder->kept = folder->unnamed = 0;
    folder->workers = workers;
    folder->attempt = -1;
    if (given && !strcmp(given, "/dev/null"))
        return 0;
    if (!given && !wants_files(options)) {
        create_for_errors(folder);
        return 0;
    }
    code = absolute(options,
                    given               ? given
                    : chosen && *chosen ? chosen
                                        : "/tmp",
                    folder->path, sizeof folder->path);
    if (code == 0 && given)
        code = make_parent(options, folder->path);
    if (code == 0)
        code = create_below(folder, options, given ? "" : "ctrun_", run_id);
    if (code != 0)
        *folder->path = '\0';
    folder->kept = code == 0;
    folder->unnamed = code == 0 && !given;
    return code;
}

int run_folder_next(struct run_folder *folder)
{
    struct path made;
    int failed;

    folder->attempt++;
    if (!*folder->path)
        return 0;
    made = path_of(folder, folder->attempt, -1, "");
    failed = mkdir(made.text, folder->kept ? 0777 : 0700) < 0;
    for (int i = 0; i < folder->workers && !failed; i++) {
        made = path_of(folder, folder->attempt, i, "");
        failed = mkdir(made.text, folder->kept ? 0777 : 0700) < 0;
    }
    if (!failed || !folder->kept)
        return 0;
    log_line(LOG_ERROR, "cannot make the folder %s: %s", made.text, strerror(errno));
    return 1;
}

void run_folder_file(const struct run_folder *folder, int local_rank, const char *name, char *path,
                     size_t size)
{
    char file[BELOW / 2];
    struct path made;

    *path = '\0';
    if (!*folder->path)
        return;
    snprintf(file, sizeof file, "/%s", name);
    made = path_of(folder, folder->attempt, local_rank, file);
    if (strlen(made.text) < size)
        strcpy(path, made.text);
}

void run_folder_error_file(const struct run_folder *folder, int attempt, int local_rank, char *path,
                           size_t size)
{
    const struct path made = path_of(folder, attempt, local_rank, "/error.json");

    *path = '\0';
    if (*folder->path && strlen(made.text) < size)
        strcpy(path, made.text);
}

/* ---- Removing the folder -------------------------------------------------- */

void run_folder_remove(const struct run_folder *folder)
{
    if (!*folder->path || folder->kept)
        return;
    for (int attempt = 0; access(path_of(folder, attempt, -1, "").text, F_OK) == 0; attempt++) {
        for (int i = 0; i < folder->workers; i++) {
            const struct path own = path_of(folder, attempt, i, "");

            if (rmdir(own.text) < 0) { /* usually the folder is empty, so one call is enough */
                unlink(path_of(folder, attempt, i, "/error.json").text);
                rmdir(own.text);
            }
        }
        rmdir(path_of(folder, attempt, -1, "").text);
    }
    rmdir(folder->path);
}
