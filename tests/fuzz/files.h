/* SPDX-License-Identifier: Apache-2.0 */
/* files.h - files of the kernel's, made of the input: open() and fopen() in front of the C
 * library's. For one program's one source, which says before it includes this what is FILES_BELOW.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/fuzz/input.h"

enum { MOST_FILES = 200 };

struct file {
    char path[640];
    const uint8_t *text; /* NULL: there is no such file */
    size_t size;
};

/* The next text of the input, for a path that is asked for the first time; 0: they are used up. */
static int next_text(struct file *file);

static struct file files[MOST_FILES]; /* of this input */
static int files_count;

/* The same path is the same text; NULL: there is no such file. */
static const struct file *file_at(const char *path)
{
    struct file *file = &files[files_count];

    for (int i = 0; i < files_count; i++)
        if (!strcmp(files[i].path, path))
            return &files[i];
    if (files_count == MOST_FILES || !next_text(file))
        return NULL;
    snprintf(file->path, sizeof file->path, "%s", path);
    files_count++;
    return file;
}

static int open_text(const char *path)
{
    const struct file *file = file_at(path);
    const int fd = file && file->text ? memfd_create("text", MFD_CLOEXEC) : -1;

    if (fd < 0) {
        errno = ENOENT;
        return -1;
    }
    holds(pwrite(fd, file->text, file->size, 0) == (ssize_t)file->size);
    return fd;
}

int open(const char *path, int flags, ...)
{
    va_list args;
    int mode;

    va_start(args, flags);
    mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, int) : 0;
    va_end(args);
    return strncmp(path, FILES_BELOW, strlen(FILES_BELOW))
               ? (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode)
               : open_text(path);
}

FILE *fopen(const char *path, const char *how)
{
    const int flags =
        *how == 'r' ? O_RDONLY : O_WRONLY | O_CREAT | (*how == 'a' ? O_APPEND : O_TRUNC);
    const int fd = open(path, flags, 0666);

    return fd < 0 ? NULL : fdopen(fd, how);
}
