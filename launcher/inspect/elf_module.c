/* SPDX-License-Identifier: Apache-2.0 */
/* elf_module.c - turns an address of a process into an address that debug information uses.
 * /proc/<pid>/maps shows the mapped file and the offset in the file.  The file's program headers
 * map the offset to the address. */
#include "launcher/inspect/elf_module.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/inspect/page_reader.h"

#define HEADERS 64 /* most program headers that are read */

/* Turns an offset in the module's file into an address in the file's symbol tables, which is the
 * offset itself if the file is not a 64-bit ELF file.  Also says which file that is. */
static void read_file_of(struct module *module, uint64_t offset)
{
    const int fd = open(module->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    Elf64_Ehdr head;
    struct stat file;

    module->at = offset;
    if (fd < 0)
        return;
    if (fstat(fd, &file) == 0) {
        module->inode = file.st_ino;
        module->changed = file.st_ctim;
    }
    if (pread(fd, &head, sizeof head, 0) == sizeof head && !memcmp(head.e_ident, ELFMAG, SELFMAG)
        && head.e_ident[EI_CLASS] == ELFCLASS64 && head.e_phentsize == sizeof(Elf64_Phdr))
        for (int i = 0; i < head.e_phnum && i < HEADERS; i++) {
            const off_t at = (off_t)head.e_phoff + i * (off_t)sizeof(Elf64_Phdr);
            Elf64_Phdr part;

            if (pread(fd, &part, sizeof part, at) != sizeof part)
                break;
            if (part.p_type == PT_LOAD && offset >= part.p_offset
                && offset - part.p_offset < part.p_filesz)
                module->at = offset - part.p_offset + part.p_vaddr;
        }
    close(fd);
}

/* Sets the module's name and path.  The path begins with /proc/<pid>/root, since in a container the
 * same path may be a different file than here.  If the file is deleted, the path is /proc/<pid>/exe
 * for the program itself, and "" for a library. */
static void name_module(pid_t pid, char *path, struct module *module)
{
    const char *slash = strrchr(path, '/');
    char *gone = strstr(path, " (deleted)");
    char exe[64], link[512];
    ssize_t length;

    page_text(module->name, sizeof module->name, slash ? slash + 1 : path,
              gone && slash ? (size_t)(gone - slash - 1) : sizeof module->name);
    snprintf(module->path, sizeof module->path, "/proc/%d/root%s", (int)pid, path);
    if (!gone)
        return;
    snprintf(exe, sizeof exe, "/proc/%d/exe", (int)pid);
    length = readlink(exe, link, sizeof link - 1);
    link[length > 0 ? length : 0] = '\0';
    snprintf(module->path, sizeof module->path, "%s", !strcmp(link, path) ? exe : "");
}

int module_find(pid_t pid, uint64_t address, struct module *module)
{
    char name[64], line[4600];
    int found = -1;
    FILE *maps;

    *module = (struct module){ .at = 0 };
    if (pid <= 0 || address == 0)
        return -1;
    address--;
    snprintf(name, sizeof name, "/proc/%d/maps", (int)pid);
    if (!(maps = fopen(name, "re")))
        return -1;
    while (found < 0 && fgets(line, sizeof line, maps)) {
        unsigned long long from, to, offset;
        int path = 0;

        if (sscanf(line, "%llx-%llx %*s %llx %*s %*s %n", &from, &to, &offset, &path) < 3
            || address < from || address >= to || path == 0 || line[path] != '/')
            continue;
        line[strcspn(line, "\n")] = '\0';
        name_module(pid, line + path, module);
        read_file_of(module, address - from + offset);
        found = 0;
    }
    fclose(maps);
    return found;
}

int module_of_call(const struct rank_snapshot *rank, struct group_snapshot *group,
                   struct module *module)
{
    if (!group->id || group->now.phase != CONTROL_IN || !rank->process.state
        || module_find(rank->process.pid, group->caller, module) < 0)
        return -1;
    snprintf(group->where, sizeof group->where, "%s+0x%llx", module->name,
             (unsigned long long)module->at);
    return 0;
}

void module_places(struct job_snapshot *job)
{
    struct module module;

    for (int i = 0; i < job->ranks; i++)
        for (int j = 0; j < CONTROL_GROUPS; j++)
            module_of_call(&job->rank[i], &job->rank[i].group[j], &module);
}
