/* SPDX-License-Identifier: Apache-2.0 */
/* new.c - ctctl new: a folder with a program of libct that builds and runs. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "launcher/ctctl/ctctl.h"

#define MARK "@NAME@"

/* template/embed.S */
extern const char template_main[], template_cmake[], template_readme[];

static int cannot(const char *path)
{
    fprintf(stderr, "ctctl: new: %s: %s\n", path, strerror(errno));
    return CANNOT_MAKE;
}

static int write_file(const char *name, const char *file, const char *text)
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

/* It becomes a target of CMake and a file. */
static int is_name(const char *name)
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

int command_new(struct ctctl_options *options, char **words, int count)
{
    const char *name = words[0];

    (void)options;
    (void)count;
    if (!is_name(name)) {
        fprintf(stderr,
                "ctctl: new: '%s' can't be the name of a program: letters, digits, _ and -, a "
                "letter first, and no word of CMake's own (all, clean, help, install, test)\n",
                name);
        return WRONG_USAGE;
    }
    if (mkdir(name, 0777) < 0)
        return cannot(name);
    if (write_file(name, "main.c", template_main) != 0
        || write_file(name, "CMakeLists.txt", template_cmake) != 0
        || write_file(name, "README.md", template_readme) != 0)
        return CANNOT_MAKE;
    printf(
        "made %s/: main.c, CMakeLists.txt, README.md; now\n"
        "    cd %s && cmake -B build && cmake --build build && ctrun --nproc-per-node=4 build/%s\n",
        name, name, name);
    return 0;
}
