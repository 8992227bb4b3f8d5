/* SPDX-License-Identifier: Apache-2.0 */
/* new.c - implements ctctl new, which creates a folder with a small program that uses libct. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "launcher/ctctl/ctctl.h"
#include "launcher/util/shell_words.h"
#include "launcher/workers/program.h"

#define MARK "@NAME@"

/* contents of the files of the new folder, from template/embed.S */
extern const char template_main[], template_cmake[], template_readme[];

static int cannot(const char *path)
{
    fprintf(stderr, "ctctl: new: %s: %s\n", path, strerror(errno));
    return CANNOT_MAKE;
}

static int new_write_file(const char *name, const char *file, const char *text)
{
    char path[600];
    const char *mark;
    FILE *out;
    int result;

    snprintf(path, sizeof path, "%s/%s", name, file);
    if (!(out = fopen(path, "wx")))
        return cannot(path);
    for (; (mark = strstr(text, MARK)) != NULL; text = mark + strlen(MARK))
        fprintf(out, "%.*s%s", (int)(mark - text), text, name);
    fputs(text, out);
    result = ferror(out);
    return fclose(out) != 0 || result ? cannot(path) : 0;
}

/* Returns 1 if the name is valid for a CMake target and for a file. */
static int new_is_name(const char *name)
{
    static const char *const of_cmake[] = { "all", "clean", "help", "install", "test" };
    const size_t length = strlen(name);

    for (size_t i = 0; i < sizeof of_cmake / sizeof *of_cmake; i++)
        if (!strcmp(name, of_cmake[i]))
            return 0;
    return length > 0 && length <= 100 && (isalpha((unsigned char)*name) || *name == '_')
           && strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
                  == length;
}

/* Removes the last component of a path. */
static void cut_name(char *path)
{
    char *slash = strrchr(path, '/');

    *(slash ? slash : path) = '\0';
}

/* Prints the commands to type next.  If this ctctl is on PATH, ctrun is also there, and CMake finds
 * libct in the folders next to it. */
static void print_next(const char *name)
{
    char prefix[PATH_MAX], ctrun[PATH_MAX + 8], found[PATH_MAX];
    int is_on_path;

    program_own(prefix, sizeof prefix);
    cut_name(prefix);
    snprintf(ctrun, sizeof ctrun, "%s/ctrun", prefix);
    is_on_path = program_search("ctrun", found, sizeof found) == 0 && !strcmp(found, ctrun);
    cut_name(prefix);
    printf("    cd %s && cmake -B build", name);
#ifdef CT_WHEEL
    printf(" -Dct_DIR=\"$(python -c 'import ctrun; print(ctrun.cmake_dir())')\"");
#else
    if (!is_on_path) {
        printf(" -DCMAKE_PREFIX_PATH=");
        shell_quote(stdout, prefix);
    }
#endif
    printf(" && cmake --build build && ");
    shell_quote(stdout, is_on_path ? "ctrun" : ctrun);
    printf(" --nproc-per-node=4 build/%s\n", name);
}

int command_new(struct ctctl_options *options, char **words, int count)
{
    const char *name = words[0];

    (void)options;
    (void)count;
    if (!new_is_name(name)) {
        fprintf(stderr,
                "ctctl: new: '%s' can't be the name of a program: letters, digits, _ and -, a "
                "letter first, and no word of CMake's own (all, clean, help, install, test)\n",
                name);
        return WRONG_USAGE;
    }
    if (mkdir(name, 0777) < 0)
        return cannot(name);
    if (new_write_file(name, "main.c", template_main) != 0
        || new_write_file(name, "CMakeLists.txt", template_cmake) != 0
        || new_write_file(name, "README.md", template_readme) != 0)
        return CANNOT_MAKE;
    printf("created %s/ with main.c, CMakeLists.txt and README.md; next:\n", name);
    print_next(name);
    return 0;
}
