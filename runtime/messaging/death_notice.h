/* SPDX-License-Identifier: Apache-2.0 */
/* death_notice.h - handles deaths that ctrun reports in the control page.
 *
 * A thread looks for death notices at the start of a call and between any two turns of a wait.  The
 * check costs one load if no new notice has come.  A death ends the requests that wait for the dead
 * rank.  It also fails each group of the dead rank, from the first call that the dead rank had not
 * finished (group_member_died()). */
#ifndef RUNTIME_MESSAGING_DEATH_NOTICE_H
#define RUNTIME_MESSAGING_DEATH_NOTICE_H

#include "runtime/transport/mesh.h"

void mesh_take_death_notices(struct mesh *mesh);

static inline void mesh_look_for_deaths(struct mesh *mesh)
{
    if (control_deaths(&mesh->control) != atomic_load_explicit(&mesh->deaths, memory_order_relaxed))
        mesh_take_death_notices(mesh);
}

/* A member's connection or process may end before ctrun's notice of the death comes.  Returns the
 * time (ms of clock_ms()) until which a failed call waits for such notices.  The first call of this
 * function for a member sets the time to one second later.  Returns 0 if no notice is expected: no
 * member has ended, or the ended member has no ctrun or sent a goodbye. */
int64_t death_notice_due(struct mesh *mesh, const int *ranks, int size);

#endif
