/* SPDX-License-Identifier: Apache-2.0 */
/* claims.c - checks that all ranks have the same world size, and that no two processes have the
 * same rank number.
 *
 * A follower compares its world size with its leader's.  Leaders compare their sizes by the key
 * "size" of the store.  Each rank sets its peer info under the key "card/<rank>", its card, and so
 * claims its rank number.
 *
 * If a card was set before, the rank must find out whether the process that set the card still
 * lives.  Only ranks of the same host can check this.  So a rank of another host sends the notice
 * "?...", which wakes the leaders.  The leader on the host of the process answers if the process
 * lives. */
#include "runtime/bootstrap/claims.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/bootstrap/store_all_gather.h"
#include "runtime/shm/host_segment.h"
#include "runtime/store/store.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"
#include "runtime/util/process_state.h"

#define ANSWER_MS 700 /* longest wait for the answer to a notice "?..." */
#define PAUSE_MS 100  /* sleep before a failed rank tries the store again */
#define WORDS 400     /* size of an error message */

static void own_host(char name[64])
{
    if (gethostname(name, 63) < 0)
        snprintf(name, 64, "?");
    name[63] = 0;
}

/* Makes the init of this rank and of all waiting ranks fail with the error message `sentence`.  A
 * group that is complete already does not fail. */
static ct_status fail_all(ct_store *store, const char *sentence)
{
    char notice[WORDS + 2];
    int complete;
    ct_status status;

    snprintf(notice, sizeof notice, "!%s", sentence);
    status = ct_store_set(store, CLAIMS_FAILED_KEY, sentence, strlen(sentence));
    if (status == CT_OK)
        status = store_all_gather_notify(store, "card", notice, &complete);
    return status == CT_OK ? ct_fail(CT_ERR_MISMATCH, "%s", sentence) : status;
}

/* Returns the key's value, which the caller frees, or NULL if the key is not set. */
static void *get_if_there(ct_store *store, const char *key, size_t *bytes)
{
    void *value = NULL;
    int present = 0;

    return ct_store_check(store, &key, 1, &present) == CT_OK && present
                   && ct_store_get(store, key, 1000, &value, bytes) == CT_OK
               ? value
               : NULL;
}

/* ---- The size ---------------------------------------------------------------------- */

/* The value that a rank sets under the key "size". */
struct claimed_size {
    int size, rank, pid; /* the world size, and the rank and the process that set it */
    char host[64];
};

/* Makes the init of all ranks fail if the two sizes differ. */
static ct_status claims_compare(ct_store *store, const struct claimed_size *own,
                                const struct claimed_size *other)
{
    const struct claimed_size *a = own->rank < other->rank ? own : other,
                              *b = own->rank < other->rank ? other : own;
    char sentence[WORDS];

    if (own->size == other->size)
        return CT_OK;
    snprintf(sentence, sizeof sentence,
             "ranks disagree about WORLD_SIZE: rank %d (pid %d on %s) has %d, rank %d (pid %d on "
             "%s) has %d; give all ranks the same",
             a->rank, a->pid, a->host, a->size, b->rank, b->pid, b->host, b->size);
    return fail_all(store, sentence);
}

ct_status claim_size(ct_store *store, int rank, int size, const struct host_leader *leader)
{
    struct claimed_size own = { .size = size, .rank = rank, .pid = (int)getpid() }, other;
    char text[128], value[128] = "";
    void *found = NULL;
    size_t bytes = 0;
    ct_status status;

    own_host(own.host);
    if (leader && !leader->is_self) {
        other = (struct claimed_size){ leader->size, leader->rank, leader->pid, "" };
        snprintf(other.host, sizeof other.host, "%s", own.host);
        return claims_compare(store, &own, &other);
    }
    snprintf(text, sizeof text, "%d %d %d %s", own.size, own.rank, own.pid, own.host);
    status = ct_store_compare_set(store, "size", "", 0, text, strlen(text), &found, &bytes);
    if (status != CT_OK)
        return status;
    snprintf(value, sizeof value, "%.*s", (int)bytes, (char *)found);
    free(found);
    if (sscanf(value, "%d %d %d %63s", &other.size, &other.rank, &other.pid, other.host) != 4)
        return ct_fail(CT_ERR_MISMATCH,
                       "a rank speaks another version of libct: the store's key "
                       "size is \"%.32s\"",
                       value);
    return claims_compare(store, &own, &other);
}

/* ---- The number ---------------------------------------------------------------------- */

/* Writes the name of a leader's host, from the leader's card, or "another host" without a card. */
static void claims_host_of(ct_store *store, int leader, char name[64])
{
    char key[32];
    struct leader_info info;
    void *value;
    size_t bytes = 0;

    snprintf(name, 64, "another host");
    snprintf(key, sizeof key, "card/%d", leader);
    value = get_if_there(store, key, &bytes);
    if (value && bytes == sizeof info) {
        memcpy(&info, value, sizeof info);
        if (memchr(info.host.name, 0, sizeof info.host.name))
            snprintf(name, 64, "%s", info.host.name);
    }
    free(value);
}

/* Asks the leaders of other hosts whether the process that set the card `other` lives.  Sets *lives
 * to 1 if a leader answers.  Sets *complete to 1 if the group is complete, so that no leader reads
 * the question. */
static ct_status ask_for_life(ct_store *store, const struct peer_info *own, int rank,
                              const struct peer_info *other, int *lives, int *complete)
{
    char notice[160], key[40];
    const char *keys[1] = { key };
    ct_status status;

    snprintf(key, sizeof key, "lives/%016" PRIx64, own->number);
    snprintf(notice, sizeof notice, "?%d %d %d %" PRIu64 " %" PRIu64 " %s", rank, other->leader,
             (int)other->pid, other->pid_space, other->number, key);
    status = store_all_gather_notify(store, "card", notice, complete);
    if (status != CT_OK || *complete)
        return status;
    status = ct_store_wait(store, keys, 1, ANSWER_MS);
    *lives = status == CT_OK;
    return status == CT_ERR_TIMEOUT ? CT_OK : status;
}

/* Fails since the group of this store is complete.  Returns CT_ERR_MISMATCH if the other process
 * lives and no rank has left the group.  Else returns CT_ERR_PEER, since the ranks of the group may
 * have ended.  Then a new group may meet at a new store at the same address. */
static ct_status joined_before(ct_store *store, int lives, const char *who)
{
    int64_t goodbyes = 0;
    const ct_status status = ct_store_add(store, "goodbye", 0, &goodbyes);

    if (status == CT_OK && lives && goodbyes == 0)
        return ct_fail(CT_ERR_MISMATCH,
                       "%s; the first one is in a group already: give each process its own RANK",
                       who);
    poll(NULL, 0, PAUSE_MS);
    return ct_fail(CT_ERR_PEER,
                   "%s; the group of the first one is complete, so no other can join it: end all "
                   "ranks of that job before you start it again",
                   who);
}

/* Decides whether this rank may replace the card `other` of another process with the same rank
 * number.  Returns CT_OK if that process has ended.  Else fails. */
static ct_status claims_settle(ct_store *store, const struct mesh *mesh,
                               const struct host_leader *leader, const struct peer_info *own,
                               const struct peer_info *other)
{
    const int is_here = other->leader == leader->rank && other->pid_space == own->pid_space;
    char here[64], there[64], who[WORDS / 2], sentence[WORDS];
    const char *all = "card/all";
    int lives = is_here && !process_has_ended(other->pid), complete = 0;
    ct_status status = is_here ? ct_store_check(store, &all, 1, &complete)
                               : ask_for_life(store, own, mesh->rank, other, &lives, &complete);

    if (status != CT_OK)
        return status;
    own_host(here);
    if (is_here)
        snprintf(there, sizeof there, "%s", here);
    else
        claims_host_of(store, other->leader, there);
    snprintf(who, sizeof who, "two processes are rank %d: pid %d on %s and pid %d on %s",
             mesh->rank, (int)other->pid, there, (int)own->pid, here);
    if (complete)
        return joined_before(store, lives, who);
    if (lives) {
        snprintf(sentence, sizeof sentence, "%s; give each process its own RANK", who);
        return fail_all(store, sentence);
    }
    log_line(LOG_WAITS,
             "rank %d was started again before all ranks had come: pid %d on %s has ended, and "
             "pid %d on %s takes its place",
             mesh->rank, (int)other->pid, there, (int)own->pid, here);
    return CT_OK;
}

ct_status claim_rank(ct_store *store, const struct mesh *mesh, const struct host_leader *leader,
                     const struct leader_info *own, size_t bytes, int64_t deadline)
{
    struct peer_info other;
    char key[32];
    void *before;
    size_t size = 0;
    ct_status status =
        store_all_gather_claim(store, "card", mesh->rank, own, bytes, &before, &size);

    if (status != CT_OK)
        return status;
    if (!before)
        return store_all_gather_count(store, "card", mesh->size, deadline);
    if (size < sizeof other) {
        free(before);
        return ct_fail(CT_ERR_MISMATCH, "rank %d speaks another version of libct", mesh->rank);
    }
    memcpy(&other, before, sizeof other);
    free(before);
    if (other.number
        != own->peer.number) /* if equal, this process itself set the card in an earlier try */
        status = claims_settle(store, mesh, leader, &own->peer, &other);
    snprintf(key, sizeof key, "card/%d", mesh->rank);
    return status == CT_OK ? ct_store_set(store, key, own, bytes)
                           : status; /* the process of the earlier card has counted the rank */
}

ct_status claim_reason(ct_store *store, const struct mesh *mesh, const struct host_leader *leader,
                       ct_status status)
{
    struct peer_info own, other;
    char before[WORDS], key[32];
    ct_status settled = CT_OK;
    size_t bytes = 0;
    void *value;

    snprintf(before, sizeof before, "%s", ct_last_error());
    if ((value = get_if_there(store, CLAIMS_FAILED_KEY, &bytes))) {
        status = ct_fail(CT_ERR_MISMATCH, "%.*s", (int)bytes, (char *)value);
        free(value);
        return status;
    }
    snprintf(key, sizeof key, "card/%d", mesh->rank);
    value = get_if_there(store, key, &bytes);
    peer_info_fill(&own, mesh, leader->rank);
    if (value && bytes >= sizeof other) {
        memcpy(&other, value, sizeof other);
        if (other.number != own.number)
            settled = claims_settle(store, mesh, leader, &own, &other);
    }
    free(value);
    return settled != CT_OK ? settled : ct_fail(status, "%s", before);
}

/* ---- Notices -------------------------------------------------------------------------- */

ct_status claim_heed(ct_store *store, const struct mesh *mesh, const char *notice)
{
    uint64_t pid_space, number;
    char key[40];
    int rank, leader, pid, lives;

    if (*notice == '!')
        return ct_fail(CT_ERR_MISMATCH, "%s", notice + 1);
    if (sscanf(notice, "?%d %d %d %" SCNu64 " %" SCNu64 " %39s", &rank, &leader, &pid, &pid_space,
               &number, key)
        != 6)
        return ct_fail(CT_ERR_MISMATCH, "a rank speaks another version of libct: it says \"%.32s\"",
                       notice);
    lives = rank == mesh->rank ? number == peer_info_number()
                               : leader == mesh->rank && pid_space == peer_info_pid_space()
                                     && !process_has_ended(pid);
    return lives ? ct_store_set(store, key, "1", 1) : CT_OK;
}
