/* SPDX-License-Identifier: Apache-2.0 */
/* init.c - the public calls that create a root group.  They pass a table of the collectives to the
 * group (group_extension.h), since runtime/ must not depend on collectives/. */
#include <stdlib.h>
#include <string.h>

#include "collectives/operations/internal_collectives.h"
#include "collectives/device/device_call.h"
#include "collectives/mpi/mpi_group.h"
#include "collectives/read_overrides.h"
#include "runtime/group/group_extension.h"
#include "runtime/p2p/device_staging.h"

#define COLLECTIVES \
    .drop = coalesce_drop, .close = device_end_group, .gather = agree_gather, .max = agree_max

static ct_status open_cpu(ct_group *group, const char *overrides)
{
    group->on_device.executor = &device_executor;
    return choices_open(group, overrides);
}

static ct_status open_mpi(ct_group *group, const char *overrides)
{
    const ct_status status = open_cpu(group, overrides);

    return status == CT_OK ? mpi_group_open(group) : status;
}

static void release_mpi(ct_group *group)
{
    device_staging_close(group);
    mpi_group_release(group);
}

static const struct group_extension collectives = { .open = open_cpu,
                                                    .release = device_staging_close,
                                                    COLLECTIVES };
static const struct group_extension collectives_by_mpi = {
    .start = mpi_group_start, .open = open_mpi, .release = release_mpi, COLLECTIVES
};

static const struct {
    const char *name;
    const struct group_extension *extension;
} backends[] = {
    { "cpu", &collectives },
    { "gloo", &collectives }, /* the backend "cpu" under PyTorch's name */
    { "mpi", &collectives_by_mpi },
    { "cuda", NULL }, /* names of torch.distributed, which libct does not have */
    { "nccl", NULL },
};

/* Finds the backend that the options name, or else CT_BACKEND.  The default is "cpu".  *extension
 * is the backend's table. */
static ct_status find_backend(const ct_init_options *options,
                              const struct group_extension **extension)
{
    const char *variable = getenv("CT_BACKEND");
    const int is_wished = options && options->size == sizeof *options && options->backend;
    const char *name = is_wished ? options->backend : variable && *variable ? variable : "cpu";

    for (size_t i = 0; i < sizeof backends / sizeof *backends; i++)
        if (!strcmp(backends[i].name, name)) {
            *extension = backends[i].extension;
            return *extension ? CT_OK
                              : ct_fail(CT_ERR_UNSUPPORTED,
                                        "ct_init_process_group: backend \"%s\" is not built in; "
                                        "there are \"cpu\" and \"mpi\"",
                                        name);
        }
    return ct_fail(CT_ERR_INVALID,
                   "ct_init_process_group: backend \"%s\" is unknown%s; there are \"cpu\" and "
                   "\"mpi\"",
                   name, is_wished ? "" : " (CT_BACKEND)");
}

ct_status ct_init_process_group(const ct_init_options *options)
{
    const struct group_extension *extension = NULL;
    const ct_status status = find_backend(options, &extension);

    return status == CT_OK ? init_process_group(options, extension) : status;
}

ct_status ct_create_group(ct_store *store, int rank, int size, const ct_group_options *options,
                          ct_group **group)
{
    return create_group(store, rank, size, options, &collectives, group);
}
