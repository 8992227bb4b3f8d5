/* SPDX-License-Identifier: Apache-2.0 */
/* device_wait.c - who waits for a device is in a call, so it must hear what happens to its group.
 */
#include "runtime/group/device_wait.h"

#include "runtime/messaging/death_notice.h"
#include "runtime/messaging/protocol.h"
#include "runtime/util/clock.h"

#define SLICE_MS 5 /* between two looks at the group */

ct_status device_wait(ct_group *group, struct place place, void *mark, int64_t deadline,
                      const _Atomic int *given_up)
{
    const struct space *space = place.space;

    for (;;) {
        const int64_t soon = clock_ms() + SLICE_MS, until = soon < deadline ? soon : deadline;
        const ct_status status = mark ? space->wait_for(place.device, mark, until, given_up)
                                      : space->finish(place.device, until, given_up);

        if (status != CT_ERR_TIMEOUT || until == deadline)
            return status;
        mesh_look_for_deaths(group->mesh);
        messages_look(group->mesh);
        group_look_for_failure(group);
    }
}
