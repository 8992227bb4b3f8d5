/* SPDX-License-Identifier: Apache-2.0 */
/* job_rendezvous.h - the rendezvous of a job's nodes and workers: the store that node 0's ctrun
 * hosts.
 *
 * In a fixed job that is the node with --node-rank=0, in an elastic one the node that can bind
 * --rdzv-endpoint, or --rdzv-conf=is_host=1; with store_type=file the one that gets the lock of
 * the file first.  A ctrun without workers can only be that one. */
#ifndef LAUNCHER_NODES_JOB_RENDEZVOUS_H
#define LAUNCHER_NODES_JOB_RENDEZVOUS_H

#include "config/rendezvous_options.h"
#include "runtime/store/server/server.h"

/* A node that waits logs what it waits for: the first time, and between two times. */
enum { FIRST_WORD_MS = 5000, NEXT_WORD_MS = 30000 };

#define JOB_SECRET_TEXT (sizeof((struct secret *)0)->bytes + 1)

struct job_rendezvous {
    int is_coordinator;  /* this ctrun is */
    int is_elastic;      /* nodes come and go */
    int serves_only;     /* this ctrun has no workers */
    const char *title;   /* of the coordinator, in messages */
    char file[512];      /* where node 0 writes address and port for the others; "": known */
    int file_lock;       /* its descriptor, held by node 0; -1 */
    int own_store;       /* TORCH_DISABLE_SHARE_RDZV_TCP_STORE: worker 0 hosts it, at a free port */
    char address[256];   /* MASTER_ADDR */
    char elsewhere[256]; /* where we listen instead, since that is no address of this host; "" */
    int has_no_address;  /* it was none of any host's then: the name did not resolve */
    int port;            /* MASTER_PORT; true from here on, the socket is ours */
    char run_id[256];
    char generation[17]; /* CT_GENERATION: new each round */
    struct store_policy policy;
    int listener; /* until the server takes it over; -1 */
    struct store_server *server;
};

/* The secret that the user gave, in an option, in job.ini or in the environment; size 0: none. */
ct_status job_secret_read(const struct options *options, struct secret *secret);

/* The same, or a new one; as text, which a variable can have. */
ct_status job_secret_make(const struct options *options, char text[JOB_SECRET_TEXT]);

/* Decides address and name, reads the secret or makes one, and opens the socket.  0, or the exit
 * code and the error is logged.  job_rendezvous_close() is owed in both cases. */
int job_rendezvous_open(struct job_rendezvous *meet, const struct options *options,
                        const struct meeting *meeting);
int job_rendezvous_serve(struct job_rendezvous *meet,
                         struct event_base *base); /* the coordinator's */

/* Reads address and port from `file`, if there is one. */
ct_status job_rendezvous_look_up(struct job_rendezvous *meet);

/* An empty table and a new generation: nothing of an older round can be read. */
void job_rendezvous_new_round(struct job_rendezvous *meet);

/* Has this rank's libct begun its init in this generation? */
int job_rendezvous_arrived(const struct job_rendezvous *meet, int rank);

/* Peers that go on without the rank may read it under "ct/<generation>/dead/<rank>". */
void job_rendezvous_post_death(const struct job_rendezvous *meet, int rank, const char *cause);

void job_rendezvous_close(struct job_rendezvous *meet);

#endif
