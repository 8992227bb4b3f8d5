/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LAUNCHER_REPORT_GPU_TOPOLOGY_REPORT_H
#define LAUNCHER_REPORT_GPU_TOPOLOGY_REPORT_H

#include "launcher/placement/placement.h"
#include "runtime/util/text.h"

/* Fills in placement->links for the GPUs of the workers.  Loads NVIDIA's management library (NVML).
 * `root` is the folder that has sys/, normally "". */
void links_report_read(struct placement *placement, const char *root);

/* Adds the connections between the GPUs of this node's workers, which --report shows below its
 * rows.  Adds nothing if the workers have fewer than two GPUs.  `base` is the rank of the first
 * worker. */
void links_report_text(struct text *out, const struct placement *placement, int base,
                       const char *host);
void links_report_json(struct text *out, const struct placement *placement, int base,
                       const char *host);

#endif
