/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_machine.c - whatever the kernel, or a container that stands in for it, shows of the
 * machine: control groups in both versions, CPUs, caches and nodes in sysfs.
 *
 * The input is texts, each behind a byte for its size.  A file under "/fuzz" that is opened is the
 * next of them, in the order in which they are asked for; the same path gives the same
 * text within one input; behind the last one no file is there. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "launcher/cgroup.h"
#include "launcher/topology.h"

enum { CPUS = 4, MOST_FILES = 200 };

struct file {
    char path[512];
    const uint8_t *text;
    size_t size;
};

static const uint8_t *input;
static size_t left;
static struct file files[MOST_FILES];
static int count;

static void holds(int it)
{
    if (!it)
        abort();
}

/* ---- In front of the C library's -------------------------------------------------------- */

static const struct file *file_at(const char *path)
{
    struct file *file = &files[count];

    for (int i = 0; i < count; i++)
        if (!strcmp(files[i].path, path))
            return &files[i];
    if (left == 0 || count == MOST_FILES)
        return NULL;
    file->size = input[0] < left - 1 ? input[0] : left - 1;
    file->text = input + 1;
    input += 1 + file->size;
    left -= 1 + file->size;
    snprintf(file->path, sizeof file->path, "%s", path);
    count++;
    return file;
}

static int open_text(const char *path)
{
    const struct file *file = file_at(path);
    const int fd = file && file->size > 0 ? memfd_create("text", MFD_CLOEXEC) : -1;

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
    return strncmp(path, "/fuzz/", 6) ? (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode)
                                      : open_text(path);
}

FILE *fopen(const char *path, const char *how)
{
    const int flags =
        *how == 'r' ? O_RDONLY : O_WRONLY | O_CREAT | (*how == 'a' ? O_APPEND : O_TRUNC);
    const int fd = open(path, flags, 0666);

    return fd < 0 ? NULL : fdopen(fd, how);
}

/* ---- One input ---------------------------------------------------------------------------- */

static void begin(const uint8_t *data, size_t size)
{
    input = data;
    left = size;
    count = 0;
}

static void look_at_topology(void)
{
    struct topology topology = { .cpus = CPUS };
    char text[CPUS_TEXT];

    for (int cpu = 0; cpu < CPUS; cpu++)
        cpus_add(&topology.allowed, cpu);
    holds((topology.cpu = calloc(CPUS + 1, sizeof *topology.cpu)) != NULL);
    holds(topology_by_sysfs(&topology, "/fuzz") == 0);
    for (int cpu = 0; cpu < CPUS; cpu++) {
        holds(topology.cpu[cpu].core >= 0 && topology.cpu[cpu].core < CPUS_MOST);
        holds(topology.cpu[cpu].cache >= -1 && topology.cpu[cpu].cache < CPUS_MOST);
        holds(topology.cpu[cpu].node >= 0 && topology.cpu[cpu].node < CPUS_MOST);
    }
    holds(topology_last_node(&topology) < CPUS_MOST);
    for (int node = -1; node < 3; node++) {
        const struct cpus cpus = topology_node(&topology, node);

        holds(cpus_within(&cpus, &topology.allowed));
        cpus_write(&cpus, text);
    }
    topology_free(&topology);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    begin(data, size);
    holds(cgroup_cpus("/fuzz") >= 0);
    begin(data, size);
    look_at_topology();
    return 0;
}
