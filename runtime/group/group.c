/* SPDX-License-Identifier: Apache-2.0 */
/* group.c - creates and destroys groups, and handles their rank, size and timeout.
 *
 * Each member computes the id of a new group without messages.  The id is a hash of the parent's
 * id, the number of groups that the parent created before, and the members.  So all members have
 * the same id, and the messages of two groups can't be confused.  group_new.c determines the
 * members, and group_create() creates the handle. */
#include "runtime/group/group.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/group/group_device.h"
#include "runtime/group/group_extension.h"
#include "runtime/group/leftovers.h"
#include "runtime/group/shm/shm_group.h"
#include "runtime/messaging/messaging_internal.h"
#include "runtime/store/store.h"
#include "runtime/trace/trace.h"
#include "runtime/util/clock.h"
#include "runtime/util/forks.h"
#include "runtime/util/task_queue.h"

#define ENDED 0          /* value of `maker` in the handle of a destroyed group */
#define ENDED_HANDLES 64 /* number of handles of destroyed groups that end_handle() keeps */

/* ---- Rank, size, timeout ---------------------------------------------------- */

const char *group_here(const ct_group *group, char *text, size_t size)
{
    int same = 1;

    for (int i = 0; i < group->size && same; i++)
        same = group->ranks[i] == i;
    if (same)
        snprintf(text, size, "%s, rank %d", group->name, group->rank);
    else
        snprintf(text, size, "%s, rank %d (rank %d of %s)", group->name, group->rank,
                 group->ranks[group->rank], group->root->name);
    return text;
}

ct_status group_refuse_child(const ct_group *group)
{
    char what[80];

    if (group->maker == ENDED)
        return ct_fail(CT_ERR_INVALID,
                       "this handle's group was destroyed: ct_destroy_process_group() frees the "
                       "handle, and with CT_WORLD also the handles of all groups made from it");
    snprintf(what, sizeof what, "group %s", group->name);
    return forks_refuse(what, group->maker);
}

/* The group that CT_WORLD means.  This variable and `world` in init_process_group.c are the only
 * global state of groups. */
static ct_group *_Atomic the_default;

ct_group *default_group(void)
{
    return atomic_load_explicit(&the_default, memory_order_acquire);
}

void default_group_set(ct_group *group)
{
    atomic_store_explicit(&the_default, group, memory_order_release);
}

ct_status group_resolve(ct_group *group, ct_group **resolved)
{
    *resolved = group ? group : default_group();
    if (*resolved && (*resolved)->maker != this_process) {
        const ct_status status = group_refuse_child(*resolved);

        *resolved = NULL; /* so the caller can't even record a failure in it */
        return status;
    }
    return *resolved ? CT_OK
                     : ct_fail(CT_ERR_INVALID, "there is no default group: call "
                                               "ct_init_process_group() first");
}

ct_status group_resolve_member(ct_group *group, ct_group **resolved)
{
    const ct_status status = group_resolve(group, resolved);

    if (status == CT_OK && !(*resolved)->member)
        return ct_fail(CT_ERR_NOT_MEMBER, "this rank is not a member of group %s",
                       (*resolved)->name);
    return status;
}

int ct_rank(const ct_group *group)
{
    const ct_group *g = group ? group : default_group();

    return g ? g->rank : -1;
}

int ct_size(const ct_group *group)
{
    const ct_group *g = group ? group : default_group();

    return g ? g->size : -1;
}

const char *ct_backend(const ct_group *group)
{
    const ct_group *g = group ? group : default_group();

    return g ? g->backend : "";
}

int ct_group_rank(const ct_group *group, int global)
{
    const ct_group *g = group ? group : default_group();

    for (int i = 0; g && i < g->size; i++)
        if (g->ranks[i] == global)
            return i;
    return -1;
}

int ct_global_rank(const ct_group *group, int rank)
{
    const ct_group *g = group ? group : default_group();

    return g && rank >= 0 && rank < g->size ? g->ranks[rank] : -1;
}

const int *ct_group_ranks(const ct_group *group)
{
    const ct_group *g = group ? group : default_group();

    return g ? g->ranks : NULL;
}

ct_status ct_note_place(ct_group *group, const char *place)
{
    ct_group *g;
    const ct_status status = group_resolve(group, &g);

    if (status != CT_OK)
        return status;
    if (!place)
        return ct_fail(CT_ERR_INVALID, "ct_note_place: the place is NULL");
    record_place(&g->record, place);
    return CT_OK;
}

static ct_status group_to_limit(ct_group *group, const char *call, int timeout_ms, ct_group **g)
{
    const ct_status status = group_resolve(group, g);

    if (status == CT_OK && timeout_ms <= 0)
        return ct_fail(CT_ERR_INVALID, "%s: %d ms; it must be positive", call, timeout_ms);
    return status;
}

ct_status ct_set_timeout(ct_group *group, int timeout_ms)
{
    ct_group *g;
    const ct_status status = group_to_limit(group, "ct_set_timeout", timeout_ms, &g);

    if (status == CT_OK)
        g->limit = (struct limit){ timeout_ms, "ct_set_timeout()" };
    return status;
}

ct_status ct_set_next_timeout(ct_group *group, int timeout_ms)
{
    ct_group *g;
    const ct_status status = group_to_limit(group, "ct_set_next_timeout", timeout_ms, &g);

    if (status == CT_OK)
        atomic_store(&g->next_timeout_ms, timeout_ms);
    return status;
}

/* ---- The order of reductions --------------------------------------------------- */

/* The values of CT_ORDER, which sets the order in which reductions combine the ranks' values:
 *
 *   nodes   The default.  First the ranks of each host are reduced in rank order.  Then the results
 *           of the hosts, in the order of the hosts' first ranks, are reduced as a balanced tree
 *           (combine.h).  So each host sends only one partial result.
 *
 *   rank    All ranks are reduced in rank order.  The result has the same bits whether the ranks
 *           are on one host or on four.
 *
 *   fast    Each algorithm uses the order that is fastest.  Floats may differ between runs with
 *           another size or layout, but never between ranks.
 *
 * All ranks need the same value.  The ranks exchange the value in their peer infos, and init fails
 * if they differ. */
static const char *const order_names[] = {
    [ORDER_NODES] = "nodes", [ORDER_RANK] = "rank", [ORDER_FAST] = "fast"
};
enum { ORDERS = sizeof order_names / sizeof *order_names };

static ct_status order_read(struct group_order *o)
{
    const char *word = getenv("CT_ORDER");

    o->rule = ORDER_NODES;
    o->is_wished = word && *word;
    if (!o->is_wished)
        return CT_OK;
    for (int i = 0; i < ORDERS; i++)
        if (!strcmp(word, order_names[i])) {
            o->rule = (enum order_rule)i;
            return CT_OK;
        }
    return ct_fail(CT_ERR_INVALID, "CT_ORDER=%s is not an order; use nodes, rank or fast", word);
}

/* Fills in the hosts and the ranks of `o`, in time linear in the number of ranks.  `number` is
 * zeroed memory with an int for each node of the mesh.  number[node] becomes 1 + the index of the
 * host among the hosts of the group; it stays 0 if the host has no rank of the group. */
static void order_by_node(struct group_order *o, const ct_group *g, int *number)
{
    const struct peer *peers = g->mesh->peers;

    for (int i = 0; i < g->size; i++) {
        int *host = &number[peers[g->ranks[i]].node];

        if (*host == 0)
            *host = ++o->hosts;
        o->node_end[*host - 1]++; /* node_end counts the host's ranks for now */
    }
    for (int h = 0, begin = 0; h < o->hosts; h++) {
        const int count = o->node_end[h];

        o->host_least = h == 0 || count < o->host_least ? count : o->host_least;
        o->host_most = count > o->host_most ? count : o->host_most;
        o->node_end[h] = begin; /* where the host's next rank goes; at last, the end */
        begin += count;
    }
    for (int i = 0; i < g->size; i++)
        o->fold_rank[o->node_end[number[peers[g->ranks[i]].node] - 1]++] = i;
    for (int at = 0; at < g->size; at++)
        o->fold_at[o->fold_rank[at]] = at;
}

static ct_status order_open(struct group_order *o, const ct_group *g)
{
    int *number = calloc((size_t)g->mesh->nodes, sizeof *number);
    ct_status status = CT_OK;

    o->fold_rank = calloc((size_t)g->size, sizeof *o->fold_rank);
    o->fold_at = calloc((size_t)g->size, sizeof *o->fold_at);
    o->node_end = calloc((size_t)g->size, sizeof *o->node_end);
    if (!number || !o->fold_rank || !o->fold_at || !o->node_end) {
        free(number);
        return ct_fail(CT_ERR_NOMEM, "no memory for a group of %d ranks", g->size);
    }
    o->rule = g->root->order.rule;
    o->is_wished = g->root->order.is_wished;
    if (g->root == g)
        status = order_read(o);
    order_by_node(o, g, number);
    free(number);
    o->fold = o->rule == ORDER_RANK /* call_fold_to() reduces one node in rank order */
                  ? (struct fold){ .sources = g->size, .nodes = 1, .node_end = &g->size }
                  : (struct fold){ .sources = g->size, .nodes = o->hosts, .node_end = o->node_end };
    return status;
}

/* ---- Creating ------------------------------------------------------------ */

/* Marks the handle as ended, and frees it only after ENDED_HANDLES more groups have ended.  So a
 * program that uses the handle of a destroyed group gets an error message. */
static void end_handle(ct_group *group)
{
    static ct_group *_Atomic ended[ENDED_HANDLES];
    static _Atomic unsigned count;

    group->maker = ENDED;
    free(atomic_exchange(&ended[atomic_fetch_add(&count, 1) % ENDED_HANDLES], group));
}

static void group_free(ct_group *group)
{
    pthread_mutex_destroy(&group->children);
    while (group->identity.births) {
        struct list_births *next = group->identity.births->next;

        free(group->identity.births);
        group->identity.births = next;
    }
    pthread_mutex_destroy(&group->failure.lock);
    pthread_mutex_destroy(&group->async.lock);
    group->extension->release(group);
    peer_access_free(group);
    pinned_close(&group->on_device.pinned);
    if (group->algorithms.owns_choices)
        free(group->algorithms.choices);
    free(group->algorithms.network);
    free(group->algorithms.overrides);
    free(group->order.fold_rank);
    free(group->order.fold_at);
    free(group->order.node_end);
    free(group->ranks);
    end_handle(group);
}

static ct_group *group_alloc(struct mesh *mesh, const struct group_extension *extension,
                             const int *ranks, int size)
{
    ct_group *g = calloc(1, sizeof *g);

    if (!g)
        return NULL;
    pthread_mutex_init(&g->children, NULL);
    pthread_mutex_init(&g->failure.lock, NULL);
    pthread_mutex_init(&g->async.lock, NULL);
    pinned_open(&g->on_device.pinned);
    g->maker = forks_maker();
    g->mesh = mesh;
    g->extension = extension;
    g->backend = "cpu";
    g->size = size;
    g->rank = -1;
    g->ranks = calloc((size_t)size + 1, sizeof *g->ranks);
    if (!g->ranks) {
        group_free(g);
        return NULL;
    }
    for (int i = 0; i < size; i++) {
        g->ranks[i] = ranks ? ranks[i] : i;
        if (g->ranks[i] == mesh->rank)
            g->rank = i;
    }
    g->member = g->rank >= 0;
    return g;
}

/* Creates the memory that the group's ranks on this host share.  `given_up` ends the wait for the
 * other ranks. */
static ct_status join_host(ct_group *g, const _Atomic int *given_up)
{
    const ct_status status =
        shm_group_create(g->mesh, g->ranks, g->size, g->root == g, group_channel(g, 0),
                         deadline_after(g->limit.ms), given_up, &g->host_shm);

    g->shm = g->order.hosts == 1 ? g->host_shm : NULL;
    return status;
}

/* Returns the group's id for the control page.  All members have the same id, and groups of other
 * meshes have other ids.  The id is never 0. */
static uint64_t id_in_page(const ct_group *g)
{
    uint64_t token;

    memcpy(&token, g->mesh->token, sizeof token);
    return (token ^ g->identity.id * 0x9e3779b97f4a7c15u) | 1;
}

/* Sets up the parts of a group that only members need.  *given_up becomes 1 when the parent fails;
 * given_up is NULL for a root. */
static ct_status set_up_member(ct_group *g, const char *overrides, const _Atomic int *given_up)
{
    ct_status status = order_open(&g->order, g);

    g->seq = fault_first_seq(g->mesh->faults) - 1;
    if (status == CT_OK)
        status = g->extension->open(g, overrides);
    if (status == CT_OK && !g->carrier) /* with a carrier, no algorithm uses shared memory */
        status = join_host(g, given_up);
    if (status != CT_OK)
        return status;
    g->channel = (struct channel){ .id = group_channel(g, 0),
                                   .parent = g->identity.parent_id * 2,
                                   .born_in = g->identity.born_in,
                                   .first_call = g->seq + 1,
                                   .ranks = g->ranks,
                                   .size = g->size,
                                   .on_failure = group_fail_told,
                                   .owner = g };
    channel_open(g->mesh, &g->channel);
    record_open(&g->record, &g->mesh->control, id_in_page(g), g->name, g->rank, g->size);
    g->traced = trace_group(g->mesh->trace, g->name, g->rank, g->size);
    return CT_OK;
}

ct_status group_create_root(struct mesh *mesh, ct_store *store, const char *name,
                            struct limit limit, const char *overrides,
                            const struct group_extension *extension, ct_group **group)
{
    ct_group *g = group_alloc(mesh, extension, NULL, mesh->size);
    ct_status status;

    if (!g)
        return ct_fail(CT_ERR_NOMEM, "no memory for a group of %d ranks", mesh->size);
    g->root = g;
    g->identity.id = FIRST_CHANNEL / 2;
    g->limit = limit;
    snprintf(g->name, sizeof g->name, "%s", name);
    status = set_up_member(g, overrides, NULL);
    if (status != CT_OK) {
        group_free(g);
        return status;
    }
    g->store = store_hold(store);
    if (mesh->faults)
        mesh->faults->abort = ct_abort;
    mesh->on_death = group_member_died;
    mesh->on_wake = group_look_at_all;
    mesh->on_death_arg = g;
    group_look_for_deaths(g);
    *group = g;
    return CT_OK;
}

ct_status group_create(ct_group *parent, const struct group_plan *plan, ct_group **group)
{
    ct_group *g = group_alloc(parent->mesh, parent->extension, plan->ranks, plan->size);
    ct_status status = CT_OK;

    if (!g)
        return ct_fail(CT_ERR_NOMEM, "no memory for a group of %d ranks", plan->size);
    g->root = parent->root;
    g->identity.id = plan->id;
    g->identity.parent_id = parent->identity.id;
    g->identity.born_in = plan->born_in;
    g->limit = plan->limit;
    g->on_device.stream = parent->on_device.stream;
    snprintf(g->name, sizeof g->name, "%s", plan->name);
    if (g->member)
        status = set_up_member(g, plan->algorithms, &parent->failure.reported);
    if (status == CT_ERR_ABORTED)
        status = group_cause(parent, status, 0);
    if (status != CT_OK) {
        group_free(g);
        return ct_fail_in(status, "making group %s: ", plan->name);
    }
    pthread_mutex_lock(&g->root->children);
    g->next = g->root->next;
    g->root->next = g;
    pthread_mutex_unlock(&g->root->children);
    group_look_for_deaths(g);
    *group = g;
    return CT_OK;
}

ct_status ct_abort(ct_group *group)
{
    ct_group *g;
    const ct_status status = group_resolve_member(group, &g);

    if (status != CT_OK)
        return status;
    ct_fail(CT_ERR_ABORTED, "ct_abort() was called on group %s", g->name);
    group_abort(g);
    return CT_OK;
}

/* ---- Destroying ---------------------------------------------------------- */

static void unlink_from_root(ct_group *group)
{
    pthread_mutex_lock(&group->root->children);
    for (ct_group **link = &group->root->next; *link; link = &(*link)->next)
        if (*link == group) {
            *link = group->next;
            break;
        }
    pthread_mutex_unlock(&group->root->children);
}

void group_keep_work(ct_group *group, struct group_work *work)
{
    pthread_mutex_lock(&group->async.lock);
    work->next = group->async.works;
    work->link = &group->async.works;
    if (work->next)
        work->next->link = &work->next;
    group->async.works = work;
    pthread_mutex_unlock(&group->async.lock);
}

void group_forget_work(ct_group *group, struct group_work *work)
{
    pthread_mutex_lock(&group->async.lock);
    *work->link = work->next;
    if (work->next)
        work->next->link = work->link;
    pthread_mutex_unlock(&group->async.lock);
}

static void free_works(ct_group *group)
{
    while (group->async.works) {
        struct group_work *work = group->async.works;

        group->async.works = work->next;
        leftovers_add(work);
        work->free(work);
    }
}

void group_destroy(ct_group *group)
{
    struct mesh *mesh = group->mesh;

    if (group->root == group) {
        while (group->next)
            group_destroy(group->next);
    } else {
        unlink_from_root(group);
    }
    group->extension->drop(group);
    queue_destroy(group->async.queue);
    queue_destroy(group->async.landings);
    queue_destroy(group->async.watches);
    group->extension->close(group);
    record_close(&group->record);
    if (group->member) {
        channel_give_up(mesh, &group->channel);
        channel_goodbye(mesh, &group->channel);
        channel_close(mesh, &group->channel); /* now no frame can report a failure of the group */
    }
    shm_group_destroy(group->host_shm);
    group->host_shm = group->shm = NULL; /* a wait of mesh_destroy() may still look at this group */
    if (group->root == group) {
        mesh_destroy(mesh);
        ct_store_close(group->store);
    }
    free_works(group); /* not earlier, since the mesh could still move their messages */
    group_free(group);
}
