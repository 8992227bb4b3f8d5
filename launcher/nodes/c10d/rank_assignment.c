/* SPDX-License-Identifier: Apache-2.0 */
/* rank_assignment.c - torchrun's exchange: each node says what it has, rank 0 says who is who.
 *
 *   MASTER_ADDR, MASTER_PORT          rank 0's store for the workers
 *   torchelastic/role_info/<g>        each node: role and number of workers, as JSON
 *   torchelastic/assigned_ranks/<g>   rank 0: [first rank, world, first in role, of role]
 *
 * Rank 0 publishes its store in every round and before all else, so who finds its
 * assignment finds the store too.  torchrun's rank 0 does so only when it first becomes
 * that: then the address is in an earlier round. */
#include "launcher/nodes/c10d/rank_assignment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/nodes/c10d/role_info.h"
#include "launcher/nodes/c10d/round_keys.h"
#include "launcher/nodes/nodes.h"
#include "runtime/util/clock.h"

/* ---- Rank 0 ------------------------------------------------------------------------ */

/* Names of this round in one block: an array of pointers, then the strings. */
static char **keys_of(const struct c10d_session *s, const char *what)
{
    const size_t count = s->world.count, each = 400;
    char **keys = malloc(count * (sizeof *keys + each));

    for (size_t i = 0; keys && i < count; i++) {
        char name[64];

        keys[i] = (char *)(keys + count) + i * each;
        snprintf(name, sizeof name, "torchelastic/%s/%zu", what, i);
        c10d_key(s, s->state.round, name, keys[i], each);
    }
    return keys;
}

/* Nodes in order of rank: the sums of those before, and of those before with the same role. */
static void count_ranks(const struct role_info *infos, size_t count, size_t which, int sums[4])
{
    memset(sums, 0, 4 * sizeof *sums);
    for (size_t i = 0; i < count; i++) {
        const int same = !strcmp(infos[i].role, infos[which].role);

        sums[0] += i < which ? infos[i].workers : 0;
        sums[1] += infos[i].workers;
        sums[2] += i < which && same ? infos[i].workers : 0;
        sums[3] += same ? infos[i].workers : 0;
    }
}

static enum c10d_end set_assignments(struct c10d_session *s, const struct role_info *infos)
{
    const size_t count = s->world.count;
    char **keys = keys_of(s, "assigned_ranks");
    char(*texts)[64] = malloc(count * sizeof *texts);
    const void **values = malloc(count * sizeof *values);
    size_t *sizes = malloc(count * sizeof *sizes);
    ct_status status = CT_ERR_NOMEM;

    if (keys && texts && values && sizes) {
        for (size_t i = 0; i < count; i++) {
            int sums[4];

            count_ranks(infos, count, i, sums);
            sizes[i] = (size_t)snprintf(texts[i], sizeof *texts, "[%d, %d, %d, %d]", sums[0],
                                        sums[1], sums[2], sums[3]);
            values[i] = texts[i];
        }
        status = ct_store_multi_set(s->store, (const char *const *)keys, (int)count, values, sizes);
    }
    free(keys);
    free(texts);
    free(values);
    free(sizes);
    return status == CT_OK ? C10D_DONE : c10d_store_lost(s);
}

static enum c10d_end read_infos(struct c10d_session *s, struct role_info *infos, char **keys)
{
    const int count = (int)s->world.count;
    void **values = calloc((size_t)count, sizeof *values);
    size_t *sizes = calloc((size_t)count, sizeof *sizes);
    enum c10d_end end = C10D_DONE;
    int64_t world = 0;

    if (!values || !sizes
        || ct_store_multi_get(s->store, (const char *const *)keys, count, -1, values, sizes)
               != CT_OK)
        end = c10d_store_lost(s);
    for (int i = 0; i < count && values; i++) {
        if (end == C10D_DONE && role_info_read(values[i], &infos[i]) < 0) {
            snprintf(s->why, sizeof s->why,
                     "node %d (%.60s) tells of its workers in words that "
                     "are not understood: %.100s",
                     i, s->world.nodes[i].addr, (const char *)values[i]);
            end = C10D_LOST;
        }
        world += end == C10D_DONE ? infos[i].workers : 0;
        free(values[i]);
    }
    if (end == C10D_DONE && world > WORLD_MOST) {
        snprintf(s->why, sizeof s->why, "%lld workers are more than a job can have",
                 (long long)world);
        end = C10D_LOST;
    }
    free(values);
    free(sizes);
    return end;
}

static enum c10d_end give_ranks(struct c10d_session *s, int64_t timeout)
{
    struct role_info *infos = malloc(s->world.count * sizeof *infos);
    char **keys = keys_of(s, "role_info");
    enum c10d_end end = C10D_LOST;

    if (!infos || !keys)
        snprintf(s->why, sizeof s->why, "out of memory for %zu nodes", s->world.count);
    else
        end = c10d_wait_for(s, (const char *const *)keys, (int)s->world.count, "another node",
                            timeout);
    if (end == C10D_DONE)
        end = read_infos(s, infos, keys);
    if (end == C10D_DONE)
        end = set_assignments(s, infos);
    free(infos);
    free(keys);
    return end;
}

static enum c10d_end publish_master(struct c10d_session *s, const struct c10d_offer *offer)
{
    char port[16];
    enum c10d_end end = c10d_publish(s, "ct/generation", offer->generation);

    snprintf(port, sizeof port, "%d", offer->port);
    if (end == C10D_DONE)
        end = c10d_publish(s, "MASTER_ADDR", offer->address);
    return end == C10D_DONE ? c10d_publish(s, "MASTER_PORT", port) : end;
}

/* ---- The others --------------------------------------------------------------------- */

/* 1: the round has an address and a port; 0: not (yet); -1: none that could be. */
static int master_of(struct c10d_session *s, int64_t round, struct c10d_assignment *got)
{
    char *address = c10d_peek(s, round, "MASTER_ADDR");
    char *port = address ? c10d_peek(s, round, "MASTER_PORT") : NULL;
    int found = port != NULL;

    if (found
        && (!*address || strlen(address) >= sizeof got->address || value_int(port, &got->port) < 0
            || got->port < 1 || got->port > 65535))
        found = -1;
    if (found > 0)
        snprintf(got->address, sizeof got->address, "%s", address);
    free(address);
    free(port);
    return found;
}

/* torchrun's rank 0 publishes when it becomes that: in this round or an earlier one. */
static int look_for_master(struct c10d_session *s, struct c10d_assignment *got)
{
    const int found = master_of(s, s->state.round, got);

    if (found)
        return found;
    for (int64_t round = s->state.round - 1; round >= 0 && round > s->state.round - 64; round--)
        if (master_of(s, round, got) > 0 && !strcmp(got->address, s->world.nodes[0].addr))
            return 1;
    return 0;
}

static enum c10d_end find_master(struct c10d_session *s, struct c10d_assignment *got,
                                 int64_t timeout)
{
    const int64_t start = clock_us();
    enum c10d_end end;
    int found;

    while ((found = look_for_master(s, got)) == 0) {
        if (clock_us() - start > timeout) {
            snprintf(s->why, sizeof s->why, "rank 0's node %.60s does not say where its store is",
                     s->world.nodes[0].addr);
            return C10D_LATE;
        }
        if (s->rest(s->arg, 20))
            return C10D_STOPPED;
        if ((end = c10d_pulse(s)) != C10D_DONE)
            return end;
        if (s->state.closed || !c10d_world_stands(s))
            return C10D_CHANGED;
    }
    if (found > 0)
        return C10D_DONE;
    snprintf(s->why, sizeof s->why, "rank 0's node %.60s says that its store is where none can be",
             s->world.nodes[0].addr);
    return C10D_LOST;
}

static void find_generation(struct c10d_session *s, struct c10d_assignment *got)
{
    char *name = c10d_peek(s, s->state.round, "ct/generation");

    got->by_ctrun = name != NULL;
    if (name)
        node_text(got->generation, sizeof got->generation, name, strlen(name));
    else
        snprintf(got->generation, sizeof got->generation, "round-%lld", (long long)s->state.round);
    free(name);
}

/* Are `workers` ranks from `base` on among those of the world? */
static int fits(int base, int workers, int world)
{
    return base >= 0 && world <= WORLD_MOST && base <= world - workers;
}

static enum c10d_end take_ranks(struct c10d_session *s, int rank, const struct c10d_offer *offer,
                                struct c10d_assignment *got)
{
    char name[64], key[400], *text;
    const char *keys[] = { key };
    enum c10d_end end;
    int fields;

    snprintf(name, sizeof name, "torchelastic/assigned_ranks/%d", rank);
    c10d_key(s, s->state.round, name, key, sizeof key);
    end = c10d_wait_for(s, keys, 1, "the node of rank 0", offer->timeout);
    if (end != C10D_DONE)
        return end;
    text = c10d_peek(s, s->state.round, name);
    if (!text)
        return c10d_store_lost(s);
    fields = sscanf(text, "[%d, %d, %d, %d]", &got->base, &got->world, &got->role_base,
                    &got->role_world);
    free(text);
    if (fields == 4 && fits(got->base, offer->workers, got->world)
        && fits(got->role_base, offer->workers, got->role_world))
        return C10D_DONE;
    snprintf(s->why, sizeof s->why, "rank 0's node gives ranks that are not understood");
    return C10D_LOST;
}

static enum c10d_end tell_role(struct c10d_session *s, int rank, const struct c10d_offer *offer)
{
    char name[64], text[ROLE_INFO_TEXT];

    snprintf(name, sizeof name, "torchelastic/role_info/%d", rank);
    role_info_print(offer->role, rank, offer->workers, text);
    return c10d_publish(s, name, text);
}

enum c10d_end c10d_assign(struct c10d_session *s, const struct c10d_offer *offer,
                          struct c10d_assignment *got)
{
    const int rank = c10d_my_rank(s);
    enum c10d_end end = C10D_DONE;

    if (rank == 0)
        end = publish_master(s, offer);
    if (offer->identical) {
        got->base = got->role_base = rank * offer->workers;
        got->world = got->role_world = (int)s->world.count * offer->workers;
    } else {
        if (end == C10D_DONE)
            end = tell_role(s, rank, offer);
        if (end == C10D_DONE && rank == 0)
            end = give_ranks(s, offer->timeout);
        if (end == C10D_DONE)
            end = take_ranks(s, rank, offer, got);
    }
    if (end == C10D_DONE)
        end = find_master(s, got, offer->timeout);
    if (end == C10D_DONE)
        find_generation(s, got);
    return end;
}
