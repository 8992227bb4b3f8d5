/* SPDX-License-Identifier: Apache-2.0 */
/* state_write.c - a rendezvous state as text for the store.
 *
 * What every node repeats (the class, the names of its attributes, the time
 * zone) is written once and then named by its number in the pickle's memo; so is a node,
 * which has a heartbeat beside its role.  That is a fifth of the bytes, and each
 * heartbeat of each node writes them all. */
#include "launcher/nodes/c10d/state.h"

#include <stdlib.h>
#include <string.h>

#include "launcher/nodes/c10d/base64.h"
#include "launcher/nodes/c10d/pickle.h"
#include "launcher/nodes/c10d/python_datetime.h"

#define UNWRITTEN UINT32_MAX

struct writer {
    struct pickle_out out;
    const struct c10d_state *state;
    uint32_t *nodes; /* the memo of each member's node */
    uint32_t node_class, addr, pid, local_id, datetime, utc;
};

static void put_text(struct writer *w, const char *text)
{
    put_string(&w->out, text, strlen(text));
}

/* 1: it is written, by its number; 0: write it, then remember(). */
static int again(struct writer *w, uint32_t memo)
{
    if (memo != UNWRITTEN)
        put_again(&w->out, memo);
    return memo != UNWRITTEN;
}

static void remember(struct writer *w, uint32_t *memo)
{
    *memo = put_memo(&w->out);
}

static void put_global_once(struct writer *w, enum pickle_global global, uint32_t *memo)
{
    if (again(w, *memo))
        return;
    put_global(&w->out, global);
    remember(w, memo);
}

static void put_name_once(struct writer *w, const char *name, uint32_t *memo)
{
    if (again(w, *memo))
        return;
    put_text(w, name);
    remember(w, memo);
}

static void put_node(struct writer *w, size_t i)
{
    const struct c10d_node *node = &w->state->members[i].node;

    if (again(w, w->nodes[i]))
        return;
    put_global_once(w, NODE_CLASS, &w->node_class);
    put_bytes(&w->out, ")\x81}(", 4);
    put_name_once(w, "addr", &w->addr);
    put_text(w, node->addr);
    put_name_once(w, "pid", &w->pid);
    put_int(&w->out, node->pid);
    put_name_once(w, "local_id", &w->local_id);
    put_int(&w->out, node->local_id);
    put_bytes(&w->out, "ub", 2);
    remember(w, &w->nodes[i]);
}

static void put_utc(struct writer *w)
{
    if (again(w, w->utc))
        return;
    put_global(&w->out, TIMEZONE);
    put_global(&w->out, TIMEDELTA);
    put_bytes(&w->out, "K\0K\0K\0\x87R\x85R", 10);
    remember(w, &w->utc);
}

static void put_time(struct writer *w, int64_t us)
{
    unsigned char bytes[UTC_BYTES];

    utc_write(us, bytes);
    put_global_once(w, DATETIME, &w->datetime);
    put_bytes(&w->out, "C\x0a", 2);
    put_bytes(&w->out, bytes, sizeof bytes);
    if (!w->state->naive)
        put_utc(w);
    put_byte(&w->out, w->state->naive ? 0x85 : 0x86);
    put_byte(&w->out, 'R');
}

/* All members of a role: a set, or a dict of their ranks or heartbeats. */
static void put_members(struct writer *w, const char *name, unsigned role)
{
    const int is_set = role == C10D_WAITING || role == C10D_SPARE;

    put_text(w, name);
    put_byte(&w->out, is_set ? 0x8f : '}');
    put_byte(&w->out, '(');
    for (size_t i = 0; i < w->state->count; i++) {
        const struct c10d_member *member = &w->state->members[i];

        if (!(member->roles & role))
            continue;
        put_node(w, i);
        if (role == C10D_PARTICIPANT)
            put_int(&w->out, member->rank);
        else if (role == C10D_BEATS)
            put_time(w, member->heartbeat);
    }
    put_byte(&w->out, is_set ? 0x90 : 'u');
}

/* In the order of PyTorch's. */
static void put_state(struct writer *w)
{
    const struct c10d_state *state = w->state;

    put_bytes(&w->out, "\x80\x04", 2);
    put_global(&w->out, STATE_CLASS);
    put_bytes(&w->out, ")\x81}(", 4);
    put_text(w, "round");
    put_int(&w->out, state->round);
    put_text(w, "complete");
    put_bool(&w->out, state->complete);
    put_text(w, "deadline");
    if (state->has_deadline)
        put_time(w, state->deadline);
    else
        put_byte(&w->out, 'N');
    put_text(w, "closed");
    put_bool(&w->out, state->closed);
    put_members(w, "participants", C10D_PARTICIPANT);
    put_members(w, "wait_list", C10D_WAITING);
    if (!state->no_spares)
        put_members(w, "redundancy_list", C10D_SPARE);
    put_members(w, "last_heartbeats", C10D_BEATS);
    put_bytes(&w->out, state->others, state->others_size);
    put_bytes(&w->out, "ub.", 3);
}

static char *text_of(const struct pickle_out *out, size_t *size)
{
    char *text = malloc(BASE64_LETTERS(out->size) + 1);

    if (!text)
        return NULL;
    *size = BASE64_LETTERS(out->size);
    base64_encode(out->data, out->size, text);
    text[*size] = 0;
    return text;
}

char *c10d_state_write(const struct c10d_state *state, size_t *size)
{
    struct writer w = { .state = state,
                        .node_class = UNWRITTEN,
                        .addr = UNWRITTEN,
                        .pid = UNWRITTEN,
                        .local_id = UNWRITTEN,
                        .datetime = UNWRITTEN,
                        .utc = UNWRITTEN };
    char *text = NULL;

    if (!(w.nodes = malloc((state->count + 1) * sizeof *w.nodes)))
        return NULL;
    for (size_t i = 0; i < state->count; i++)
        w.nodes[i] = UNWRITTEN;
    put_state(&w);
    if (!w.out.failed)
        text = text_of(&w.out, size);
    free(w.nodes);
    free(w.out.data);
    return text;
}
