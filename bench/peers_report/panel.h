/* SPDX-License-Identifier: Apache-2.0 */
/* panel.h - one of the two diagrams of a figure: its axes, and a curve for each library. */
#ifndef PEERS_REPORT_PANEL_H
#define PEERS_REPORT_PANEL_H

#include "bench/peers_report/results.h"
#include "bench/peers_report/svg.h"

#define TOP 70.0
#define PANEL_HEIGHT 300.0
#define PANEL_WIDTH 400.0
#define SMALL 11 /* letters */

/* Rows of one operation and number of ranks, by bytes. */
struct series {
    const struct row *rows;
    int count;
};

struct pen pen_of(int library);

/* "10 us", "1 ms". */
void name_us(double us, char text[24]);

/* The time of a call, both axes logarithmic, or the bus bandwidth. */
void panel_draw(FILE *file, const struct series *series, double left, int bandwidth);

#endif
