/* SPDX-License-Identifier: Apache-2.0 */
/* group_shrink.c - the survivors of a group make a new group without the dead.
 *
 * Agreement needs something that outlives any rank: the store of the rendezvous.  Its compare_set
 * decides once for all ranks.  A try has two decisions, under these keys:
 *
 *   here/<rank>    each survivor sets its own; the other ranks are dead, or come too late
 *   who            the first rank that has seen all survivors writes the list; that one counts
 *   (the ranks of the list make a mesh and a group)
 *   made/<rank>    each rank that succeeded
 *   verdict        "made" by a rank that saw all of them, "again" by one that saw a failure
 *
 * Only the first rank that is alive looks for the others, which can't go on without it anyway.  The
 * other ranks wait for its decision or its death.  If that takes long, each rank looks itself, so
 * that a rank that does not notice a death does not delay the others.  The more ranks there are,
 * the longer each waits before it looks, so that the store does not get more looks.
 *
 * After "again" the next try begins, under other keys, among the ranks of the last decision.  A
 * rank that has died since then is left out.  So, whenever a death happens, either all ranks get
 * the same group or no rank gets one.  The new mesh shares nothing with the old one: its token,
 * memory and sockets are new, and no late message can reach it.
 *
 * [ULFM's revoke, agree, shrink: Bland and others, 2013; here the store makes the agreement] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/group/group.h"
#include "runtime/messaging/death_notice.h"
#include "runtime/messaging/messaging_internal.h"
#include "runtime/store/store.h"
#include "runtime/store/tcp_store.h"
#include "runtime/util/clock.h"

#define GLANCE_MS 20 /* how often the first rank alive checks for deaths without a notice */
#define SLICE_MS 100 /* how often the others check whether that rank is dead */
/* Time limits after all survivors have come.  MAKING_MS: at least for all tries to make the new
 * group.  ATTEMPT_MS, and ATTEMPT_EACH_MS more for each rank: for one try, but at most half of the
 * caller's time if that is longer than ATTEMPT_MS.  AGAIN_MS: how much later a rank may come to the
 * next try, since ranks leave a failed try at different moments. */
#define MAKING_MS 10000
#define ATTEMPT_MS 5000
#define ATTEMPT_EACH_MS 100
#define AGAIN_MS 2000

struct shrink {
    ct_group *old;
    ct_store *store; /* with this try's prefix */
    int64_t arrive_by, deadline;
    int attempt_ms; /* for one try to make the group */
    /* group ranks that may be in the new group: first all, then the decided ones */
    int *left;
    int count, mine; /* number of ranks in left; position of this rank there */
};

/* ---- Looking for the others -------------------------------------------------- */

/* Says whether a member is dead, as of the last group_poll(). */
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
        endpoint_of(mesh, peer)->gone
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

/* 1: the decision is in the store.  0: this rank has to look for the others itself.  It is the
 * first rank alive, or it has waited long enough, or the store is gone. */
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

/* Waits a moment for "what/<rank>" of all ranks that are not marked in `arrived`, and marks those
 * whose key is set.  Returns how many ranks are missing and not known to be dead.  -1: the store is
 * gone, or no memory. */
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
    if (asked > 0) /* the result does not matter: the keys are checked below */
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

/* Gives the value that the first rank has set under the key. */
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
                   "the survivors of group %s went on without this rank, which came too late",
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

    /* The loop below looks at these deaths. */
    store_skip_deaths(s->store, control_deaths(&s->old->mesh->control));
    group_poll(s->old);
    for (int i = 0; i < s->count; i++)
        if (is_dead(s->old, s->left[i]))
            return ct_fail(CT_ERR_PEER, "rank %d came and died", s->left[i]);
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

/* *again: a rank failed or died, so there is a next try. */
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
        /* Ranks that are still in the failed try notice the failure when their try ends. */
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
        return ct_fail(CT_ERR_INVALID, "ct_shrink_group: no place for the survivors was given");
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
