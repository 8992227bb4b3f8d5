/* SPDX-License-Identifier: Apache-2.0 */
/* rounds.h - how the ranks of a group on one host wait for each other.
 *
 * A call consists of rounds, the same number on all ranks.  Each rank arrives once in a round, and
 * may then wait for other ranks to arrive.  A rank that waited for another one may read what that
 * rank wrote before it arrived:
 *
 *     shm_group_next_slot(f, bytes);   a new slot (slots.h)
 *     memcpy(shm_group_own(f), ...);
 *     shm_group_publish(f);            shows all ranks that this rank is in round n
 *     shm_group_wait_all(f);           waits until all ranks are in round n
 *     ... shm_group_slot(f, i) ...
 *
 * A round may have a gate: one rank that reads the data of all other ranks and answers all of them.
 * This takes only one round, in which the other ranks do not wait for each other and sleep once.
 *
 *     shm_group_next_slot(f, bytes);          bytes of the data or the answer, whichever is larger
 *     all ranks but the gate:                 the gate:
 *     memcpy(shm_group_own(f), ...);          shm_group_hold_gate(f, gate);
 *     shm_group_enter_gate(f, gate);          ... shm_group_slot(f, i) ...
 *     shm_group_pass_gate(f, gate);           memcpy(shm_group_answer(f), ...);
 *     ... shm_group_slot(f, gate) ...         shm_group_open_gate(f); */
#ifndef RUNTIME_GROUP_SHM_ROUNDS_H
#define RUNTIME_GROUP_SHM_ROUNDS_H

#include "runtime/util/error.h"

struct shm_group;

/* shm_group_publish() arrives in the next round.  The other two functions wait until one rank, or
 * all ranks, are in this round.  Each wait compares signatures and returns CT_ERR_MISMATCH if a
 * rank makes another call.  CT_ERR_ABORTED means that the group has failed. */
ct_status shm_group_publish(struct shm_group *shm);
ct_status shm_group_wait(struct shm_group *shm, int rank);
ct_status shm_group_wait_all(struct shm_group *shm);

/* A rank that needs nothing from other ranks in a round calls one of these instead of a wait.  The
 * root of a call calls shm_group_send_alone(); a rank that sends to the root calls
 * shm_group_glance().  Both compare the call with ranks that have already arrived.  If the ranks
 * disagree about the root, at least one of them notices in that round: the last rank that sends
 * alone, or the last of several ranks that each send to a rank that itself sends elsewhere. */
ct_status shm_group_send_alone(struct shm_group *shm);
ct_status shm_group_glance(struct shm_group *shm, int rank);

/* A round with a gate (see the top of this file).  All ranks must name the same gate: a gate shows
 * its line only when it opens, so two gates would wait for each other.  The time that the gate
 * takes before it opens counts against the deadline of all ranks. */
ct_status shm_group_enter_gate(struct shm_group *shm, int gate);
ct_status shm_group_pass_gate(struct shm_group *shm, int gate);
ct_status shm_group_hold_gate(struct shm_group *shm, int gate);
void shm_group_open_gate(struct shm_group *shm);
/* Returns 1 if ranks share processors and the group has no tree.  A gate costs no more than a wait
 * for all ranks then. */
int shm_group_shares_processors(const struct shm_group *shm);

#endif
