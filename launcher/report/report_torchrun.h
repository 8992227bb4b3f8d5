/* SPDX-License-Identifier: Apache-2.0 */
/* report_torchrun.h - the report as torchrun lays it out, which log scrapers match. */
#ifndef LAUNCHER_REPORT_REPORT_TORCHRUN_H
#define LAUNCHER_REPORT_REPORT_TORCHRUN_H

#include "launcher/report/report.h"

/* Title, root cause, failures. */
void report_add_blocks(struct text *out, const struct failed_round *round);

/* What the sentence can't say, in a few lines: while restarts are left. */
void report_add_short(struct text *out, const struct failed_round *round);

/* Bytes of anybody's, without what a terminal would obey. */
void report_add_plain(struct text *out, const char *bytes, size_t size);

/* torchrun's: -signal */
static inline int report_exit_code(const struct worker *worker)
{
    return worker->how == CLD_EXITED ? worker->code : -worker->code;
}

#endif
