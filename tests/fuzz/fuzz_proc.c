/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_proc.c - what /proc shows of a process that may be anybody's: its state, its maps, the
 * program that they name, its variables.  What comes out is text that a terminal can be shown.
 *
 * The input is two bytes for an address, then texts, each behind two for its size.  A file of
 * /proc/7 that is opened is the next of them, in the order in which they are asked for; the same
 * path gives the same text; behind the last one no file is there. */
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

#include "launcher/inspect/elf_module.h"
#include "launcher/inspect/find_jobs.h"
#include "launcher/inspect/proc_info.h"

#define FILES_BELOW "/proc/7/"
#include "tests/fuzz/files.h"

enum { PID = 7 };

static struct fuzz_input in;

static size_t take_two(void)
{
    size_t number;

    if (in.left < 2) {
        in.left = 0;
        return 0;
    }
    number = in.data[0] | (size_t)in.data[1] << 8;
    in.data += 2;
    in.left -= 2;
    return number;
}

static int next_text(struct file *file)
{
    if (in.left < 2)
        return 0;
    file->size = take_two();
    file->size = file->size < in.left ? file->size : in.left;
    file->text = in.data;
    in.data += file->size;
    in.left -= file->size;
    return 1;
}

ssize_t readlink(const char *path, char *to, size_t size)
{
    const struct file *file = strncmp(path, "/proc/7/", 8) ? NULL : file_at(path);

    if (strncmp(path, "/proc/7/", 8) != 0)
        return syscall(SYS_readlinkat, AT_FDCWD, path, to, size);
    if (!file)
        return errno = ENOENT, -1;
    size = size < file->size ? size : file->size;
    memcpy(to, file->text, size);
    return (ssize_t)size;
}

/* ---- One input ------------------------------------------------------------------------ */

/* Nothing that a terminal would obey. */
static void is_text(const char *text, size_t size)
{
    const size_t length = strnlen(text, size);

    holds(length < size);
    for (size_t i = 0; i < length; i++)
        holds((unsigned char)text[i] >= ' ' && text[i] != 127);
}

static void look_at_job(void)
{
    struct rank_snapshot *rank = calloc(1, sizeof *rank);
    struct job_snapshot job = { .ranks = 1, .rank = rank };

    holds(rank != NULL);
    rank->worker = rank->pid = PID;
    process_read_all(&job);
    is_text(rank->process.name, sizeof rank->process.name);
    is_text(rank->process.waits_in, sizeof rank->process.waits_in);
    is_text(rank->command, sizeof rank->command);
    free(rank);
}

static void look_for_address(uint64_t address)
{
    struct module module;

    if (module_find(PID, address, &module) == 0) {
        is_text(module.name, sizeof module.name);
        holds(memchr(module.path, '\0', sizeof module.path) != NULL);
    }
}

static void look_at_variables(void)
{
    char *environment = malloc(4096), key[160];
    size_t size;

    holds(environment != NULL);
    size = process_file(PID, "environ", environment, 4096);
    job_key(environment, size, 1, key, sizeof key);
    is_text(key, sizeof key);
    free(environment);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t address;

    in = (struct fuzz_input){ data, size };
    files_count = 0;
    address = take_two();
    look_for_address(address);
    look_at_job();
    look_at_variables();
    return 0;
}
