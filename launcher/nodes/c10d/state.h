/* SPDX-License-Identifier: Apache-2.0 */
/* state.h - who is in, as all agents of a job see it.
 *
 * The value of one key in the store: base64 of a Python pickle, replaced by compare-and-swap.
 * PyTorch has a dict or a set for each role of a node; here a node is one
 * member with a bit for each, in one array that is sorted by node.
 *
 *   struct c10d_state state = { 0 };     a new one: round 0, nobody in it
 *   c10d_state_read(&state, text, size, &why);
 *   text = c10d_state_write(&state, &size);
 *   c10d_state_free(&state);
 *
 * What is expected by the next compare-and-swap is the text that was read, never one
 * written anew: other agents write the same state in other bytes. */
#ifndef LAUNCHER_NODES_C10D_STATE_H
#define LAUNCHER_NODES_C10D_STATE_H

#include "config/parse_number.h"
#include "launcher/nodes/c10d/node.h"

/* In the store before the first state. */
#define C10D_NO_STATE "Y2FuaW1hZGFt"

enum {
    C10D_TEXT_MOST = 64 << 20,
    C10D_NODES_MOST = 1 << 16,
    C10D_ADDR_MOST = 511, /* bytes of a node's addr */
    C10D_ROUND_MOST = INT32_MAX
};

/* The roles of a member. */
enum {
    C10D_PARTICIPANT = 1,
    C10D_WAITING = 2, /* for the next round */
    C10D_SPARE = 4,   /* redundancy_list */
    C10D_BEATS = 8    /* has a heartbeat */
};

struct c10d_member {
    struct c10d_node node; /* addr is the member's */
    unsigned roles;
    int64_t rank;      /* of a participant; 0 until the round is complete */
    int64_t heartbeat; /* UTC, in microseconds since 1970; of C10D_BEATS */
};

struct c10d_state {
    int64_t round;
    int complete, closed;
    int has_deadline;
    int64_t deadline;
    struct c10d_member *members;
    size_t count, room;
    /* What the text that was read looked like, and the next will.  A text without
     * any time leaves `naive` as it was. */
    int naive;             /* times have no zone: older PyTorch, which cannot compare both kinds */
    int no_spares;         /* it has no redundancy_list: older still */
    unsigned char *others; /* attributes we don't know, as pickle: name, value, name ... */
    size_t others_size;
};

enum { C10D_READ = 0, C10D_NONE = 1 };

/* Returns C10D_READ; C10D_NONE, when there is no state yet: then it is a new one; or
 * -1 and the sentence, then it is as it was.  text: whatever lay in the store. */
int c10d_state_read(struct c10d_state *state, const char *text, size_t size, struct why *why);
/* NULL: no memory.  The caller's, with a 0 after `size` letters. */
char *c10d_state_write(const struct c10d_state *state, size_t *size);
/* Makes it a new one, that keeps `naive`. */
void c10d_state_free(struct c10d_state *state);

/* NULL: it is no member. */
struct c10d_member *c10d_find(const struct c10d_state *state, const struct c10d_node *node);
/* Adds it, with no role, if it is no member.  NULL: no memory. */
struct c10d_member *c10d_member(struct c10d_state *state, const struct c10d_node *node);
/* One of these roles at least. */
int c10d_is(const struct c10d_state *state, const struct c10d_node *node, unsigned roles);
size_t c10d_count(const struct c10d_state *state, unsigned roles);
/* Lets go of the members that have lost all their roles. */
void c10d_settle(struct c10d_state *state);

#endif
