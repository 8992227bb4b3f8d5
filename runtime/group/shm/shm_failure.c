/* SPDX-License-Identifier: Apache-2.0 */
/* shm_failure.c - why a call of a group on one host fails: a member makes another call, has ended,
 * or has reported a failure.
 *
 * Each member has room for one failure, which only that member writes: first the record, then the
 * number of the first call that fails.  A word shared by all members says whether there is any
 * failure, so until then a wait reads only that word.  If several members have failed, the failure
 * of the earliest call counts. */
#include "runtime/group/shm/shm_group_internal.h"

ct_status shm_mismatch(const struct shm_group *f, int rank, uint64_t round)
{
    char words[256];

    signature_differ(&f->calls[round % SHM_LINES], f->mesh->rank,
                     &shm_line(f, rank, round)->signature, f->peers[rank].rank, words,
                     sizeof words);
    return ct_fail_because((struct blame){ f->peers[rank].rank, BLAME_MISMATCH }, CT_ERR_MISMATCH,
                           "%s", words);
}

ct_status shm_look_at(const struct shm_group *f, int rank)
{
    const int state = atomic_load(&f->members[rank].state);
    const struct blame died = { f->peers[rank].rank, BLAME_DIED };
    char name[160];

    mesh_peer_name(f->mesh, f->peers[rank].rank, name, sizeof name);
    if (mesh_death(f->mesh, f->peers[rank].rank)) {
        mesh_death_words(f->mesh, f->peers[rank].rank, name, sizeof name);
        return ct_fail_because(died, CT_ERR_PEER, "%s", name);
    }
    if (state == LEFT)
        return ct_fail_because((struct blame){ f->peers[rank].rank, BLAME_LEFT }, CT_ERR_PEER,
                               "%s destroyed the group without making this call", name);
    if (node_peer_gone(&f->mesh->node, f->peers[rank].local))
        return ct_fail_because(died, CT_ERR_PEER, "%s is gone: its process ended", name);
    return CT_OK;
}

/* ---- Failures that members have reported -------------------------------------- */

/* Returns the member with the failure of the earliest call; NULL if no member has failed. */
static const struct shm_member *shm_failure_earliest(const struct shm_group *f)
{
    const struct shm_member *earliest = NULL;

    if (!atomic_load(&f->head->failed)) /* direct_touch() sets its mark before this load */
        return NULL;
    for (int i = 0; i < f->size; i++) {
        const struct shm_member *member = &f->members[i];
        const uint64_t from = atomic_load_explicit(&member->fails_from, memory_order_acquire);

        if (from && (!earliest || from < atomic_load(&earliest->fails_from)))
            earliest = member;
    }
    return earliest;
}

static int shm_failure_is_due(const struct shm_group *f, uint64_t seq)
{
    const struct shm_member *member = shm_failure_earliest(f);

    return member && atomic_load(&member->fails_from) - 1 <= seq;
}

int shm_has_failed(const struct shm_group *f)
{
    return atomic_load(f->given_up) || shm_failure_is_due(f, f->signature.seq);
}

void shm_group_set_failure(struct shm_group *f, const struct group_failure *failure)
{
    struct shm_member *own = &f->members[f->rank];

    if (atomic_load(&own->fails_from) || shm_failure_is_due(f, failure->from_call))
        return;
    own->failure = *failure;
    atomic_store(&own->fails_from, failure->from_call + 1);
    atomic_store(&f->head->failed, 1);
    bell_fence();
    shm_ring_members(f);
    shm_ring(f, f->rank); /* another thread of this rank may wait */
}

int shm_group_failure(const struct shm_group *f, struct group_failure *failure)
{
    const struct shm_member *member = shm_failure_earliest(f);

    if (member)
        *failure = member->failure;
    return member != NULL;
}
