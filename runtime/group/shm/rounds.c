/* SPDX-License-Identifier: Apache-2.0 */
/* rounds.c - how the ranks of one host meet in a round.
 *
 * Each rank has SHM_LINES lines, which successive rounds use in turn.  Only the owner writes a
 * line: the signature of its call, a small payload, and last the number of the round.  Round
 * numbers have 64 bits and only grow, so no line is ever reset, and a late reader can't mistake an
 * old round for a new one.
 *
 * A rank that waits for no other rank, such as the root of a broadcast, may be SHM_AHEAD rounds
 * ahead: it arrives in round n when all ranks are in round n-SHM_AHEAD.  So a late rank does not
 * hold up a root at once, and ranks that share a processor change less often.  Each wait compares
 * signatures.  So if a rank makes another call, the first rank that waits for it notices, at the
 * latest SHM_AHEAD rounds later.  A rank that waits for no other rank compares signatures with
 * ranks that have arrived: shm_group_send_alone() and shm_group_glance().
 *
 * In a round with a gate the other ranks wait for the gate's line alone.  The gate shows its line
 * when it opens, so the line can carry the answer.
 *
 * Cost of a round: each rank writes one line and reads p-1 lines.  That is the fastest way while
 * each rank has a processor.  The ranks of a large group also count their arrivals, and a rank that
 * waits for all ranks waits for that count (tree.c). */
#include "runtime/group/shm/rounds.h"

#include "runtime/fault/fault_injection.h"
#include "runtime/group/shm/shm_group_internal.h"
#include "runtime/group/shm/shm_wait.h"

/* ---- Waiting ---------------------------------------------------------------------- */

/* Waits until `rank` is in `round`, which is the current round or an earlier one.  Then compares
 * the call of `rank` in that round with ours. */
static ct_status round_wait_for(struct shm_group *f, int rank, uint64_t round)
{
    const ct_status status = shm_wait_until(f, &shm_line(f, rank, round)->round, round, rank);

    return status == CT_OK ? shm_compare(f, rank, round) : status;
}

static ct_status round_wait_for_lines(struct shm_group *f, uint64_t round)
{
    ct_status status = CT_OK;

    for (int i = 1; i < f->size && status == CT_OK; i++)
        status = round_wait_for(f, (f->rank + i) % f->size, round);
    return status;
}

ct_status shm_wait_all_in(struct shm_group *f, uint64_t round)
{
    ct_status status;

    if (f->all_in >= round)
        return CT_OK;
    status = f->tree ? shm_tree_wait(f, round) : round_wait_for_lines(f, round);
    if (status == CT_OK)
        f->all_in = round;
    return status;
}

/* Returns 1 if all ranks are in that round.  Does not compare their calls. */
static int round_has_all(const struct shm_group *f, uint64_t round)
{
    for (int i = 0; i < f->size; i++)
        if (!shm_has_arrived(f, i, round))
            return 0;
    return 1;
}

/* Mostly all ranks are only a few rounds behind.  Then the next rounds need no look at their lines,
 * which come from the caches of other processors. */
ct_status shm_wait_for_line(struct shm_group *f)
{
    const uint64_t ahead = (uint64_t)shm_ahead(f->size);
    const uint64_t next = f->round + 1;

    if (next <= f->all_in + ahead)
        return CT_OK;
    if (ahead > 1 && round_has_all(f, next - ahead / 2))
        return shm_wait_all_in(f, next - ahead / 2);
    return shm_wait_all_in(f, next - ahead);
}

/* ---- Arriving --------------------------------------------------------------------- */

/* Begins the next round: writes the signature into this rank's line, but does not show
 * the line yet. */
static ct_status round_begin(struct shm_group *f)
{
    const ct_status status = shm_wait_for_line(f);

    if (status != CT_OK)
        return status;
    f->round++;
    shm_line(f, f->rank, f->round)->signature = f->calls[f->round % SHM_LINES] = f->signature;
    wait_note_processor(&f->mesh->waiter);
    return CT_OK;
}

static void round_show_line(const struct shm_group *f)
{
    atomic_store_explicit(&shm_line(f, f->rank, f->round)->round, f->round, memory_order_release);
    bell_fence();
    shm_arrived(f);
}

/* Counts this rank's arrival in the tree, if the group has one.  The caller shows its line only
 * afterwards, so a rank that dies in between is still found missing.  gate: the rank that waits for
 * all others, or NO_RANK if all ranks wait for all. */
static ct_status round_count(const struct shm_group *f, int gate)
{
    return f->tree ? shm_tree_count(f, gate) : CT_OK;
}

static ct_status round_arrive(struct shm_group *f, int gate)
{
    ct_status status = round_begin(f);

    if (status != CT_OK)
        return status;
    status = round_count(f, gate);
    if (status == CT_OK)
        round_show_line(f);
    fault_pass(f->mesh->faults);
    return status;
}

/* ---- A round ---------------------------------------------------------------------- */

ct_status shm_group_publish(struct shm_group *f)
{
    return round_arrive(f, NO_RANK);
}

ct_status shm_group_wait(struct shm_group *f, int rank)
{
    return round_wait_for(f, rank, f->round);
}

ct_status shm_group_wait_all(struct shm_group *f)
{
    return shm_wait_all_in(f, f->round);
}

/* One atomic exchange is cheaper than reading all lines: these are in the caches of ranks that will
 * soon write them. */
ct_status shm_group_send_alone(struct shm_group *f)
{
    const uint64_t here = f->round * SHM_GROUP_MOST + (uint64_t)f->rank;
    const uint64_t last = atomic_exchange(&f->head->sole_sender[f->round % SHM_LINES], here);

    return last / SHM_GROUP_MOST == f->round
               ? shm_compare(f, (int)(last % SHM_GROUP_MOST), f->round)
               : CT_OK;
}

ct_status shm_group_glance(struct shm_group *f, int rank)
{
    const struct shm_line *line = shm_line(f, rank, f->round);

    return atomic_load_explicit(&line->round, memory_order_acquire) == f->round
               ? shm_compare(f, rank, f->round)
               : CT_OK;
}

/* ---- A round with a gate ---------------------------------------------------------- */

ct_status shm_group_enter_gate(struct shm_group *f, int gate)
{
    return round_arrive(f, gate);
}

ct_status shm_group_pass_gate(struct shm_group *f, int gate)
{
    ct_status status;

    f->gate = gate;
    status = round_wait_for(f, gate, f->round);
    f->gate = NO_RANK;
    if (status == CT_OK) /* the gate has seen all ranks in this round */
        f->all_in = f->round;
    return status;
}

ct_status shm_group_hold_gate(struct shm_group *f, int gate)
{
    ct_status status = round_begin(f);

    if (status != CT_OK)
        return status;
    status = round_count(f, gate);
    if (status == CT_OK)
        status = shm_wait_all_in(f, f->round);
    fault_pass(f->mesh->faults);
    return status;
}

void shm_group_open_gate(struct shm_group *f)
{
    round_show_line(f);
}

int shm_group_shares_processors(const struct shm_group *f)
{
    return f->mesh->waiter.spins == 0 && !f->tree;
}
