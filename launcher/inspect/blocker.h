/* SPDX-License-Identifier: Apache-2.0 */
/* blocker.h - whom the others wait for, and what became of it. */
#ifndef LAUNCHER_INSPECT_BLOCKER_H
#define LAUNCHER_INSPECT_BLOCKER_H

#include "launcher/inspect/groups.h"
#include "launcher/inspect/sentences.h"

enum absence {
    PRESENT,      /* nothing is wrong with it */
    ENDED,        /* so says ctrun */
    DIED,         /* the process is gone; what ctrun started lives, or there is no ctrun */
    STOPPED,      /* by a signal */
    TRACED,       /* by a debugger */
    LEFT,         /* the group */
    ELSEWHERE,    /* in a call of another group, or in a message */
    BEHIND,       /* in an earlier call of this group */
    AT_THE_STORE, /* or whatever it noted by control_waiting() */
    FAILED,       /* its last call in the group did */
    NOT_STARTED,  /* by ctrun, which goes from rank to rank */
    NOT_BEGUN,    /* has not called ct_init_process_group() */
    OUTSIDE,      /* that failed, and its program goes on */
    IN_INIT,
    NOT_IN_GROUP, /* is at work, but has no such group */
    IDLE          /* is in no call */
};

struct blame {
    int at;   /* index in job->rank; -1: a rank of another host that ended */
    int rank; /* how it is called */
    enum absence what;
    uint64_t last; /* its last call in the group; 0: none */
    int in_it;     /* it is in the call too */
    int said;
    const struct death_snapshot
        *death;                        /* ENDED: how; what a line calls the rank need not be true */
    const struct group_snapshot *line; /* ELSEWHERE, BEHIND: of the call it is in; FAILED: was in */
};

/* All living ranks are stopped: then that explains nothing. */
int all_stopped(const struct job_snapshot *job);

/* What a rank does that is not in call number seq of the group (0: in the message that it should
 * be in).  line: its own in the group, NULL: it has none. */
struct blame blame_rank(const struct job_snapshot *job, int at, const struct group_snapshot *line,
                        int left, uint64_t seq);

/* "; rank 3 is in no call since #1841: it sleeps (pid 4310, S)" for each kind of those that were
 * not said yet; the first comes behind `gap`. */
void blame_say(struct sentence *sentence, const struct job_snapshot *job, const char *gap,
               struct blame *blames, int count);

/* "all_reduce #3 (4 f32, sum) of group b at train.c:88 (step)" */
void say_call(struct sentence *sentence, const struct group_snapshot *line, const char *group);

/* " at train.c:88 (step)", as far as known. */
void say_where(struct sentence *sentence, const struct group_snapshot *const *lines, int count);

#endif
