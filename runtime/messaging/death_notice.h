/* SPDX-License-Identifier: Apache-2.0 */
/* death_notice.h - deaths that ctrun reports in the control page.
 *
 * A thread looks for them between any two turns of a wait and at the start of a call; that is one
 * load while there is none.  A death ends the requests that wait for the dead rank, and fails its
 * groups from the call on that it had not finished (group_member_died()). */
#ifndef RUNTIME_MESSAGING_DEATH_NOTICE_H
#define RUNTIME_MESSAGING_DEATH_NOTICE_H

#include "runtime/transport/mesh.h"

void mesh_take_death_notices(struct mesh *mesh);

static inline void mesh_look_for_deaths(struct mesh *mesh)
{
    if (control_deaths(&mesh->control) != atomic_load_explicit(&mesh->deaths, memory_order_relaxed))
        mesh_take_death_notices(mesh);
}

/* Until when a failed call waits for the notice of a member whose connection or process has ended:
 * for one second after the first call of this function.  0: there is no such member, or it has no
 * ctrun, or it sent a goodbye. */
int64_t death_notice_due(struct mesh *mesh, const int *ranks, int size);

#endif
