/* SPDX-License-Identifier: Apache-2.0 */
/* node_messages.h - converts the messages between ctruns from text to structs and back.
 *
 * The text comes from another host, so a function that reads a message refuses text that is not
 * entirely valid.  Such a function returns 0, or -1 if the text is not a valid message of its
 * type. */
#ifndef LAUNCHER_NODES_NODE_MESSAGES_H
#define LAUNCHER_NODES_NODE_MESSAGES_H

#include "launcher/nodes/nodes.h"
#include "runtime/monitor/control_page.h"

#define NODE_WORKERS_MOST (1 << 20) /* most workers of a node */
#define NODE_GENERATION 40          /* size of a buffer for a generation */
#define NODE_MAPPING 512            /* size of a buffer for the mapping of struct plan */

/* NODE_JOIN: "node min max workers version host pid length-of-role role job" */
struct node_join {
    int node;     /* --node-rank; -1 in an elastic job, where the coordinator numbers the nodes */
    int min, max; /* --nnodes */
    int workers;  /* number of workers on the node */
    char version[32]; /* version of ctrun */
    char host[64];    /* host's name, for messages and for the order of an elastic job's nodes */
    int pid;          /* pid of the node's ctrun */
    char role[256];   /* --role */
    const char *job;  /* --rdzv-id; points into the text */
};

/* Writes the node's name for messages: "node 2 (hosta)", or in an elastic job "node hosta (pid
 * 4310)". */
void node_join_name(const struct node_join *join, int is_elastic, char *name, size_t size);
/* Writes --local-addr, or else the host's name. */
void node_host_name(const struct options *options, char *host, size_t size);

int node_join_read(const char *text, struct node_join *join);
void node_join_print(const struct node_join *join, char text[NODE_TEXT]);

/* NODE_ROUND: "base world role-base role-world node nodes round restarts port generation mapping".
 * node_round_read() refuses ranks that are impossible for a node with `size` workers. */
int node_round_read(const char *text, int size, struct plan *plan, char generation[NODE_GENERATION],
                    char mapping[NODE_MAPPING]);
void node_round_print(const struct plan *plan, char text[NODE_TEXT]);

/* NODE_FAILED and NODE_LOST: "rank culprit code flags what".  failure->what points into text. */
int node_failure(const char *text, struct failure *failure);
void node_failure_print(const struct failure *failure, char text[NODE_TEXT]);

/* NODE_ENDED: "code done".  The code is end->stop_code. */
int round_end_read(const char *text, struct round_end *end);
void round_end_print(const struct round_end *end, char text[NODE_TEXT]);

/* NODE_DIED: "generation rank count how code pid asked host stopped noted", seven numbers for the
 * blame, the number of tombs, and four numbers for each tomb.  If count is above 1, a host was lost
 * with `count` workers, the first of which is `rank`. */
struct node_death {
    char generation[NODE_GENERATION];
    int count;
    struct control_death death;
};

int node_death_read(const char *text, struct node_death *dead);
void node_death_print(const struct node_death *dead, char text[NODE_TEXT]);

/* Reads NODE_BEAT with clock values.  An agent asks for the coordinator's clock with "asked".  The
 * coordinator answers with "asked shown clock".  reading->clock points into text; it is "" in a
 * question. */
int clock_reading_read(const char *text, struct clock_reading *reading);

/* Reads a text that is one number from `least` to `most`: NODE_CANNOT, NODE_SIGNALLED and
 * NODE_LOOK. */
int node_number_read(const char *text, int least, int most, int *number);

/* Reads NODE_OVER, "code rank why", or NODE_STOP, "number rank why".  *why points into text and may
 * be "". */
int node_code_read(const char *text, int *code, int *rank, const char **why);

/* NODE_ASK_STOP: "generation for-good".  Asks the ranks to stop at the same step.  If for-good is
 * 1, no restart follows. */
struct stop_request {
    char generation[NODE_GENERATION];
    int for_good;
};

int stop_request_read(const char *text, struct stop_request *request);
struct stop_request stop_request(const char *generation, int for_good);

/* Sends a text of many lines in several messages.  Each message has `head` as its first line, then
 * whole lines of the text, and at most NODE_PIECE bytes. */
#define NODE_PIECE 16384
void node_pieces(const char *head, const char *text, size_t bytes,
                 void (*send)(void *arg, const char *data, size_t bytes), void *arg);

/* NODE_PUTS: the generation and a newline, then "key value" and a newline for each put of a rank by
 * PMI.  A message has only whole puts, and at most NODE_PIECE bytes. */
/* Returns a pointer to the puts in `data`; NULL if the puts are of another generation. */
const char *fence_puts_read(const char *data, size_t bytes, const char *generation);

/* NODE_SHARES: "generation rank least next most calls". */
struct node_shares {
    char generation[NODE_GENERATION];
    struct collective_shares shares;
};

int node_shares_read(const char *text, struct node_shares *shares);
void node_shares_print(const struct node_shares *shares, char text[NODE_TEXT]);

/* NODE_ROWS: the number of the request (NODE_LOOK) and a newline, then rows.  A message without
 * rows ends the answer.  Returns a pointer to the rows in `data`; NULL if the message is not
 * valid. */
const char *node_rows_read(const char *data, size_t bytes, unsigned *look);

/* Describes the deaths of a lost host's `count` workers, the first of which is rank `base`.  `host`
 * is the host's name, "" if not known.  `code` is CONTROL_SILENT or CONTROL_CLOSED. */
struct node_death node_host_lost(const char *generation, int base, int count, const char *host,
                                 int code);

#endif
