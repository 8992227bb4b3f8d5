/* SPDX-License-Identifier: Apache-2.0 */
/* elf_module.h - where in which file an address of a process lies.  Only /proc is asked. */
#ifndef LAUNCHER_INSPECT_ELF_MODULE_H
#define LAUNCHER_INSPECT_ELF_MODULE_H

#include "launcher/inspect/snapshot.h"

struct module {
    char path[512]; /* to open it by; "": it is no file any more */
    char name[64];  /* its last part */
    uint64_t at;    /* the address as the file's own tables have it: addr2line -e path 0x... */
};

/* Of a return address: the call before it is meant.  0; -1: nothing is known. */
int module_find(pid_t pid, uint64_t address, struct module *module);

/* ->where of each call that a living rank is in becomes "train+0x1189". */
void module_places(struct job_snapshot *job);

#endif
