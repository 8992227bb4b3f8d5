/* SPDX-License-Identifier: Apache-2.0 */
/* session.h - one agent at the store: in, out, alive.
 *
 * The rules (state_rules.h) say what to do; here it is done, by one thread that may wait. */
#ifndef LAUNCHER_NODES_C10D_SESSION_H
#define LAUNCHER_NODES_C10D_SESSION_H

#include "include/ct.h"
#include "launcher/nodes/c10d/heartbeats.h"
#include "launcher/nodes/c10d/state_rules.h"

/* How an operation ended.  All but the first three leave a sentence in session->why. */
enum c10d_end {
    C10D_DONE,
    C10D_STOPPED, /* rest() said so */
    C10D_CHANGED, /* somebody left the round meanwhile: the next one */
    C10D_CLOSED,  /* the job is over */
    C10D_SPARED,  /* and we were never needed */
    C10D_LATE,
    C10D_LOST /* the store */
};

struct c10d_session {
    ct_store *store;
    const char *place; /* where it is, for sentences */
    char key[300];     /* of the state */
    struct c10d_node me;
    struct c10d_settings settings;
    int64_t join_timeout, close_timeout, heartbeat_timeout; /* microseconds */
    /* Waits so many ms, or until there is something to look at; 1: give up. */
    int (*rest)(void *arg, int ms);
    void (*changed)(void *arg); /* we have just told the store what others wait for */
    void *arg;

    struct c10d_state state; /* as last read, without who has died since */
    char *text;              /* the same, as it stands in the store */
    size_t size;
    int64_t looked; /* when; monotonic us */
    struct c10d_watch watch;
    struct c10d_ranks world; /* of the last round we were in */
    char why[400];
};

/* `store`, `place` and me.addr stay the caller's. */
void c10d_session_init(struct c10d_session *session, ct_store *store, const char *place,
                       const char *run_id);
void c10d_session_free(struct c10d_session *session);

/* Into a new round: out of the one we are in, then in again; session->world are its
 * nodes in the order of their ranks. */
enum c10d_end c10d_next_round(struct c10d_session *session);
int c10d_my_rank(const struct c10d_session *session);

enum c10d_end c10d_leave_job(struct c10d_session *session); /* the others may go on */
enum c10d_end c10d_close_job(struct c10d_session *session); /* nobody may */

/* To be called once a second or more: our heartbeat, and a look at the state. */
enum c10d_end c10d_pulse(struct c10d_session *session);
enum c10d_end c10d_look(struct c10d_session *session);

/* Takes a node out that is known to be dead, and tells the others. */
enum c10d_end c10d_take_out(struct c10d_session *session, const struct c10d_node *node);

/* Are all nodes of our round still there? */
int c10d_world_stands(const struct c10d_session *session);

#endif
