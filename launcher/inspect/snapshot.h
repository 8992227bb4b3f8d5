/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot.h - the state of a job at one moment, from its control page
 * (runtime/monitor/control_page.h) and from /proc.  All numbers are within their bounds, and all
 * text is safe to print on a terminal.
 *
 *     find_jobs.c     finds the jobs of this host by the control pages that processes hold open
 *     page_reader.c   copies a page into this structure, whatever bytes the page holds
 *     proc_info.c     adds the state of each process
 *     elf_module.c    adds the file and offset of each call's return address
 *     source_lines.c  turns these into source lines, by addr2line
 *     groups.c        assembles the groups from the entries of their ranks
 *     blocker.c       finds what a rank does while other ranks wait for it
 *     verdict.c       decides which ranks wait, and for which ranks; reads only the snapshot
 *     rank_stage.c    names what each rank does in one word
 *     verdict_text.c  writes a verdict as a sentence and as JSON
 *
 * These files need no answer from a rank or from ctrun, which may be stopped or dead. */
#ifndef LAUNCHER_INSPECT_SNAPSHOT_H
#define LAUNCHER_INSPECT_SNAPSHOT_H

#include <stdint.h>
#include <sys/types.h>

#include "runtime/monitor/control_page.h"

/* A page with larger numbers is refused as not valid. */
#define SNAPSHOT_RANKS 65536 /* most ranks of a job or a group */
#define SNAPSHOT_LOCAL 4096  /* most ranks of a host */

struct call_snapshot {
    uint64_t seq, count, begun_ns;
    int operation, dtype, op, root;
    int tag; /* tag of a message */
    enum control_phase phase;
    int group; /* index of the group in rank_snapshot.group */
};

/* A rank's entry on the page for one of its groups. */
struct group_snapshot {
    uint64_t id;  /* 0 if the rank left the group, and no other group uses the entry yet */
    uint64_t was; /* if id is 0: the id of the group that the rank left, or 0 if it left no group */
    char name[28];
    int rank, size;
    uint64_t begun, done;
    struct call_snapshot now;
    int moving;      /* 1 if the entry changed during each copy, so the rank is making calls */
    uint64_t caller; /* return address of the call into libct, in the program */
    int is_observed; /* 1 if the call is another library's, which an observer showed */
    /* the place of the call, "train.c:88 (step)" or "train+0x1189"; "" if not known */
    char where[160];
};

struct process_snapshot {
    pid_t pid;
    char state; /* the process state as the letter that ps shows; 0 if the process does not exist */
    pid_t parent, group, tracer;
    char name[16];
    /* "futex", "read" ..., or the kernel's wchan; "" if not known, or if the process runs */
    char waits_in[32];
    double cpu_s;
    double ended_s; /* processor time of its children that have ended */
};

struct death_snapshot {
    int rank, how, code, pid, asked;
    char host[64];
    int tombs;
    struct control_tomb tomb[CONTROL_TOMBS];
};

enum observer_snapshot {
    OBSERVER_NONE, /* no observer shows what the process does */
    OBSERVER_ANSWERED,
    OBSERVER_ASKED, /* a reader asked a moment ago; the observer answered the question before */
    OBSERVER_SILENT /* the observer has not answered, so what it showed before may be out of date */
};

struct rank_snapshot {
    int rank, local_rank;
    /* `worker` is the process that ctrun started; `pid` is the writer of this part of the page, or
     * 0 if there is no writer yet */
    pid_t worker, pid;
    enum control_state state;
    uint64_t since_ns;
    char waiting_for[96];
    uint64_t waiting_since_ns;
    enum observer_snapshot observer;
    pid_t observer_pid;
    uint64_t answers_ms; /* processor time that the observer's thread used for answers */
    int stacks_fd;       /* the observer's descriptor of a file with stacks; -1 without one */
    /* where the main thread is, "train.py:88 (step)"; "" if no observer has answered */
    char main_place[100];
    struct group_snapshot group[CONTROL_GROUPS];
    struct call_snapshot ring[CONTROL_CALLS]; /* the last calls, newest first */
    int ring_used;
    /* sums over all groups, including messages; bytes is the sum of count times the dtype's size */
    uint64_t calls, bytes;
    /* The fields below are from /proc. */
    struct process_snapshot process; /* the process `pid`, or the process `worker` if pid is 0 */
    struct process_snapshot wrapper; /* the process `worker`, if pid is another process */
    char command[160];
};

struct job_snapshot {
    char run_id[128], generation[64], host[64], program[256];
    int node, nodes, base, local, world;
    pid_t launcher;
    char launcher_state; /* state of ctrun's process, as in process_snapshot; from /proc */
    int restarts;
    /* 1 if ranks made their own pages, without ctrun; then `ranks` counts the ranks found here, and
     * world is the size of the largest group */
    int own_memory;
    int64_t started_ns; /* start of the round, in CLOCK_REALTIME */
    uid_t uid;
    int ranks;
    struct rank_snapshot *rank; /* [ranks]; snapshot_free() frees it */
    /* for how long no process of the job has used a processor or written output; 0 if not known */
    uint64_t quiet_ns;
    int deaths;
    struct death_snapshot *death; /* [deaths]; snapshot_free() frees it */
    char key[160];                /* the key that all ranks of a job share, if own_memory is 1 */
    uint64_t now_ns;              /* CLOCK_MONOTONIC_COARSE time at which the page was copied */
    uint64_t asked_ns;            /* time of the last question to the observers */
};

/* Returns how many ns before the snapshot then_ns was; 0 if then_ns is later than the snapshot. */
static inline uint64_t snapshot_age(const struct job_snapshot *job, uint64_t then_ns)
{
    return job->now_ns > then_ns ? job->now_ns - then_ns : 0;
}

void snapshot_free(struct job_snapshot *job);

/* Finds the death of a rank of the job, on any host; NULL if ctrun knows of no such death. */
const struct death_snapshot *snapshot_death_of(const struct job_snapshot *job, int rank);

#endif
