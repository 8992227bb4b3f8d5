/* SPDX-License-Identifier: Apache-2.0 */
/* scale.c - see scale.h. */
#include "bench/peers_report/scale.h"

#include <math.h>

#include "bench/peers_report/panel.h"
#include "bench/peers_report/svg.h"

#define LEFT 200.0
#define SCALE_WIDTH 640.0
#define FIRST 84.0 /* line of the first library */
#define LINE 26.0

static const struct pen grid = { "#e0e0e0", 1, 0 };

struct decades {
    double low, high; /* logarithms */
};

static double on_scale(const struct decades *d, double us)
{
    return LEFT + (log10(us) - d->low) / (d->high - d->low) * SCALE_WIDTH;
}

static struct decades decades_of(const struct row *row)
{
    struct decades d = { INFINITY, -INFINITY };

    for (int i = 0; i < LIBRARIES; i++)
        if (!isnan(row->times[i].p50)) {
            d.low = fmin(d.low, floor(log10(row->times[i].p50)));
            d.high = fmax(d.high, ceil(log10(row->times[i].p50)));
        }
    if (d.high <= d.low)
        d.high = d.low + 1;
    return d;
}

static void draw_grid(FILE *file, const struct decades *d, double bottom)
{
    for (double power = d->low; power <= d->high + 1e-9; power++) {
        const double x = on_scale(d, pow(10, power));
        char text[24];

        name_us(pow(10, power), text);
        svg_line(file, (struct point){ x, FIRST - LINE / 2 }, (struct point){ x, bottom }, &grid);
        svg_text(file, (struct point){ x, bottom + 16 }, MIDDLE, SMALL, text);
    }
}

static void draw_library(FILE *file, const struct decades *d, int library, double us, double y)
{
    const struct pen pen = pen_of(library);
    const struct point at = { on_scale(d, us), y };
    char text[24];

    snprintf(text, sizeof text, us < 10 ? "%.2f us" : "%.0f us", us);
    svg_text(file, (struct point){ LEFT - 12, y + 4 }, END, SMALL + 1,
             library_names[library].label);
    svg_line(file, (struct point){ LEFT, y }, at, &pen);
    svg_curve(file, &at, 1, &pen);
    svg_text(file, (struct point){ at.x + 10, y + 4 }, START, SMALL + 1, text);
}

void scale_draw(FILE *file, const struct row *row)
{
    const struct decades d = decades_of(row);
    double y = FIRST;

    for (int i = 0; i < LIBRARIES; i++)
        y += isnan(row->times[i].p50) ? 0 : LINE;
    draw_grid(file, &d, y - LINE / 2);
    y = FIRST;
    for (int i = 0; i < LIBRARIES; i++) {
        if (isnan(row->times[i].p50))
            continue;
        draw_library(file, &d, i, row->times[i].p50, y);
        y += LINE;
    }
    svg_text(file, (struct point){ LEFT, FIRST - LINE }, START, SMALL + 1,
             "time of a call, median (lower is better)");
}
