/* SPDX-License-Identifier: Apache-2.0 */
/* job_rendezvous.h - the rendezvous of a job's nodes and workers, which is the store that node 0's
 * ctrun hosts.
 *
 * In a fixed job, node 0 is the node with --node-rank=0.  In an elastic job, node 0 is the node
 * with --rdzv-conf=is_host=1, or else the node that can bind --rdzv-endpoint.  With
 * store_type=file, node 0 is the node that locks the file first.  A ctrun without workers can only
 * be node 0. */
#ifndef LAUNCHER_NODES_JOB_RENDEZVOUS_H
#define LAUNCHER_NODES_JOB_RENDEZVOUS_H

#include "config/rendezvous_options.h"
#include "runtime/store/server/server.h"

/* A waiting node logs what it waits for: the first time after FIRST_WORD_MS, then every
 * NEXT_WORD_MS. */
enum { FIRST_WORD_MS = 5000, NEXT_WORD_MS = 30000 };

#define JOB_SECRET_TEXT (sizeof((struct secret *)0)->bytes + 1) /* size of a secret as text */

struct job_rendezvous {
    int is_coordinator; /* true if this ctrun is the coordinator, which is node 0 */
    int is_elastic;     /* true if nodes may join and leave between rounds */
    int serves_only;    /* true if this ctrun has no workers */
    const char *title;  /* name of the coordinator in messages */
    char file[512];     /* file in which node 0 writes its address and port; "" if not used */
    int file_lock;      /* descriptor of the locked file on node 0; else -1 */
    int own_store; /* TORCH_DISABLE_SHARE_RDZV_TCP_STORE: worker 0 hosts the store, at any port */
    char address[256];   /* MASTER_ADDR */
    char elsewhere[256]; /* where node 0 listens if `address` is not its own; else "" */
    int has_no_address;  /* true if `address` is a name that did not resolve */
    int port;            /* MASTER_PORT; on node 0, the port of `listener` once it is bound */
    char run_id[256];    /* --rdzv-id, or a random UUID */
    char generation[17]; /* CT_GENERATION, a random identifier of the round */
    struct store_policy policy;
    int listener;                /* bound socket on node 0; -1 once the server owns it */
    struct store_server *server; /* NULL unless this ctrun is the coordinator */
};

/* Reads the secret that the user set by an option, in job.ini or in the environment.  Sets
 * secret->size to 0 if the user set no secret. */
ct_status job_secret_read(const struct options *options, struct secret *secret);

/* Reads the user's secret, or makes a new secret if the user set none.  Writes the secret as text
 * for an environment variable. */
ct_status job_secret_make(const struct options *options, char text[JOB_SECRET_TEXT]);

/* Finds the address of the store, reads or makes the secret, and on node 0 opens the socket.
 * Returns 0, or logs an error and returns ctrun's exit code.  The caller must call
 * job_rendezvous_close() in both cases. */
int job_rendezvous_open(struct job_rendezvous *meet, const struct options *options,
                        const struct meeting *meeting);
/* Starts the store's server.  Only the coordinator may call this.  Returns 0, or logs an error and
 * returns ctrun's exit code. */
int job_rendezvous_serve(struct job_rendezvous *meet, struct event_base *base);

/* Reads address and port from meet->file.  Does nothing if no file is used. */
ct_status job_rendezvous_look_up(struct job_rendezvous *meet);

/* Empties the store and makes a new generation, so that no worker can read data of an older
 * round. */
void job_rendezvous_new_round(struct job_rendezvous *meet);

/* Returns 1 if the rank has begun to initialize libct in this generation. */
int job_rendezvous_arrived(const struct job_rendezvous *meet, int rank);

/* Writes the cause of a death to the store, under "/ct/<generation>/dead/<rank>", for peers that
 * continue without the rank. */
void job_rendezvous_post_death(const struct job_rendezvous *meet, int rank, const char *cause);

void job_rendezvous_close(struct job_rendezvous *meet);

#endif
