/* SPDX-License-Identifier: Apache-2.0 */
/* init.c - the public calls that make a root group.  They give the group, whose folder lies below,
 * its collectives (group_extension.h). */
#include "collectives/core/algorithm_overrides.h"
#include "collectives/core/internal_collectives.h"
#include "collectives/device/device_call.h"
#include "runtime/group/group_extension.h"
#include "runtime/p2p/device_staging.h"

static const struct group_extension collectives = {
    .open = choices_open,
    .drop = coalesce_drop,
    .close = device_end_group,
    .release = device_staging_close,
    .gather = agree_gather,
    .max = agree_max,
};

ct_status ct_init_process_group(const ct_init_options *options)
{
    return init_process_group(options, &collectives);
}

ct_status ct_create_group(ct_store *store, int rank, int size, const ct_group_options *options,
                          ct_group **group)
{
    return create_group(store, rank, size, options, &collectives, group);
}
