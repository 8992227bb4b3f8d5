/* SPDX-License-Identifier: Apache-2.0 */
/* rounds.h - how the ranks of a group on one host wait for each other.
 *
 * A call is a number of rounds, the same on all ranks.  In a round each rank arrives once, and may
 * wait for other ranks to arrive.  What a rank writes before it arrives may be read by the ranks
 * that waited for it:
 *
 *     shm_group_next_slot(f, bytes);   a new slot (slots.h)
 *     memcpy(shm_group_own(f), ...);
 *     shm_group_publish(f);            this rank is in round n, for all to see
 *     shm_group_wait_all(f);           all ranks are in round n
 *     ... shm_group_slot(f, i) ...
 *
 * A round may have a gate, one rank that takes what all others show and answers all of them.  It
 * costs one round: the others do not wait for each other, and sleep once.
 *
 *     shm_group_next_slot(f, bytes);          of the larger of what is shown and the answer
 *     the others:                             the gate:
 *     memcpy(shm_group_own(f), ...);          shm_group_hold_gate(f, gate);
 *     shm_group_enter_gate(f, gate);          ... shm_group_slot(f, i) ...
 *     shm_group_pass_gate(f, gate);           memcpy(shm_group_answer(f), ...);
 *     ... shm_group_slot(f, gate) ...         shm_group_open_gate(f); */
#ifndef RUNTIME_GROUP_SHM_ROUNDS_H
#define RUNTIME_GROUP_SHM_ROUNDS_H

#include "runtime/util/error.h"

struct shm_group;

/* Each wait compares signatures: a rank that makes another call is CT_ERR_MISMATCH. CT_ERR_ABORTED:
 * the group has failed. */
ct_status shm_group_publish(struct shm_group *shm);
ct_status shm_group_wait(struct shm_group *shm, int rank);
ct_status shm_group_wait_all(struct shm_group *shm);

/* Ranks that need nothing from the others in a round call these instead of a wait.  They compare
 * the root with the ranks that have arrived.  If the ranks disagree, at least one finds it in that
 * round: the last rank that sends alone, or the last of ranks that each send to a rank that sends
 * elsewhere. */
ct_status shm_group_send_alone(struct shm_group *shm);
ct_status shm_group_glance(struct shm_group *shm, int rank);

/* A round with a gate instead, see above.  All ranks name the same one, or each may wait for the
 * other: a gate shows its line when it opens.  What the gate does before it opens counts against
 * the deadline of all. */
ct_status shm_group_enter_gate(struct shm_group *shm, int gate);
ct_status shm_group_pass_gate(struct shm_group *shm, int gate);
ct_status shm_group_hold_gate(struct shm_group *shm, int gate);
void shm_group_open_gate(struct shm_group *shm);

#endif
