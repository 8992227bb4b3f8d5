/* SPDX-License-Identifier: Apache-2.0 */
/* death_notice.h - what ctrun tells in the control page, taken up by whoever waits.
 *
 * Looked for between any two turns of a wait and at the start of a call: one load while there
 * is none.  A death ends what waits for the dead, and breaks the groups it was in unless it
 * had finished the call that they are in (group_member_died()). */
#ifndef RUNTIME_MESSAGING_DEATH_NOTICE_H
#define RUNTIME_MESSAGING_DEATH_NOTICE_H

#include "runtime/transport/mesh.h"

void mesh_take_news(struct mesh *mesh);

static inline void mesh_look_for_news(struct mesh *mesh)
{
    if (control_deaths(&mesh->control) != atomic_load_explicit(&mesh->deaths, memory_order_relaxed))
        mesh_take_news(mesh);
}

/* Until when a failed call waits for ctrun's word of a member whose connection or process has
 * ended: one second from the first time that this is asked.  0: there is no such member, or no
 * ctrun that could tell, or the member sent a goodbye. */
int64_t mesh_word_due(struct mesh *mesh, const int *ranks, int size);

#endif
