/* SPDX-License-Identifier: Apache-2.0 */
/* figures.c - a picture for each operation and number of ranks.
 *
 * Two panels over one axis of sizes: the time of a call, both axes logarithmic, and the bus
 * bandwidth.  The legend is below them, in the order of the table; ours is drawn last, above the
 * others.  What has one size only, as a barrier, has a scale instead: a line for each library, as
 * long as its time on a logarithmic scale. */
#include "bench/peers_report/results.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

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

/* ---- A panel ----------------------------------------------------------------------------- */

#define MOST_POINTS 64

static const struct pen grid = { "#e0e0e0", 1, 0 }, frame = { "#757575", 1, 0 };

/* From a value to a pixel. */
struct axis {
    double low, high; /* values, or their logarithms to the base of 2 or 10 */
    double from, to;  /* pixels */
};

struct panel {
    const struct series *series;
    double left;
    int bandwidth;
    struct axis x, y;
};

static double on_axis(const struct axis *axis, double value)
{
    return axis->from + (value - axis->low) / (axis->high - axis->low) * (axis->to - axis->from);
}

/* What a panel shows of a row; NAN: nothing. */
static double value_of(const struct panel *p, const struct row *row, int library)
{
    const double us = row->times[library].p50;

    return p->bandwidth ? bandwidth_of(row, us) : us;
}

/* ---- Axes ---------------------------------------------------------------------- */

static void name_bytes(size_t bytes, char text[24])
{
    static const char *const units[] = { "", "K", "M", "G" };
    int unit = 0;

    for (; unit < 3 && bytes >= 1024 && bytes % 1024 == 0; unit++)
        bytes /= 1024;
    snprintf(text, 24, "%zu%s", bytes, units[unit]);
}

/* "10 us", "1 ms". */
static void name_us(double us, char text[24])
{
    if (us >= 1e6)
        snprintf(text, 24, "%g s", us / 1e6);
    else if (us >= 1e3)
        snprintf(text, 24, "%g ms", us / 1e3);
    else
        snprintf(text, 24, "%g us", us);
}

/* At each size a line, and a word where there is room for it. */
static void draw_sizes(FILE *file, const struct panel *p)
{
    double free_from = 0;

    for (int i = 0; i < p->series->count; i++) {
        const double x = on_axis(&p->x, log2((double)p->series->rows[i].bytes));
        char text[24];
        double half;

        name_bytes(p->series->rows[i].bytes, text);
        half = svg_width(text, SMALL) / 2;
        svg_line(file, (struct point){ x, TOP }, (struct point){ x, TOP + PANEL_HEIGHT }, &grid);
        if (x - half < free_from)
            continue;
        svg_text(file, (struct point){ x, TOP + PANEL_HEIGHT + 16 }, MIDDLE, SMALL, text);
        free_from = x + half + 4;
    }
    svg_text(file, (struct point){ p->left + PANEL_WIDTH / 2, TOP + PANEL_HEIGHT + 34 }, MIDDLE,
             SMALL, "bytes");
}

static void draw_tick(FILE *file, const struct panel *p, double at, const char *text)
{
    const double y = on_axis(&p->y, at);

    svg_line(file, (struct point){ p->left, y }, (struct point){ p->left + PANEL_WIDTH, y }, &grid);
    svg_text(file, (struct point){ p->left - 6, y + 4 }, END, SMALL, text);
}

static void draw_decades(FILE *file, const struct panel *p)
{
    for (double power = p->y.low; power <= p->y.high + 1e-9; power++) {
        char text[24];

        name_us(pow(10, power), text);
        draw_tick(file, p, power, text);
    }
}

/* 1, 2 or 5 times a power of ten, so that there are four to eight of them. */
static double step_of(double high)
{
    const double rough = high / 6, power = pow(10, floor(log10(rough))), digit = rough / power;

    return power * (digit < 1.5 ? 1 : digit < 3.5 ? 2 : digit < 7.5 ? 5 : 10);
}

static void draw_steps(FILE *file, const struct panel *p)
{
    const double step = step_of(p->y.high);

    for (int i = 0; i * step <= p->y.high * (1 + 1e-9); i++) {
        char text[24];

        snprintf(text, sizeof text, "%g", i * step);
        draw_tick(file, p, i * step, text);
    }
}

/* ---- Ranges --------------------------------------------------------------------- */

static void find_range(const struct panel *p, int first, int last, double *low, double *high)
{
    *low = INFINITY;
    *high = 0;
    for (int i = 0; i < p->series->count; i++)
        for (int library = first; library <= last; library++) {
            const double value = value_of(p, &p->series->rows[i], library);

            if (isnan(value))
                continue;
            *low = fmin(*low, value);
            *high = fmax(*high, value);
        }
}

/* The limit of a bandwidth may be far above what anybody reaches: up to twice that is shown. */
static void set_axes(struct panel *p)
{
    const struct series *s = p->series;
    double low, high, limit_low, limit_high;

    find_range(p, LIBCT, LIMIT - 1, &low, &high);
    find_range(p, LIMIT, LIMIT, &limit_low, &limit_high);
    p->x = (struct axis){ log2((double)s->rows[0].bytes), log2((double)s->rows[s->count - 1].bytes),
                          p->left + 14, p->left + PANEL_WIDTH - 14 };
    if (p->bandwidth)
        p->y = (struct axis){ 0, 1.05 * fmin(2 * high, fmax(high, limit_high)), 0, 0 };
    else
        p->y = (struct axis){ floor(log10(fmin(low, limit_low))), ceil(log10(high)), 0, 0 };
    if (p->y.high <= p->y.low)
        p->y.high = p->y.low + 1;
    p->y.from = TOP + PANEL_HEIGHT;
    p->y.to = TOP;
}

/* ---- Curves ---------------------------------------------------------------------- */

static struct pen pen_of(int library)
{
    return (struct pen){ library_names[library].color, library < GLOO ? 3 : 1.6, library == LIMIT };
}

/* Where a size is missing the curve goes on behind it. */
static void draw_curve(FILE *file, const struct panel *p, int library)
{
    const struct pen pen = pen_of(library);
    struct point points[MOST_POINTS];
    int count = 0;

    for (int i = 0; i < p->series->count && count < MOST_POINTS; i++) {
        const struct row *row = &p->series->rows[i];
        const double value = value_of(p, row, library);

        if (isnan(value))
            continue;
        points[count++] = (struct point){ on_axis(&p->x, log2((double)row->bytes)),
                                          on_axis(&p->y, p->bandwidth ? value : log10(value)) };
    }
    if (count > 0)
        svg_curve(file, points, count, &pen);
}

/* The time of a call, both axes logarithmic, or the bus bandwidth. */
static void panel_draw(FILE *file, const struct series *series, double left, int bandwidth)
{
    struct panel p = { .series = series, .left = left, .bandwidth = bandwidth };
    const double right = left + PANEL_WIDTH, bottom = TOP + PANEL_HEIGHT;

    set_axes(&p);
    svg_text(file, (struct point){ left, TOP - 10 }, START, SMALL + 1,
             bandwidth ? "bus bandwidth, GB/s (higher is better)"
                       : "time of a call, median (lower is better)");
    draw_sizes(file, &p);
    if (bandwidth)
        draw_steps(file, &p);
    else
        draw_decades(file, &p);
    svg_line(file, (struct point){ left, TOP }, (struct point){ left, bottom }, &frame);
    svg_line(file, (struct point){ left, bottom }, (struct point){ right, bottom }, &frame);
    svg_clip(file, bandwidth ? "right" : "left", (struct point){ left, TOP }, PANEL_WIDTH,
             PANEL_HEIGHT);
    for (int library = LIBRARIES - 1; library >= 0; library--)
        draw_curve(file, &p, library);
    svg_unclip(file);
}

/* ---- A scale ----------------------------------------------------------------------------- */

#define LEFT 200.0
#define SCALE_WIDTH 640.0
#define FIRST 84.0 /* line of the first library */
#define LINE 26.0

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

static void scale_draw(FILE *file, const struct row *row)
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

/* ---- A figure ---------------------------------------------------------------------------- */

#define WIDTH 1040
#define HEIGHT 460
#define SCALE_HEIGHT 350
#define LARGE 16

static int has_curve(const struct series *series, int library)
{
    for (int i = 0; i < series->count; i++)
        if (!isnan(series->rows[i].times[library].p50))
            return 1;
    return 0;
}

static void draw_legend(FILE *file, const struct series *series)
{
    double x = 40;

    for (int library = 0; library < LIBRARIES; library++) {
        const struct pen pen = pen_of(library);
        const char *label = library_names[library].label;

        if (!has_curve(series, library))
            continue;
        svg_line(file, (struct point){ x, HEIGHT - 24 }, (struct point){ x + 22, HEIGHT - 24 },
                 &pen);
        svg_text(file, (struct point){ x + 27, HEIGHT - 20 }, START, SMALL + 1, label);
        x += 27 + svg_width(label, SMALL + 1) + 12;
    }
}

static void draw(FILE *file, const struct series *series)
{
    const struct row *row = &series->rows[0];
    char title[100], on_hosts[40] = "";

    if (row->hosts > 0)
        snprintf(on_hosts, sizeof on_hosts, " on %d hosts, TCP", row->hosts);
    snprintf(title, sizeof title, "%s, %d ranks%s", row->operation, row->ranks, on_hosts);
    svg_open(file, WIDTH, series->count > 1 ? HEIGHT : SCALE_HEIGHT, title);
    svg_text(file, (struct point){ 70, 32 }, START, LARGE, title);
    if (series->count > 1) {
        panel_draw(file, series, 70, 0);
        panel_draw(file, series, 590, 1);
        draw_legend(file, series);
    } else {
        scale_draw(file, series->rows);
    }
    svg_close(file);
}

/* ---- Files ------------------------------------------------------------------------ */

static int write_one(const struct series *series, const char *dir, char name[400])
{
    const struct row *row = &series->rows[0];
    char shape[24];
    FILE *file;
    int broken;

    name_shape(row, shape);
    snprintf(name, 400, "%s/%s%s-%s.svg", dir, row->hosts > 0 ? "net-" : "", row->operation, shape);
    file = fopen(name, "we");
    if (!file)
        return -1;
    draw(file, series);
    broken = ferror(file);
    return fclose(file) != 0 || broken ? -1 : 0;
}

int figures_write(const struct results *results, const char *dir, char name[400])
{
    snprintf(name, 400, "%s", dir);
    if (mkdir(dir, 0777) < 0 && errno != EEXIST)
        return -1;
    for (int i = 0; i < results->row_count;) {
        struct series series = { &results->rows[i], 0 };

        while (i < results->row_count && same_shape(&results->rows[i], series.rows)
               && results->rows[i].place == series.rows[0].place) {
            series.count++;
            i++;
        }
        if (write_one(&series, dir, name) < 0)
            return -1;
    }
    return 0;
}
