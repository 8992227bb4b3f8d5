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

#define LOOK_RANKS 65536 /* of a job, and of a group: more is no page of ours */
#define LOOK_LOCAL 4096  /* of a host */

struct look_call {
    uint64_t seq, count, begun_ns;
    int operation, dtype, op, root;
    enum control_phase phase;
    int group; /* index in group[] */
};

/* A group of a rank. */
struct look_group {
    uint64_t id;  /* 0: it has left this group, and nothing has taken its place yet */
    uint64_t was; /* then: the id of that group; 0: there was none */
    char name[28];
    int rank, size;
    uint64_t begun, done;
    struct look_call now;
    int moving; /* its line changed whenever we looked */
    int tag;
    uint64_t caller; /* an address in the program */
    char where[160]; /* the same as "train.c:88 (step)"; "": not looked up */
};

struct look_process {
    pid_t pid;
    char state; /* as ps shows it; 0: there is no such process */
    pid_t parent, session, tracer;
    char name[16];
    char waits_in[32]; /* the kernel's word for where it sleeps; "": not known, or it runs */
    double cpu_s;
};

struct look_death {
    int rank, how, code, pid, asked;
    char host[64];
    int tombs;
    struct control_tomb tomb[CONTROL_TOMBS];
};

struct look_rank {
    int rank, local_rank;
    pid_t worker, pid; /* that ctrun started; that speaks here (0: nobody has) */
    enum control_state state;
    uint64_t since_ns;
    char waiting_for[96];
    uint64_t waiting_since_ns;
    struct look_group group[CONTROL_GROUPS];
    struct look_call ring[CONTROL_CALLS]; /* the newest first */
    int ring_used;
    /* of /proc: */
    struct look_process process; /* of pid, else of worker */
    struct look_process wrapper; /* of worker, where that is another one */
    char command[160];
};

struct look_job {
    char run_id[128], generation[64], host[64], program[256];
    int node, nodes, base, local, world;
    pid_t launcher;
    char launcher_state; /* of /proc, as of a rank's process */
    int restarts;
    int own_memory;     /* no ctrun: ranks are those that were found, world what they say */
    int64_t started_ns; /* CLOCK_REALTIME */
    uid_t uid;
    int ranks;
    struct look_rank *rank; /* [ranks]; freed by look_free() */
    int deaths;
    struct look_death *death; /* [deaths]; likewise */
    char key[160];            /* own_memory: the same for ranks of one job */
    uint64_t now_ns;          /* when it was looked at, CLOCK_MONOTONIC_COARSE */
};

void look_free(struct look_job *job);

/* Of a rank of the job, here or elsewhere; NULL: nobody told of its end. */
const struct look_death *look_death_of(const struct look_job *job, int rank);

#endif
