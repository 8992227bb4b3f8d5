/* SPDX-License-Identifier: Apache-2.0 */
/* core_file.c - finds the core file of a dead worker from the kernel's core_pattern, see
 * core(5). */
#include "launcher/report/core_file.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int core_read_line(const char *path, char *line, size_t size)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t got = fd < 0 ? -1 : read(fd, line, size - 1);

    if (fd >= 0)
        close(fd);
    line[got > 0 ? got : 0] = '\0';
    line[strcspn(line, "\n")] = '\0';
    return got < 0 ? -1 : 0;
}

/* Expands one % specifier of the pattern.  Returns 0, or -1 if only the kernel knows the value. */
static int core_expand(char what, const struct worker *worker, const char *program, char *to,
                       size_t size)
{
    const char *const slash = strrchr(program, '/');

    *to = '\0';
    switch (what) {
    case '%':
        snprintf(to, size, "%%");
        return 0;
    case 'p':
    case 'i': /* the id of the thread; the first thread has the id of the process */
    case 'P':
    case 'I': /* %P and %I are ids outside of a container; ctrun has only the id inside */
        snprintf(to, size, "%d", (int)worker->pid);
        return 0;
    case 's':
        snprintf(to, size, "%d", worker->code);
        return 0;
    case 'u':
        snprintf(to, size, "%u", (unsigned)getuid());
        return 0;
    case 'g':
        snprintf(to, size, "%u", (unsigned)getgid());
        return 0;
    case 'h':
        gethostname(to, size - 1);
        return 0;
    case 'e':
    case 'f': /* the kernel stores only 15 bytes of a name */
        snprintf(to, size, "%.15s", slash ? slash + 1 : program);
        return 0;
    /* Only the kernel knows values such as the exact time (%t) and the size limit (%c). */
    case 't':
    case 'c':
    case 'd':
    case 'E':
    case 'C':
    case 'F':
        return -1;
    default: /* the kernel drops any other specifier, too */
        return 0;
    }
}

int core_file_name(const char *pattern, int uses_pid, const struct worker *worker,
                   const char *program, char *name, size_t size)
{
    size_t used = 0;
    int has_pid = 0;

    *name = '\0';
    for (; *pattern && used + 1 < size; pattern++) {
        char piece[256] = { pattern[0], '\0' };

        if (*pattern == '%') {
            if (!*++pattern)
                break;
            has_pid |= *pattern == 'p';
            if (core_expand(*pattern, worker, program, piece, sizeof piece) < 0)
                return -1;
        }
        used += (size_t)snprintf(name + used, size - used, "%s", piece);
    }
    if (uses_pid && !has_pid && used < size)
        snprintf(name + used, size - used, ".%d", (int)worker->pid);
    return 0;
}

void core_file_find(const struct worker *worker, const char *program, char *text, size_t size)
{
    char pattern[256], uses_pid[16], name[512], here[PATH_MAX] = "";

    if (core_read_line("/proc/sys/kernel/core_pattern", pattern, sizeof pattern) < 0)
        snprintf(text, size, "where, /proc does not say");
    else if (*pattern == '|' && strstr(pattern, "systemd-coredump"))
        snprintf(text, size, "see coredumpctl info %d", (int)worker->pid);
    else if (*pattern == '|')
        snprintf(text, size, "given to %s (kernel.core_pattern)", pattern + 1);
    else if (core_read_line("/proc/sys/kernel/core_uses_pid", uses_pid, sizeof uses_pid) < 0
             || core_file_name(pattern, *uses_pid == '1', worker, program, name, sizeof name) < 0
             || access(name, F_OK) < 0) /* the worker may have changed its folder */
        snprintf(text, size, "as kernel.core_pattern says, %s", pattern);
    else if (*name != '/' && getcwd(here, sizeof here))
        snprintf(text, size, "%s/%s", here, name);
    else
        snprintf(text, size, "%s", name);
}
