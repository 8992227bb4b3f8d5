/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LAUNCHER_REPORT_GPU_TOPOLOGY_REPORT_H
#define LAUNCHER_REPORT_GPU_TOPOLOGY_REPORT_H

#include "launcher/placement/placement.h"
#include "runtime/util/text.h"

/* Fills in ->links for the workers' GPUs.  Loads the driver's management library. */
void links_report_read(struct placement *placement, const char *root);

/* Adds below the rows of --report what connects the GPUs of this node's workers; adds nothing if
 * they have fewer than two.  base: the rank of the first worker. */
void links_report_text(struct text *out, const struct placement *placement, int base,
                       const char *host);
void links_report_json(struct text *out, const struct placement *placement, int base,
                       const char *host);

#endif
