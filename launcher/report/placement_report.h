/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LAUNCHER_REPORT_PLACEMENT_REPORT_H
#define LAUNCHER_REPORT_PLACEMENT_REPORT_H

#include "launcher/workers/worker.h"
#include "runtime/util/text.h"

/* --report: writes to stderr, in one write, where the workers of this node run; all have just
 * started. */
void place_report(enum report_form form, const struct worker *workers,
                  const struct worker_env *env);

/* ---- For tests ------------------------------------------------------------------- */

struct place_row {
    int rank, local_rank, pid;
    const char *host;
    const char *gpu, *pci, *uuid; /* as in the worker's list; "": unknown, or no GPU */
    char nodes[CPUS_TEXT], cpus[CPUS_TEXT];
    const char *threads, *transport; /* threads: OMP_NUM_THREADS, NULL: unset */
};

void place_report_text(struct text *out, const struct place_row *rows, int count);
void place_report_json(struct text *out, const struct place_row *rows, int count);

#endif
