/* SPDX-License-Identifier: Apache-2.0 */
/* figures.h - a picture for each operation and number of ranks: latency and bandwidth by size. */
#ifndef PEERS_REPORT_FIGURES_H
#define PEERS_REPORT_FIGURES_H

#include "bench/peers_report/results.h"

/* DIR/[net-]OPERATION-RANKS.svg.  0, or -1 with the name that can't be written in `name`: errno. */
int figures_write(const struct results *results, const char *dir, int net, char name[400]);

#endif
