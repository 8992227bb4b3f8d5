/* SPDX-License-Identifier: Apache-2.0 */
/* elf_module.h - finds the file and the offset of an address in a process, with /proc alone. */
#ifndef LAUNCHER_INSPECT_ELF_MODULE_H
#define LAUNCHER_INSPECT_ELF_MODULE_H

#include <time.h>

#include "launcher/inspect/snapshot.h"

struct module {
    char path[512]; /* the path that opens the file; "" if the file is deleted */
    char name[64];  /* the last component of the path */
    uint64_t at;    /* the address in the file's symbol tables, as addr2line expects it */
    /* tell the file from others of the same name, and from what it was before; 0 if not known */
    ino_t inode;
    struct timespec changed;
};

/* Finds the module of a return address, and sets module->at to the address of the call before it.
 * Returns 0, or -1 if the address is in no file. */
int module_find(pid_t pid, uint64_t address, struct module *module);

/* The same for the call that a living rank is in; also sets ->where to "train+0x1189".  Returns -1
 * if the rank is in no call of the group, too. */
int module_of_call(const struct rank_snapshot *rank, struct group_snapshot *group,
                   struct module *module);

/* For each call that a living rank is in, sets ->where to the module and the offset in it, such as
 * "train+0x1189". */
void module_places(struct job_snapshot *job);

#endif
