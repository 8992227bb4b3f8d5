/* SPDX-License-Identifier: Apache-2.0 */
/* program.c - finds the file to execute from the words after the options.
 *
 *   *.py, -m, --run-path   runs with -u under $PYTHON_EXEC, else under the python of the virtual
 *                          environment in which ctrun is installed, else under python, else python3
 *   a/b                    is executed if it is executable; else runs under Python if its
 *                          first line is #!...python, or if it is a pipe, standard input, a zip
 *                          file, *.pyc or *.pyz, or a link to a *.py file
 *   b                      is searched along PATH, then in the working directory
 *   --no-python            executes the file, whatever it is
 *
 * ctrun searches only once, before any worker starts, so that a misspelt name gives one error
 * message and not a failure of each worker. */
#include "launcher/workers/program.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "launcher/pmi/mpi_library.h"
#include "runtime/util/log.h"

/* Returns 0 if the file can be executed, else an errno. */
static int executable(const char *path)
{
    struct stat status;

    if (stat(path, &status) < 0)
        return errno;
    if (S_ISDIR(status.st_mode))
        return EISDIR;
    return access(path, X_OK) < 0 ? errno : 0;
}

/* Returns EACCES if PATH has files with that name but none of them is executable. */
int program_search(const char *name, char *found, size_t size)
{
    const char *path = getenv("PATH");
    int cause = ENOENT;

    if (strchr(name, '/')) {
        snprintf(found, size, "%s", name);
        return executable(found);
    }
    for (const char *at = path && *path ? path : "/usr/local/bin:/usr/bin:/bin"; at;) {
        const char *colon = strchrnul(at, ':');
        int here;

        if (colon == at)
            snprintf(found, size, "./%s", name);
        else
            snprintf(found, size, "%.*s/%s", (int)(colon - at), at, name);
        here = executable(found);
        if (here == 0)
            return 0;
        if (here == EACCES && access(found, F_OK) == 0) /* else EACCES is about the folder */
            cause = EACCES;
        at = *colon ? colon + 1 : NULL;
    }
    return cause;
}

/* Returns the path of the python of the virtual environment into which pip installed ctrun; NULL if
 * there is no such environment.  torchrun also runs scripts with the python of its environment,
 * even if the environment is not activated. */
static const char *own_python(char *path, size_t size)
{
    char config[PATH_MAX];
    char *slash;

    program_own(path, size);
    slash = strrchr(path, '/');
    if (!slash || (size_t)(slash - path) + sizeof "/../pyvenv.cfg" > sizeof config
        || (size_t)(slash - path) + sizeof "/python" > size)
        return NULL;
    snprintf(config, sizeof config, "%.*s/../pyvenv.cfg", (int)(slash - path), path);
    memcpy(slash, "/python", sizeof "/python");
    return access(config, F_OK) == 0 && executable(path) == 0 ? path : NULL;
}

static int find_python(struct program *program, int module)
{
    const char *chosen = getenv("PYTHON_EXEC");
    const int is_chosen = chosen && *chosen;
    const char *const names[] = { own_python(program->python, sizeof program->python), "python",
                                  "python3" };

    for (int i = 0; i < (is_chosen ? 1 : 3); i++) {
        const char *name = is_chosen ? chosen : names[i];
        int cause;

        if (!name)
            continue;
        program->leading[0] = name;
        program->leading[1] = "-u";
        program->leading[2] = module ? "-m" : NULL;
        program->rewritten_from = 0;
        cause = program_search(name, program->path, sizeof program->path);
        if (cause == 0)
            return 0;
        if (is_chosen) {
            log_line(LOG_ERROR, "PYTHON_EXEC=%s: %s", chosen, strerror(cause));
            return cause == ENOENT ? 127 : 126;
        }
    }
    log_line(LOG_ERROR,
             "%s needs Python, and there is neither python nor python3 on PATH; set PYTHON_EXEC",
             program->words[0]);
    return 127;
}

/* Returns 0 if the file is not visible because a folder on its path is not searchable, else 1. */
static int is_seen(const char *name)
{
    return !strchr(name, '/') || access(name, F_OK) == 0;
}

/* Returns how to make the file executable, or why it can't be executable. */
static const char *cure_of(const char *path)
{
    struct statvfs about;

    return statvfs(path, &about) == 0 && about.f_flag & ST_NOEXEC
               ? "its file system is mounted noexec"
               : "chmod +x";
}

void program_own(char *path, size_t size)
{
    const ssize_t length = readlink("/proc/self/exe", path, size - 1);

    path[length > 0 ? length : 0] = 0;
}

int program_refuse(const char *name, int cause)
{
    char cure[64] = "";

    if (cause == EACCES && is_seen(name))
        snprintf(cure, sizeof cure, ": it is not executable (%s)", cure_of(name));
    if (cause == ENOENT && !strchr(name, '/'))
        log_line(LOG_ERROR,
                 "cannot run %s: No such file or directory: neither on PATH nor in the working "
                 "directory",
                 name);
    else
        log_line(LOG_ERROR, "cannot run %s: %s%s", name, strerror(cause), cure);
    return cause == ENOENT || cause == ENOTDIR ? 127 : 126;
}

static int ends_in(const char *name, const char *ending)
{
    const size_t length = strlen(name), tail = strlen(ending);

    return length > tail && !strcmp(name + length - tail, ending);
}

/* Returns 1 if Python must run the file, whatever it contains.  Standard input may be a terminal or
 * the temporary file of a here-document.  Nothing is read from it here, because Python must read
 * it. */
static int is_for_python(const char *path)
{
    char target[PATH_MAX];

    return ends_in(path, ".pyc") || ends_in(path, ".pyz") || !strcmp(path, "/dev/stdin")
           || !strncmp(path, "/dev/fd/", 8) || (realpath(path, target) && ends_in(target, ".py"));
}

/* The kind of a file that is not executable. */
enum content { UNREADABLE, PROGRAM, PYTHON, OTHER };

static enum content content_of(const char *path)
{
    char head[256] = "";
    struct stat about;
    FILE *file;

    if (is_for_python(path)
        || (stat(path, &about) == 0 && S_ISFIFO(about.st_mode))) /* only Python may read it */
        return PYTHON;
    file = fopen(path, "re");
    if (!file)
        return UNREADABLE;
    head[fread(head, 1, sizeof head - 1, file)] = '\0';
    fclose(file);
    head[strcspn(head, "\n")] = '\0';
    if (!strncmp(head, "PK\003\004", 4)) /* a zip file, with a __main__.py */
        return PYTHON;
    if (!strncmp(head, "#!", 2))
        return strstr(head, "python") ? PYTHON : PROGRAM;
    return !strncmp(head, "\177ELF", 4) ? PROGRAM : OTHER;
}

/* Refuses a file that is neither executable nor a Python script, since each rank would end with a
 * syntax error.  Returns the exit code. */
static int refuse_content(const char *name)
{
    log_line(LOG_ERROR,
             "cannot run %s: it is neither executable (%s) nor a *.py file (--run-path has "
             "Python run any file)",
             name, cure_of(name));
    return 126;
}

/* --run-path overrides --no-python, as with torchrun. */
int program_find(struct program *program, const struct options *options)
{
    const char *name = options->program[0];
    int cause = ENOENT;

    program->words = options->program;
    program->leading[0] = NULL;
    program->rewritten_from = 1;
    program->tells_rank = options->legacy_launch && !options->use_env;
    if (options->module && !options->run_path)
        return find_python(program, 1);
    if (options->run_path || (!options->no_python && ends_in(name, ".py"))) {
        /* The interpreter $PYTHON_EXEC may run in a container, where only it sees the file.  So
         * ctrun does not complain about a missing file then. */
        if (access(name, F_OK) < 0 && !getenv("PYTHON_EXEC")) {
            cause = errno;
            snprintf(program->path, sizeof program->path, "%s%s", strchr(name, '/') ? "" : "./",
                     name);
            return program_refuse(program->path, cause);
        }
        return find_python(program, 0);
    }
    if (!strchr(name, '/'))
        cause = program_search(name, program->path, sizeof program->path);
    if (cause != 0 && (strchr(name, '/') || (!options->no_python && access(name, F_OK) == 0))) {
        snprintf(program->path, sizeof program->path, "%s%s", strchr(name, '/') ? "" : "./", name);
        cause = executable(program->path);
        if (cause == EACCES && !options->no_python) {
            const enum content content = content_of(program->path);

            if (content == PYTHON)
                return find_python(program, 0);
            if (content == OTHER)
                return refuse_content(name);
        }
    }
    return cause ? program_refuse(name, cause) : 0;
}

int serves_pmi(const struct options *options, const struct program *program)
{
    const enum mpi_library library =
        program->leading[0] ? MPI_LIBRARY_NONE : mpi_library_of(program->path);

    if (library == MPI_LIBRARY_OPEN && options->mpi != MPI_NONE)
        log_line(LOG_WARN,
                 "%s is linked with Open MPI, which finds no other ranks under ctrun: each rank is "
                 "alone in its MPI_COMM_WORLD; start it with mpirun (--mpi=none silences this)",
                 program->words[0]);
    return options->mpi == MPI_PMI || (options->mpi == MPI_AUTO && library == MPI_LIBRARY_MPICH);
}

static int in_identifier(char c)
{
    return c == '_' || isalnum((unsigned char)c);
}

/* Returns the length of the macro at text ("$..."), and sets *stands to the replacement.  Returns 0
 * if there is no macro. */
static size_t program_macro(const char *text, const char *local_rank, const char **stands)
{
    static const char bare[] = "$local_rank", braced[] = "${local_rank}";

    *stands = local_rank;
    if (!strncmp(text, braced, sizeof braced - 1))
        return sizeof braced - 1;
    /* $local_ranks, for example, is another identifier, which is not replaced. */
    if (!strncmp(text, bare, sizeof bare - 1) && !in_identifier(text[sizeof bare - 1]))
        return sizeof bare - 1;
    *stands = "$";
    return text[1] == '$' ? 2 : 0;
}

size_t program_rewrite(const char *text, const char *local_rank, char *to)
{
    size_t length = 0;

    while (*text) {
        const char *stands;
        const size_t skip = *text == '$' ? program_macro(text, local_rank, &stands) : 0;
        const size_t put = skip ? strlen(stands) : 1;

        if (to)
            memcpy(to + length, skip ? stands : text, put);
        length += put;
        text += skip ? skip : 1;
    }
    if (to)
        to[length] = '\0';
    return length;
}

char **program_argv(const struct program *program, int local_rank)
{
    char rank[16], told[32], *text, **argv;
    size_t count = 0, bytes = sizeof told;
    int i;

    snprintf(rank, sizeof rank, "%d", local_rank);
    snprintf(told, sizeof told, "--local-rank=%d", local_rank);
    for (i = 0; program->leading[i]; i++)
        count++;
    for (i = 0; program->words[i]; i++, count++)
        bytes += program_rewrite(program->words[i], rank, NULL) + strlen(program->words[i]) + 1;
    if (!(argv = malloc((count + 2) * sizeof *argv + bytes)))
        return NULL;
    text = (char *)(argv + count + 2);
    count = 0;
    for (i = 0; program->leading[i]; i++)
        argv[count++] = (char *)(uintptr_t)program->leading[i];
    for (i = 0; program->words[i]; i++) {
        argv[count++] = i < program->rewritten_from ? program->words[i] : text;
        if (i >= program->rewritten_from)
            text += program_rewrite(program->words[i], rank, text) + 1;
        if (i == 0 && program->tells_rank) {
            argv[count++] = strcpy(text, told);
            text += strlen(told) + 1;
        }
    }
    argv[count] = NULL;
    return argv;
}
