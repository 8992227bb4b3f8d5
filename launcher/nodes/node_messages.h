/* SPDX-License-Identifier: Apache-2.0 */
/* node_messages.h - the messages between ctruns, as text and as structs.
 *
 * Text comes from another host, so readers refuse a message that is not entirely valid.  Readers
 * return 0, or -1: not a valid message of that type. */
#ifndef LAUNCHER_NODES_NODE_MESSAGES_H
#define LAUNCHER_NODES_NODE_MESSAGES_H

#include "launcher/nodes/nodes.h"
#include "runtime/monitor/control_page.h"

#define NODE_WORKERS_MOST (1 << 20)
#define NODE_GENERATION 40
#define NODE_MAPPING 512 /* size of the mapping in struct plan */

/* NODE_JOIN: "node min max workers version host pid length-of-role role job" */
struct node_join {
    int node;     /* --node-rank; -1: an elastic job gives the nodes their numbers */
    int min, max; /* --nnodes */
    int workers;
    char version[32];
    char host[64]; /* names the node in messages, and orders the nodes of an elastic job */
    int pid;
    char role[256];
    const char *job; /* points into the text */
};

/* "node 2 (hosta)", or in an elastic job "node hosta (pid 4310)" */
void node_join_name(const struct node_join *join, int is_elastic, char *name, size_t size);
/* --local-addr, or the host's name, as one word. */
void node_host_name(const struct options *options, char *host, size_t size);

int node_join_read(const char *text, struct node_join *join);
void node_join_print(const struct node_join *join, char text[NODE_TEXT]);

/* NODE_ROUND: "base world role-base role-world node nodes round restarts port generation mapping".
 * The reader accepts only what is possible for a node with `size` workers. */
int node_round_read(const char *text, int size, struct plan *plan, char generation[NODE_GENERATION],
                    char mapping[NODE_MAPPING]);
void node_round_print(const struct plan *plan, char text[NODE_TEXT]);

/* NODE_FAILED, NODE_LOST: "rank culprit code flags what".  ->what points into text. */
int node_failure(const char *text, struct failure *failure);
void node_failure_print(const struct failure *failure, char text[NODE_TEXT]);

/* NODE_ENDED: "code done"; code is -1 or the stop code. */
int round_end_read(const char *text, struct round_end *end);
void round_end_print(const struct round_end *end, char text[NODE_TEXT]);

/* NODE_DIED: "generation rank count how code pid asked host stopped noted", seven numbers for the
 * blame, "tombs", and four numbers for each tomb.  count > 1: that many workers, from that rank on,
 * whose host was lost. */
struct node_death {
    char generation[NODE_GENERATION];
    int count;
    struct control_death death;
};

int node_death_read(const char *text, struct node_death *dead);
void node_death_print(const struct node_death *dead, char text[NODE_TEXT]);

/* NODE_BEAT of an agent that asks for the coordinator's clock: "asked".  The answer: "asked shown
 * clock".  ->clock points into text; it is "" in a question. */
int clock_reading_read(const char *text, struct clock_reading *reading);

/* NODE_CANNOT: "code"; NODE_SIGNALLED: "number". */
int node_number_read(const char *text, int least, int most, int *number);

/* NODE_OVER: "code rank why".  NODE_STOP: "number rank why".  *why points into text; it may be "".
 */
int node_code_read(const char *text, int *code, int *rank, const char **why);

/* NODE_ASK_STOP: "generation for-good": asks the ranks to stop at the same step.  for-good 1: no
 * restart follows. */
struct stop_request {
    char generation[NODE_GENERATION];
    int for_good;
};

int stop_request_read(const char *text, struct stop_request *request);
struct stop_request stop_request(const char *generation, int for_good);

/* Sends a text of many lines in several messages.  Each has a line `head`, then whole lines of the
 * text. */
#define NODE_PIECE 16384
void node_pieces(const char *head, const char *text, size_t bytes,
                 void (*send)(void *arg, const char *data, size_t bytes), void *arg);

/* NODE_PUTS: the generation, a newline, then "key value" and a newline for each put of a rank by
 * PMI.  A message has only whole puts, and at most NODE_PIECE bytes. */
/* Gives the puts of a message; NULL: they are of another generation. */
const char *fence_puts_read(const char *data, size_t bytes, const char *generation);

/* NODE_SHARES. */
struct node_shares {
    char generation[NODE_GENERATION];
    struct collective_shares shares;
};

int node_shares_read(const char *text, struct node_shares *shares);
void node_shares_print(const struct node_shares *shares, char text[NODE_TEXT]);

/* NODE_ROWS: the number of the look, a newline, then rows.  Without rows it ends the answer. */
const char *node_rows_read(const char *data, size_t bytes, unsigned *look); /* NULL: not valid */

/* Describes the deaths of the workers of a lost host.  host: "" if its name is not known; code:
 * CONTROL_SILENT or CONTROL_CLOSED. */
struct node_death node_host_lost(const char *generation, int base, int count, const char *host,
                                 int code);

#endif
