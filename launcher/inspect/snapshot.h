/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot.h - a job at one moment: what its control page (runtime/monitor/control_page.h) and
 * /proc show.  All numbers are within their bounds, and all text is safe to print on a terminal.
 *
 *     find_jobs.c     finds the jobs of this host by the control pages that processes hold open
 *     page_reader.c   copies a page; the copy has this shape, whatever bytes the page holds
 *     proc_info.c     adds the state of each process
 *     elf_module.c    adds the file and offset of each call's return address
 *     groups.c        puts the groups together from the entries of their ranks
 *     blocker.c       finds what a rank does that keeps others waiting
 *     verdict.c       says which ranks wait, and for which; reads only the snapshot
 *     verdict_text.c  writes a verdict as a sentence and as JSON
 *
 * These files need no answer from a rank or from ctrun, which may be stopped or dead. */
#ifndef LAUNCHER_INSPECT_SNAPSHOT_H
#define LAUNCHER_INSPECT_SNAPSHOT_H

#include <stdint.h>
#include <sys/types.h>

#include "runtime/monitor/control_page.h"

/* A page with more ranks is refused as not valid. */
#define SNAPSHOT_RANKS 65536 /* of a job, and of a group */
#define SNAPSHOT_LOCAL 4096  /* of a host */

struct call_snapshot {
    uint64_t seq, count, begun_ns;
    int operation, dtype, op, root;
    int tag; /* of a message */
    enum control_phase phase;
    int group; /* index in group[] */
};

/* A group of a rank: the rank's entry for it on the page. */
struct group_snapshot {
    uint64_t id;  /* 0: the rank left the group, and no other group uses the entry yet */
    uint64_t was; /* the id of the group that it left, if id is 0; 0: it left none */
    char name[28];
    int rank, size;
    uint64_t begun, done;
    struct call_snapshot now;
    int moving;      /* 1: the entry changed during each copy, so the rank is making calls */
    uint64_t caller; /* return address of the call in the program */
    char where[160]; /* that place as "train.c:88 (step)" or "train+0x1189"; "": not known */
};

struct process_snapshot {
    pid_t pid;
    char state; /* as ps shows it; 0: there is no such process */
    pid_t parent, group, tracer;
    char name[16];
    char waits_in[32]; /* "futex", "read" ..., or the kernel's wchan; "": not known, or running */
    double cpu_s;
};

struct death_snapshot {
    int rank, how, code, pid, asked;
    char host[64];
    int tombs;
    struct control_tomb tomb[CONTROL_TOMBS];
};

struct rank_snapshot {
    int rank, local_rank;
    pid_t worker, pid; /* started by ctrun; writer of this part of the page (0: not yet) */
    enum control_state state;
    uint64_t since_ns;
    char waiting_for[96];
    uint64_t waiting_since_ns;
    struct group_snapshot group[CONTROL_GROUPS];
    struct call_snapshot ring[CONTROL_CALLS]; /* the last calls, newest first */
    int ring_used;
    uint64_t calls, bytes; /* of all groups, with messages; bytes: count times the dtype's size */
    /* From /proc: */
    struct process_snapshot process; /* of pid; of worker if pid is 0 */
    struct process_snapshot wrapper; /* of worker, if pid is another process */
    char command[160];
};

struct job_snapshot {
    char run_id[128], generation[64], host[64], program[256];
    int node, nodes, base, local, world;
    pid_t launcher;
    char launcher_state; /* from /proc, like the state of a rank's process */
    int restarts;
    int own_memory; /* 1: no ctrun: `ranks` are those found here, the world is the largest group */
    int64_t started_ns; /* CLOCK_REALTIME */
    uid_t uid;
    int ranks;
    struct rank_snapshot *rank; /* [ranks]; snapshot_free() frees it */
    int deaths;
    struct death_snapshot *death; /* [deaths]; snapshot_free() frees it */
    char key[160];                /* own_memory: the key, which all ranks of a job share */
    uint64_t now_ns;              /* when the page was copied, CLOCK_MONOTONIC_COARSE */
};

/* Gives how long ago then_ns was; 0: it is in the future. */
static inline uint64_t snapshot_age(const struct job_snapshot *job, uint64_t then_ns)
{
    return job->now_ns > then_ns ? job->now_ns - then_ns : 0;
}

void snapshot_free(struct job_snapshot *job);

/* Finds the death of a rank of the job, on any host; NULL: ctrun knows of none. */
const struct death_snapshot *snapshot_death_of(const struct job_snapshot *job, int rank);

#endif
