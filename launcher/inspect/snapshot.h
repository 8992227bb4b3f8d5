/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot.h - a job as it stood at one moment: what its control page
 * (runtime/monitor/control_page.h) and /proc say, as plain numbers in their bounds and text that a
 * terminal can be shown.
 *
 *     find_jobs.c     which jobs are there: descriptors of control pages in /proc
 *     page_reader.c     a page, copied; whatever is in it, what comes out has this shape
 *     proc_info.c  what the kernel says of the processes
 *     verdict.c  who waits for whom, in sentences: looks at nothing but this
 *
 * Ranks and ctrun may be stopped or dead meanwhile; nobody is asked anything. */
#ifndef LAUNCHER_INSPECT_SNAPSHOT_H
#define LAUNCHER_INSPECT_SNAPSHOT_H

#include <stdint.h>
#include <sys/types.h>

#include "runtime/monitor/control_page.h"

#define SNAPSHOT_RANKS 65536 /* of a job, and of a group: more is no page of ours */
#define SNAPSHOT_LOCAL 4096  /* of a host */

struct call_snapshot {
    uint64_t seq, count, begun_ns;
    int operation, dtype, op, root;
    int tag; /* of a message */
    enum control_phase phase;
    int group; /* index in group[] */
};

/* A group of a rank. */
struct group_snapshot {
    uint64_t id;  /* 0: it has left this group, and nothing has taken its place yet */
    uint64_t was; /* then: the id of that group; 0: there was none */
    char name[28];
    int rank, size;
    uint64_t begun, done;
    struct call_snapshot now;
    int moving;      /* its line changed whenever we looked */
    uint64_t caller; /* an address in the program */
    char where[160]; /* the same as "train.c:88 (step)"; "": not looked up */
};

struct process_snapshot {
    pid_t pid;
    char state; /* as ps shows it; 0: there is no such process */
    pid_t parent, session, tracer;
    char name[16];
    char waits_in[32]; /* the kernel's word for where it sleeps; "": not known, or it runs */
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
    pid_t worker, pid; /* that ctrun started; that speaks here (0: nobody has) */
    enum control_state state;
    uint64_t since_ns;
    char waiting_for[96];
    uint64_t waiting_since_ns;
    struct group_snapshot group[CONTROL_GROUPS];
    struct call_snapshot ring[CONTROL_CALLS]; /* the newest first */
    int ring_used;
    /* of /proc: */
    struct process_snapshot process; /* of pid, else of worker */
    struct process_snapshot wrapper; /* of worker, where that is another one */
    char command[160];
};

struct job_snapshot {
    char run_id[128], generation[64], host[64], program[256];
    int node, nodes, base, local, world;
    pid_t launcher;
    char launcher_state; /* of /proc, as of a rank's process */
    int restarts;
    int own_memory;     /* no ctrun: ranks are those that were found, world what they say */
    int64_t started_ns; /* CLOCK_REALTIME */
    uid_t uid;
    int ranks;
    struct rank_snapshot *rank; /* [ranks]; freed by snapshot_free() */
    int deaths;
    struct death_snapshot *death; /* [deaths]; likewise */
    char key[160];                /* own_memory: the same for ranks of one job */
    uint64_t now_ns;              /* when it was looked at, CLOCK_MONOTONIC_COARSE */
};

/* How long ago that was; 0: it is still to come. */
static inline uint64_t snapshot_age(const struct job_snapshot *job, uint64_t then_ns)
{
    return job->now_ns > then_ns ? job->now_ns - then_ns : 0;
}

void snapshot_free(struct job_snapshot *job);

/* Of a rank of the job, here or elsewhere; NULL: nobody told of its end. */
const struct death_snapshot *snapshot_death_of(const struct job_snapshot *job, int rank);

#endif
