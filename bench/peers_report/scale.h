/* SPDX-License-Identifier: Apache-2.0 */
/* scale.h - the figure of an operation without sizes: a line for each library, as long as its time
 * on a logarithmic scale. */
#ifndef PEERS_REPORT_SCALE_H
#define PEERS_REPORT_SCALE_H

#include "bench/peers_report/results.h"

void scale_draw(FILE *file, const struct row *row);

#endif
