/* SPDX-License-Identifier: Apache-2.0 */
/* elf_module.h - finds the file and offset of an address in a process, from /proc alone. */
#ifndef LAUNCHER_INSPECT_ELF_MODULE_H
#define LAUNCHER_INSPECT_ELF_MODULE_H

#include "launcher/inspect/snapshot.h"

struct module {
    char path[512]; /* to open the file; "": it is deleted */
    char name[64];  /* the last part of the path */
    uint64_t at;    /* the address in the file's own symbol tables, as addr2line takes it */
};

/* Takes a return address, and gives the address of the call before it.  0; -1: no file has it. */
int module_find(pid_t pid, uint64_t address, struct module *module);

/* Sets ->where of each call that a living rank is in to "train+0x1189". */
void module_places(struct job_snapshot *job);

#endif
