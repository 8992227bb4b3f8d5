/* SPDX-License-Identifier: Apache-2.0 */
/* state_read.c - a rendezvous state out of what lay in the store.
 *
 * base64, then the pickle's tree (pickle_read.c), then each attribute by its
 * row in attributes[].  Each role of a node is a member of its own at first;
 * they are sorted and made one at the end.  Types and ranges are checked here: the
 * text is anybody's. */
#include "launcher/nodes/c10d/state.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/nodes/c10d/base64.h"
#include "launcher/nodes/c10d/pickle.h"
#include "launcher/nodes/c10d/python_datetime.h"

/* OTHERS_MOST: written out in full, and read again, they must fit into a pickle's memory
 * beside C10D_NODES_MOST nodes. */
enum { OTHERS_MOST = 3 << 19, ATTRIBUTES_MOST = 64 };

struct reader {
    struct c10d_state state;
    struct pickle_out others;
    unsigned seen;              /* a bit for each row of attributes[] */
    int naive_seen, aware_seen; /* times of this kind */
    struct why *why;
};

static int wrong(struct reader *r, const char *what)
{
    return pickle_wrong(r->why, "the rendezvous state is not as PyTorch writes it: %s", what);
}

/* ---- Times -------------------------------------------------------------------- */

/* timezone(timedelta(0, 0, 0)) */
static int is_utc(const struct pickle_value *zone)
{
    const struct pickle_value *delta;

    if (zone->kind != PICKLE_CALL || zone->as.made.of != TIMEZONE
        || zone->as.made.with->as.items.count != 1)
        return 0;
    delta = zone->as.made.with->as.items.first->value;
    if (delta->kind != PICKLE_CALL || delta->as.made.of != TIMEDELTA
        || delta->as.made.with->as.items.count > 3)
        return 0;
    for (const struct pickle_item *i = delta->as.made.with->as.items.first; i; i = i->next)
        if (i->value->kind != PICKLE_INT || i->value->as.number != 0)
            return 0;
    return 1;
}

/* datetime(ten bytes, zone), or without a zone */
static int read_time(struct reader *r, const struct pickle_value *value, int64_t *us)
{
    const struct pickle_value *bytes;
    const struct pickle_item *arguments;
    size_t count;

    if (value->kind != PICKLE_CALL || value->as.made.of != DATETIME)
        return wrong(r, "a time is no datetime");
    arguments = value->as.made.with->as.items.first;
    count = value->as.made.with->as.items.count;
    if (count < 1 || count > 2)
        return wrong(r, "a datetime is not made of bytes and a time zone");
    bytes = arguments->value;
    if (bytes->kind != PICKLE_BYTES || bytes->as.text.size != UTC_BYTES
        || utc_read(bytes->as.text.data, us) < 0)
        return wrong(r, "a datetime is no moment");
    if (count == 2 && !is_utc(arguments->next->value))
        return wrong(r, "a time zone is not UTC");
    r->aware_seen |= count == 2;
    r->naive_seen |= count == 1;
    return 0;
}

/* ---- Nodes -------------------------------------------------------------------- */

static int is_text(const struct pickle_value *value, const char *text)
{
    return value->kind == PICKLE_STRING && value->as.text.size == strlen(text)
           && !memcmp(value->as.text.data, text, value->as.text.size);
}

/* NULL: the object has none of this name. */
static const struct pickle_value *attribute(const struct pickle_value *object, const char *name)
{
    const struct pickle_item *i = object->as.made.with->as.items.first;

    for (; i; i = i->next->next)
        if (is_text(i->value, name))
            return i->next->value;
    return NULL;
}

static int is_object(const struct pickle_value *value, enum pickle_global class)
{
    return value->kind == PICKLE_OBJECT && value->as.made.of == class && value->as.made.with;
}

/* node->addr is allocated. */
static int read_node(struct reader *r, const struct pickle_value *value, struct c10d_node *node)
{
    const struct pickle_value *addr, *pid, *local_id;

    if (!is_object(value, NODE_CLASS) || value->as.made.with->as.items.count != 2 * 3
        || !(addr = attribute(value, "addr")) || !(pid = attribute(value, "pid"))
        || !(local_id = attribute(value, "local_id")) || addr->kind != PICKLE_STRING
        || pid->kind != PICKLE_INT || local_id->kind != PICKLE_INT)
        return wrong(r, "a node does not have exactly addr, pid and local_id");
    if (addr->as.text.size > C10D_ADDR_MOST || memchr(addr->as.text.data, 0, addr->as.text.size))
        return wrong(r, "a node's addr is longer than any, or has a zero byte");
    *node = (struct c10d_node){ strndup((const char *)addr->as.text.data, addr->as.text.size),
                                pid->as.number, local_id->as.number };
    return node->addr ? 0 : wrong(r, "no memory for it");
}

/* A member more, unsorted. */
static struct c10d_member *read_member(struct reader *r, const struct pickle_value *value,
                                       unsigned roles)
{
    struct c10d_state *state = &r->state;
    struct c10d_member *members = state->members;

    if (state->count == state->room) {
        const size_t room = state->room ? 2 * state->room : 16;

        if (!(members = realloc(members, room * sizeof *members))) {
            wrong(r, "no memory for it");
            return NULL;
        }
        state->members = members;
        state->room = room;
    }
    members += state->count;
    *members = (struct c10d_member){ .roles = roles };
    if (read_node(r, value, &members->node) < 0)
        return NULL;
    state->count++;
    return members;
}

static int check_count(struct reader *r, size_t count)
{
    if (count <= C10D_NODES_MOST)
        return 0;
    return pickle_wrong(r->why, "the rendezvous state has more than %d nodes", C10D_NODES_MOST);
}

static int by_node(const void *a, const void *b)
{
    return c10d_node_compare(&((const struct c10d_member *)a)->node,
                             &((const struct c10d_member *)b)->node);
}

/* Members of the same node become one. */
static int join_members(struct reader *r)
{
    struct c10d_member *members = r->state.members;
    const size_t count = r->state.count;
    size_t last = 0;

    if (count > 0)
        qsort(members, count, sizeof *members, by_node);
    for (size_t i = 1; i < count; i++) {
        if (by_node(&members[last], &members[i]) != 0) {
            last++;
            if (last < i) {
                members[last] = members[i];
                members[i].node.addr = NULL;
            }
            continue;
        }
        if (members[last].roles & members[i].roles)
            return wrong(r, "a node is twice in the same list");
        members[last].roles |= members[i].roles;
        members[last].rank += members[i].rank; /* only one of them has any */
        members[last].heartbeat += members[i].heartbeat;
        free((char *)members[i].node.addr);
        members[i].node.addr = NULL;
    }
    r->state.count = count > 0 ? last + 1 : 0;
    return check_count(r, r->state.count);
}

/* ---- Attributes --------------------------------------------------------------- */

static int read_round(struct reader *r, const struct pickle_value *value)
{
    if (value->kind != PICKLE_INT || value->as.number < 0 || value->as.number > C10D_ROUND_MOST)
        return wrong(r, "its round is no number from 0 on");
    r->state.round = value->as.number;
    return 0;
}

static int read_complete(struct reader *r, const struct pickle_value *value)
{
    r->state.complete = value->as.number != 0;
    return value->kind == PICKLE_BOOL ? 0 : wrong(r, "complete is neither True nor False");
}

static int read_closed(struct reader *r, const struct pickle_value *value)
{
    r->state.closed = value->as.number != 0;
    return value->kind == PICKLE_BOOL ? 0 : wrong(r, "closed is neither True nor False");
}

static int read_deadline(struct reader *r, const struct pickle_value *value)
{
    r->state.has_deadline = value->kind != PICKLE_NONE;
    return r->state.has_deadline ? read_time(r, value, &r->state.deadline) : 0;
}

static int read_participants(struct reader *r, const struct pickle_value *value)
{
    if (value->kind != PICKLE_DICT)
        return wrong(r, "participants is no dict");
    if (check_count(r, value->as.items.count / 2) < 0)
        return -1;
    for (const struct pickle_item *i = value->as.items.first; i; i = i->next->next) {
        const struct pickle_value *rank = i->next->value;
        struct c10d_member *member = read_member(r, i->value, C10D_PARTICIPANT);

        if (!member)
            return -1;
        if (rank->kind != PICKLE_INT || rank->as.number < 0 || rank->as.number > INT_MAX)
            return wrong(r, "a rank is no number from 0 on");
        member->rank = rank->as.number;
    }
    return 0;
}

static int read_set(struct reader *r, const struct pickle_value *value, unsigned role)
{
    if (value->kind != PICKLE_SET)
        return wrong(r, "wait_list or redundancy_list is no set");
    if (check_count(r, value->as.items.count) < 0)
        return -1;
    for (const struct pickle_item *i = value->as.items.first; i; i = i->next)
        if (!read_member(r, i->value, role))
            return -1;
    return 0;
}

static int read_wait_list(struct reader *r, const struct pickle_value *value)
{
    return read_set(r, value, C10D_WAITING);
}

static int read_redundancy_list(struct reader *r, const struct pickle_value *value)
{
    return read_set(r, value, C10D_SPARE);
}

static int read_last_heartbeats(struct reader *r, const struct pickle_value *value)
{
    if (value->kind != PICKLE_DICT)
        return wrong(r, "last_heartbeats is no dict");
    if (check_count(r, value->as.items.count / 2) < 0)
        return -1;
    for (const struct pickle_item *i = value->as.items.first; i; i = i->next->next) {
        struct c10d_member *member = read_member(r, i->value, C10D_BEATS);

        if (!member || read_time(r, i->next->value, &member->heartbeat) < 0)
            return -1;
    }
    return 0;
}

static const struct {
    const char *name;
    int (*read)(struct reader *r, const struct pickle_value *value);
} attributes[] = {
    { "round", read_round },
    { "complete", read_complete },
    { "deadline", read_deadline },
    { "closed", read_closed },
    { "participants", read_participants },
    { "wait_list", read_wait_list },
    { "last_heartbeats", read_last_heartbeats },
    { "redundancy_list", read_redundancy_list }, /* the last: all before it must be there */
};

enum { ATTRIBUTES = sizeof attributes / sizeof *attributes, SPARES = ATTRIBUTES - 1 };

static int read_attribute(struct reader *r, const struct pickle_value *name,
                          const struct pickle_value *value)
{
    if (name->kind != PICKLE_STRING)
        return wrong(r, "an attribute's name is no string");
    for (unsigned i = 0; i < ATTRIBUTES; i++) {
        if (!is_text(name, attributes[i].name))
            continue;
        if (r->seen & 1u << i)
            return wrong(r, "an attribute is there twice");
        r->seen |= 1u << i;
        return attributes[i].read(r, value);
    }
    if (put_value(&r->others, name) < 0 || put_value(&r->others, value) < 0)
        return pickle_wrong(
            r->why,
            "the rendezvous state's attribute %.*s cannot be carried over: it is too "
            "large or too deep, or there is no memory for it",
            (int)(name->as.text.size < 60 ? name->as.text.size : 60),
            (const char *)name->as.text.data);
    return 0;
}

static int read_state(struct reader *r, const struct pickle_value *root)
{
    if (!is_object(root, STATE_CLASS))
        return wrong(r, "it is no _RendezvousState");
    if (root->as.made.with->as.items.count > 2 * ATTRIBUTES_MOST)
        return wrong(r, "it has more attributes than any");
    for (const struct pickle_item *i = root->as.made.with->as.items.first; i; i = i->next->next)
        if (read_attribute(r, i->value, i->next->value) < 0)
            return -1;
    for (unsigned i = 0; i < SPARES; i++)
        if (!(r->seen & 1u << i))
            return pickle_wrong(r->why, "the rendezvous state has no %s", attributes[i].name);
    r->state.no_spares = !(r->seen & 1u << SPARES);
    if (r->naive_seen && r->aware_seen)
        return wrong(r, "some times have a time zone and some have none");
    if (r->naive_seen || r->aware_seen)
        r->state.naive = r->naive_seen;
    return join_members(r);
}

/* Its own bytes, as long as values point into them. */
static int read_text(struct reader *r, const char *text, size_t size)
{
    unsigned char *bytes = malloc(BASE64_BYTES(size) + 1);
    const ptrdiff_t used = bytes ? base64_decode(text, size, bytes) : 0;
    struct pickle pickle;
    int status = -1;

    if (!bytes)
        wrong(r, "no memory for it");
    else if (used < 0)
        wrong(r, "it is not base64");
    else if ((status = pickle_read(&pickle, bytes, (size_t)used, r->why)) == 0) {
        status = read_state(r, pickle.root);
        pickle_free(&pickle);
    }
    free(bytes);
    return status;
}

int c10d_state_read(struct c10d_state *state, const char *text, size_t size, struct why *why)
{
    struct reader r = { .state.naive = state->naive, .others.most = OTHERS_MOST, .why = why };

    if (size == strlen(C10D_NO_STATE) && !memcmp(text, C10D_NO_STATE, size)) {
        c10d_state_free(state);
        return C10D_NONE;
    }
    if (size > C10D_TEXT_MOST)
        return pickle_wrong(why, "the rendezvous state is larger than %d MiB",
                            C10D_TEXT_MOST >> 20);
    if (read_text(&r, text, size) < 0) {
        c10d_state_free(&r.state);
        free(r.others.data);
        return -1;
    }
    r.state.others = r.others.data;
    r.state.others_size = r.others.size;
    c10d_state_free(state);
    *state = r.state;
    return C10D_READ;
}
