/* SPDX-License-Identifier: Apache-2.0 */
/* svg.h - the few things of which the figures are made, in pixels from the top left. */
#ifndef PEERS_REPORT_SVG_H
#define PEERS_REPORT_SVG_H

#include <stdio.h>

struct point {
    double x, y;
};

enum anchor { START, MIDDLE, END };

/* How a line is drawn. */
struct pen {
    const char *color;
    double width;
    int dashed;
};

void svg_open(FILE *file, int width, int height, const char *title);
void svg_close(FILE *file);

void svg_text(FILE *file, struct point at, enum anchor anchor, int size, const char *text);
void svg_line(FILE *file, struct point from, struct point to, const struct pen *pen);

/* With a dot at each point, unless dashed. */
void svg_curve(FILE *file, const struct point *points, int count, const struct pen *pen);

/* What is drawn between the two is seen inside of the rectangle only. */
void svg_clip(FILE *file, const char *id, struct point at, double width, double height);
void svg_unclip(FILE *file);

/* Pixels that the words take, nearly. */
double svg_width(const char *text, int size);

#endif
