/* SPDX-License-Identifier: Apache-2.0 */
/* job_rendezvous.h - the rendezvous of a job's nodes and workers: the store that node 0's ctrun
 * hosts.
 *
 * In a fixed job node 0 is the node with --node-rank=0.  In an elastic job it is the node that can
 * bind --rdzv-endpoint, or the node with --rdzv-conf=is_host=1; with store_type=file, the node that
 * locks the file first.  A ctrun without workers can only be node 0. */
#ifndef LAUNCHER_NODES_JOB_RENDEZVOUS_H
#define LAUNCHER_NODES_JOB_RENDEZVOUS_H

#include "config/rendezvous_options.h"
#include "runtime/store/server/server.h"

/* A waiting node logs what it waits for: when it first does so, and how long it then waits between
 * two lines. */
enum { FIRST_WORD_MS = 5000, NEXT_WORD_MS = 30000 };

#define JOB_SECRET_TEXT (sizeof((struct secret *)0)->bytes + 1)

struct job_rendezvous {
    int is_coordinator; /* this ctrun is the coordinator */
    int is_elastic;     /* nodes come and go */
    int serves_only;    /* this ctrun has no workers */
    const char *title;  /* name of the coordinator in messages */
    char file[512];     /* where node 0 writes address and port for the others; "": no file */
    int file_lock;      /* descriptor of the file, on node 0; else -1 */
    int own_store; /* TORCH_DISABLE_SHARE_RDZV_TCP_STORE: worker 0 hosts the store, at any port */
    char address[256];   /* MASTER_ADDR */
    char elsewhere[256]; /* where we listen if `address` is not this host's; else "" */
    int has_no_address;  /* `address` is a name that did not resolve */
    int port;            /* MASTER_PORT; once our socket is bound, its port */
    char run_id[256];
    char generation[17]; /* CT_GENERATION: new each round */
    struct store_policy policy;
    int listener; /* our socket; -1 when the server has taken it over */
    struct store_server *server;
};

/* Reads the secret that the user gave in an option, in job.ini or in the environment; size 0: the
 * user gave none. */
ct_status job_secret_read(const struct options *options, struct secret *secret);

/* Reads that secret or makes a new one, and gives it as text for an environment variable. */
ct_status job_secret_make(const struct options *options, char text[JOB_SECRET_TEXT]);

/* Decides address and name, reads the secret or makes one, and opens the socket.  0, or the exit
 * code and the error is logged.  job_rendezvous_close() must follow in both cases. */
int job_rendezvous_open(struct job_rendezvous *meet, const struct options *options,
                        const struct meeting *meeting);
int job_rendezvous_serve(struct job_rendezvous *meet,
                         struct event_base *base); /* only on the coordinator */

/* Reads address and port from `file`, if there is one. */
ct_status job_rendezvous_look_up(struct job_rendezvous *meet);

/* Empties the store and makes a new generation, so that nothing of an older round can be read. */
void job_rendezvous_new_round(struct job_rendezvous *meet);

/* Says whether this rank's libct has begun its init in this generation. */
int job_rendezvous_arrived(const struct job_rendezvous *meet, int rank);

/* Writes the cause of a death to the store, under "/ct/<generation>/dead/<rank>".  Peers that go on
 * without the rank may read it. */
void job_rendezvous_post_death(const struct job_rendezvous *meet, int rank, const char *cause);

void job_rendezvous_close(struct job_rendezvous *meet);

#endif
