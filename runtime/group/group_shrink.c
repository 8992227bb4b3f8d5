/* SPDX-License-Identifier: Apache-2.0 */
/* group_shrink.c - ct_shrink_group(): the survivors of a failed group create a new group without
 * the dead ranks.
 *
 * The survivors agree by the store of the rendezvous, which outlives any rank.  The first rank that
 * sets a key with compare_set decides for all ranks.  A try has two decisions, with these keys:
 *
 *   here/<rank>    Each survivor sets its own key.  A rank without a key is dead or late.
 *   who            A rank that has seen the keys of all survivors sets the list of members.  Only
 *                  the list of the first such rank counts.
 *   made/<rank>    The members create a mesh and a group.  Each member that succeeds sets its key.
 *   verdict        The first rank that decides sets "made" if it saw the keys of all members, or
 *                  "again" if it saw a failure.
 *
 * The living rank with the lowest number polls the keys of the other ranks.  The other ranks wait
 * for its decision or its death.  If that takes long, each rank polls the keys itself, so that a
 * rank that does not notice a death does not delay the others.  This wait is longer the more ranks
 * there are, so that the number of requests at the store does not grow.
 *
 * After "again" the members try again with other keys, without the ranks that have died since.  So,
 * whenever a death happens, either all members get the same group or no rank gets a group.  The new
 * mesh has a new token, new memory and new sockets, so no late message of the old mesh can reach
 * it.
 *
 * The steps are revoke, agree and shrink of ULFM (Bland and others, 2013).  ULFM agrees by
 * messages, libct by the store. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/group/group.h"
#include "runtime/messaging/death_notice.h"
#include "runtime/messaging/messaging_internal.h"
#include "runtime/store/store.h"
#include "runtime/store/tcp_store.h"
#include "runtime/util/clock.h"

/* The time, in ms, after which the lowest living rank checks again for deaths without a notice. */
#define GLANCE_MS 20
/* The time, in ms, after which any other rank checks again whether the lowest rank has died. */
#define SLICE_MS 100
/* Limits, in ms, after all survivors have come.  All tries together may last MAKING_MS, or the
 * caller's timeout if that is longer.  A try may last ATTEMPT_MS plus ATTEMPT_EACH_MS for each
 * rank, or half of the caller's timeout if that is shorter, but never less than ATTEMPT_MS.  Ranks
 * leave a failed try at different times, so a rank may come AGAIN_MS later to the next try. */
#define MAKING_MS 10000
#define ATTEMPT_MS 5000
#define ATTEMPT_EACH_MS 100
#define AGAIN_MS 2000

struct shrink {
    ct_group *old;
    ct_store *store; /* with the prefix of this try's keys */
    /* In ms of clock_ms(): when the survivors must have come, and when the last try must end. */
    int64_t arrive_by, deadline;
    int attempt_ms; /* limit of a try to create the group */
    int *left; /* [count] ranks of `old` that may be members: first all, then the decided members */
    int count, mine; /* mine: the index of this rank in `left` */
};

/* ---- Which ranks have come or died --------------------------------------------- */

/* Returns 1 if the member was dead at the last group_poll(). */
static int is_dead(ct_group *g, int member)
{
    struct mesh *mesh = g->mesh;
    const int peer = g->ranks[member];
    int gone;

    if (mesh_death(mesh, peer))
        return 1;
    if (peer == mesh->rank)
        return 0;
    pthread_mutex_lock(&mesh->transport->lock);
    gone =
        endpoint_of(mesh, peer)->state == ENDPOINT_GONE
        || (mesh->peers[peer].local >= 0 && node_peer_gone(&mesh->node, mesh->peers[peer].local));
    pthread_mutex_unlock(&mesh->transport->lock);
    return gone;
}

static int has(ct_store *store, const char *key)
{
    const char *keys[1] = { key };
    int present = 0;

    return ct_store_check(store, keys, 1, &present) == CT_OK && present;
}

/* Waits until the key `decision` is set, and then returns 1.  Returns 0 if this rank must poll the
 * keys of the other ranks itself.  This is so if this rank is the lowest living rank, if it has
 * waited long enough, or if the store is gone. */
static int is_decided(struct shrink *s, const char *decision, int64_t until)
{
    const char *keys[1] = { decision };
    const int64_t own_turn = clock_ms() + (int64_t)GLANCE_MS * s->count;
    ct_status status = CT_ERR_TIMEOUT;
    int first = 0;

    while (status == CT_ERR_TIMEOUT && clock_ms() < own_turn && clock_ms() < until) {
        group_poll(s->old);
        while (s->left[first] != s->old->rank && is_dead(s->old, s->left[first]))
            first++;
        if (s->left[first] == s->old->rank)
            break;
        status = ct_store_wait(s->store, keys, 1, time_left_ms(until, SLICE_MS));
    }
    return status == CT_OK || has(s->store, decision);
}

/* Waits for GLANCE_MS at most for the keys "<what>/<rank>" of all ranks that are not marked in
 * `arrived`.  Then marks the ranks with a key.  Returns the number of ranks without a key that are
 * not known to be dead.  Returns -1 if the store is gone or memory is short. */
static int wait_for_keys(struct shrink *s, const char *what, char *arrived)
{
    char(*text)[32] = calloc((size_t)s->count, sizeof *text), *there = calloc((size_t)s->count, 1);
    const char **keys = calloc((size_t)s->count, sizeof *keys);
    int *of = calloc((size_t)s->count, sizeof *of), asked = 0, missing = 0;
    ct_status status = text && there && keys && of ? CT_OK : CT_ERR_NOMEM;

    group_poll(s->old);
    for (int i = 0; status == CT_OK && i < s->count; i++) {
        if (arrived[i] || is_dead(s->old, s->left[i]))
            continue;
        snprintf(text[asked], sizeof *text, "%s/%d", what, s->left[i]);
        keys[asked] = text[asked];
        of[asked++] = i;
    }
    if (asked > 0) /* the status is ignored, since the keys are checked below */
        ct_store_wait(s->store, keys, asked, time_left_ms(s->deadline, GLANCE_MS));
    if (status == CT_OK)
        status = store_check_each(s->store, keys, asked, there);
    group_poll(s->old);
    for (int k = 0; status == CT_OK && k < asked; k++) {
        arrived[of[k]] = there[k];
        missing += !there[k] && !is_dead(s->old, s->left[of[k]]);
    }
    free(text);
    free(there);
    free(keys);
    free(of);
    return status == CT_OK ? missing : -1;
}

/* Sets the key to `mine`, unless another rank has set the key before.  Sets *decided to the key's
 * value, which the caller frees. */
static ct_status decide(ct_store *store, const char *key, const char *mine, char **decided)
{
    void *value;
    size_t bytes;
    const ct_status status =
        ct_store_compare_set(store, key, "", 0, mine, strlen(mine), &value, &bytes);

    if (status == CT_OK)
        *decided = value;
    return status;
}

static ct_status no_store(const struct shrink *s)
{
    return ct_fail_in(CT_ERR_PEER,
                      "the survivors of group %s have no store to meet at (ctrun's outlives all "
                      "ranks): ",
                      s->old->name);
}

/* ---- The first decision: the members ------------------------------------------ */

/* Reads the list of members into `left`.  Returns CT_ERR_TIMEOUT if this rank is not in the
 * list. */
static ct_status read_decision(struct shrink *s, const char *text)
{
    const char *at = text;
    char *end;

    s->count = 0;
    s->mine = -1;
    for (long rank = strtol(at, &end, 10); end != at; rank = strtol(at, &end, 10)) {
        if (rank < 0 || rank >= s->old->size || s->count == s->old->size)
            break;
        if (rank == s->old->rank)
            s->mine = s->count;
        s->left[s->count++] = (int)rank;
        at = end;
    }
    if (s->mine >= 0)
        return CT_OK;
    return ct_fail(CT_ERR_TIMEOUT,
                   "the survivors of group %s continued without this rank, which came too late",
                   s->old->name);
}

static ct_status agree_on_members(struct shrink *s)
{
    char *arrived = calloc((size_t)s->count, 1), *text = calloc((size_t)s->count, 12),
         *decided = NULL, key[32];
    int missing = s->count, used = 0, is_there = 0;
    ct_status status = arrived && text ? CT_OK : ct_fail(CT_ERR_NOMEM, "no memory to shrink");

    snprintf(key, sizeof key, "here/%d", s->old->rank);
    if (status == CT_OK)
        status = ct_store_set(s->store, key, "1", 1);
    while (status == CT_OK && missing > 0 && !(is_there = is_decided(s, "who", s->arrive_by))) {
        missing = wait_for_keys(s, "here", arrived);
        if (missing < 0)
            status = CT_ERR_PEER;
        if (clock_ms() >= s->arrive_by)
            break;
    }
    for (int i = 0; status == CT_OK && !is_there && i < s->count; i++)
        if (s->left[i] == s->old->rank || (arrived[i] && !is_dead(s->old, s->left[i])))
            used += snprintf(text + used, 12, "%d ", s->left[i]);
    if (status == CT_OK)
        status = decide(s->store, "who", text, &decided);
    if (status == CT_OK)
        status = read_decision(s, decided);
    else
        status = no_store(s);
    free(decided);
    free(text);
    free(arrived);
    return status;
}

/* ---- The second decision: made or again --------------------------------------- */

static ct_status shrink_make_group(struct shrink *s, ct_group **group)
{
    char name[sizeof s->old->name];
    ct_store *store;
    struct mesh *mesh;
    ct_status status;

    /* The store's waits ignore the deaths so far, since the loop below checks for them. */
    store_skip_deaths(s->store, control_deaths(&s->old->mesh->control));
    group_poll(s->old);
    for (int i = 0; i < s->count; i++)
        if (is_dead(s->old, s->left[i]))
            return ct_fail(CT_ERR_PEER, "rank %d joined and then died", s->left[i]);
    status = ct_store_prefix(s->store, "mesh", &store);
    if (status != CT_OK)
        return status;
    snprintf(name, sizeof name, "%.50s~%d", s->old->name, s->old->shrinks);
    status = mesh_create(store, s->mine, s->count,
                         clock_ms() + time_left_ms(s->deadline, s->attempt_ms), &mesh);
    if (status == CT_OK) {
        status = group_create_root(mesh, store, name, s->old->limit, s->old->algorithms.overrides,
                                   s->old->extension, group);
        if (status != CT_OK)
            mesh_destroy(mesh);
        else
            (*group)->on_device.stream = s->old->on_device.stream;
    }
    ct_store_close(store);
    return status;
}

/* `made` is this rank's status of creating the group.  Sets *again to 1 if a rank failed or died,
 * so that a new try is needed. */
static ct_status agree_on_verdict(struct shrink *s, ct_status made, int *again)
{
    char *arrived = calloc((size_t)s->count, 1), *decided = NULL, key[32];
    const char *outcome = "again";
    int missing = s->count, dead = 0;
    ct_status status = CT_OK;

    snprintf(key, sizeof key, "made/%d", s->old->rank);
    if (made == CT_OK && arrived)
        status = ct_store_set(s->store, key, "1", 1);
    while (status == CT_OK && made == CT_OK && arrived && missing > 0 && !dead
           && clock_ms() < s->deadline && !is_decided(s, "verdict", s->deadline)) {
        missing = wait_for_keys(s, "made", arrived);
        if (missing < 0)
            status = CT_ERR_PEER;
        for (int i = 0; i < s->count; i++)
            dead |= !arrived[i] && is_dead(s->old, s->left[i]);
    }
    if (missing == 0 && !dead)
        outcome = "made";
    if (status == CT_OK)
        status = decide(s->store, "verdict", outcome, &decided);
    *again = status == CT_OK && strcmp(decided, "made") != 0;
    free(decided);
    free(arrived);
    return status == CT_OK ? CT_OK : no_store(s);
}

static ct_status try_once(struct shrink *s, ct_group **group, int *again)
{
    ct_group *made = NULL;
    ct_status status, verdict;

    *again = 0;
    status = agree_on_members(s);
    if (status != CT_OK)
        return status;
    status = shrink_make_group(s, &made);
    verdict = agree_on_verdict(s, status, again);
    if (verdict == CT_OK && !*again) {
        *group = made;
        return CT_OK;
    }
    if (made)
        group_destroy(made);
    return verdict != CT_OK ? verdict : status;
}

static ct_status shrink_group(struct shrink *s, ct_group **group)
{
    char prefix[64];
    int again;
    ct_status status;

    do {
        snprintf(prefix, sizeof prefix, "shrink/%llx/%d", (unsigned long long)s->old->identity.id,
                 ++s->old->shrinks);
        status = ct_store_prefix(s->old->root->store, prefix, &s->store);
        if (status != CT_OK)
            return status;
        status = try_once(s, group, &again);
        ct_store_close(s->store);
        /* Other ranks may notice the failure only when their own try reaches its limit. */
        s->arrive_by = deadline_after(time_left_ms(s->deadline, s->attempt_ms + AGAIN_MS));
    } while (again && clock_ms() < s->deadline);
    if (!again)
        return status;
    return ct_fail(CT_ERR_TIMEOUT, "the survivors could not agree in time; the last try failed: %s",
                   ct_last_error());
}

static void set_limits(struct shrink *s, int timeout_ms)
{
    const int64_t attempt = ATTEMPT_MS + (int64_t)ATTEMPT_EACH_MS * s->old->size;

    s->arrive_by = deadline_after(timeout_ms);
    s->deadline = s->arrive_by + (timeout_ms > MAKING_MS ? timeout_ms : MAKING_MS);
    s->attempt_ms = (int)(attempt < timeout_ms / 2 ? attempt : timeout_ms / 2);
    if (s->attempt_ms < ATTEMPT_MS)
        s->attempt_ms = ATTEMPT_MS;
}

ct_status ct_shrink_group(ct_group *group, int timeout_ms, ct_group **survivors)
{
    struct shrink s = { 0 };
    ct_status status = group_resolve_member(group, &s.old);

    if (status != CT_OK)
        return ct_fail_in(status, "ct_shrink_group: ");
    if (!survivors)
        return ct_fail(CT_ERR_INVALID, "ct_shrink_group: the pointer for the survivors is NULL");
    *survivors = NULL;
    set_limits(&s, timeout_ms < 0 ? s.old->limit.ms : timeout_ms);
    s.left = calloc((size_t)s.old->size, sizeof *s.left);
    if (!s.left)
        return ct_fail(CT_ERR_NOMEM, "ct_shrink_group: no memory for %d ranks", s.old->size);
    for (int i = 0; i < s.old->size; i++)
        s.left[s.count++] = i;
    ct_fail(CT_ERR_ABORTED, "ct_shrink_group() was called on group %s", s.old->name);
    group_abort(s.old);
    status = shrink_group(&s, survivors);
    if (status == CT_OK && s.old->mesh->control.own)
        control_forgive(s.old->mesh->control.own, 0, 0);
    free(s.left);
    return status == CT_OK ? CT_OK : ct_fail_in(status, "ct_shrink_group: ");
}
