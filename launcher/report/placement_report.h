/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LAUNCHER_REPORT_PLACEMENT_REPORT_H
#define LAUNCHER_REPORT_PLACEMENT_REPORT_H

#include "launcher/workers/worker.h"
#include "runtime/util/text.h"

/* Writes the report of --report, which shows where each worker of this node runs.  All workers must
 * have started.  The report goes to stderr in one write(). */
void place_report(enum report_form form, const struct worker *workers,
                  const struct worker_env *env);

/* ---- For tests ------------------------------------------------------------------- */

struct place_row {
    int rank, local_rank, pid;
    const char *host;
    const char *gpu, *pci, *uuid; /* of the worker's GPU; "" if unknown or there is no GPU */
    char nodes[CPUS_TEXT], cpus[CPUS_TEXT];
    const char *threads, *transport; /* threads: value of OMP_NUM_THREADS, NULL if not set */
};

void place_report_text(struct text *out, const struct place_row *rows, int count);
void place_report_json(struct text *out, const struct place_row *rows, int count);

#endif
