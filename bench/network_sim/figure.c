/* SPDX-License-Identifier: Apache-2.0 */
/* figure.c - all_reduce by hosts, both axes logarithmic: a panel for each size, a curve for each
 * row, the library's choice and the bound. */
#include <math.h>
#include <string.h>

#include "bench/network_sim/results.h"
#include "bench/peers_report/svg.h"

enum { PANELS = 3, SMALL = 11, LARGE = 16 };
#define TOP 80.0
#define PANEL_WIDTH 290.0
#define PANEL_HEIGHT 290.0
#define FIRST_LEFT 70.0
#define APART 360.0
#define HEIGHT 460

static const struct pen grid = { "#e4e4e4", 1, 0 }, frame = { "#555555", 1, 0 };

enum { BOUND = -1, CHOSEN = -2, ROW = 0 };
static const struct curve {
    const char *row, *label;
    int what;
    struct pen pen;
} curves[] = {
    { "ring", "ring", ROW, { "#999999", 2, 0 } },
    { "nodes_doubling", "nodes_doubling", ROW, { "#2e9e5b", 2, 0 } },
    { "nodes_halving", "nodes_halving", ROW, { "#1f6fb4", 2, 0 } },
    { "nodes", "nodes (direct)", ROW, { "#c9871a", 2, 0 } },
    { NULL, "chosen", CHOSEN, { "#c0392b", 3, 1 } },
    { NULL, "bound", BOUND, { "#333333", 1.5, 1 } },
};
enum { CURVES = sizeof curves / sizeof *curves };

struct axis {
    double low, high, at, length; /* logarithms; pixels */
};

struct panel {
    const struct results *results;
    size_t bytes;
    int each;
    struct axis x, y;
};

static double on_axis(const struct axis *a, double value)
{
    return a->at + (log10(value) - a->low) / (a->high - a->low) * a->length;
}

static int is_of(const struct panel *p, const struct result *r)
{
    return r->job.operation == OPERATION_ALL_REDUCE && r->job.bytes == p->bytes
           && r->job.each == p->each;
}

static double value_of(const struct curve *curve, const struct result *r)
{
    if (curve->what == BOUND)
        return r->bound;
    if (curve->what == CHOSEN)
        return r->outcome[r->chosen].us;
    for (int i = 0; i < r->rows; i++)
        if (!strcmp(r->info[i].name, curve->row))
            return r->outcome[i].us;
    return NAN;
}

static void widen(struct axis *a, double value)
{
    if (isnan(value) || value <= 0)
        return;
    a->low = fmin(a->low, log10(value));
    a->high = fmax(a->high, log10(value));
}

static void set_axes(struct panel *p, double left)
{
    p->x = (struct axis){ INFINITY, -INFINITY, left, PANEL_WIDTH };
    p->y = (struct axis){ INFINITY, -INFINITY, TOP + PANEL_HEIGHT, -PANEL_HEIGHT };
    for (size_t k = 0; k < p->results->count; k++) {
        const struct result *r = &p->results->all[k];

        if (!is_of(p, r))
            continue;
        widen(&p->x, r->job.hosts);
        for (int i = 0; i < CURVES; i++)
            widen(&p->y, value_of(&curves[i], r));
    }
    p->y.low = floor(p->y.low);
    p->y.high = fmax(ceil(p->y.high), p->y.low + 1);
    p->x.high = fmax(p->x.high, p->x.low + 0.1);
}

static void draw_tick(FILE *file, const struct panel *p, double us)
{
    const double y = on_axis(&p->y, us);
    char text[24];

    if (us < 1e3)
        snprintf(text, sizeof text, "%g us", us);
    else if (us < 1e6)
        snprintf(text, sizeof text, "%g ms", us / 1e3);
    else
        snprintf(text, sizeof text, "%g s", us / 1e6);
    svg_line(file, (struct point){ p->x.at, y }, (struct point){ p->x.at + PANEL_WIDTH, y }, &grid);
    svg_text(file, (struct point){ p->x.at - 6, y + 4 }, END, SMALL, text);
}

static void draw_hosts(FILE *file, const struct panel *p)
{
    double free_from = 0;

    for (size_t k = 0; k < p->results->count; k++) {
        const struct result *r = &p->results->all[k];
        const double x = on_axis(&p->x, r->job.hosts), bottom = TOP + PANEL_HEIGHT;
        char text[24];
        double half;

        if (!is_of(p, r))
            continue;
        snprintf(text, sizeof text, "%d", r->job.hosts);
        half = svg_width(text, SMALL) / 2;
        svg_line(file, (struct point){ x, TOP }, (struct point){ x, bottom }, &grid);
        if (x - half < free_from)
            continue;
        svg_text(file, (struct point){ x, bottom + 16 }, MIDDLE, SMALL, text);
        free_from = x + half + 4;
    }
    svg_text(file, (struct point){ p->x.at + PANEL_WIDTH / 2, TOP + PANEL_HEIGHT + 34 }, MIDDLE,
             SMALL, "hosts");
}

static void draw_curve(FILE *file, const struct panel *p, const struct curve *curve)
{
    struct point points[64];
    int count = 0;

    for (size_t k = 0; k < p->results->count && count < 64; k++) {
        const struct result *r = &p->results->all[k];
        const double us = is_of(p, r) ? value_of(curve, r) : (double)NAN;

        if (!isnan(us))
            points[count++] = (struct point){ on_axis(&p->x, r->job.hosts), on_axis(&p->y, us) };
    }
    if (count > 0)
        svg_curve(file, points, count, &curve->pen);
}

static void draw_panel(FILE *file, struct panel *p, double left)
{
    const double bottom = TOP + PANEL_HEIGHT;
    char bytes[24], title[48];

    set_axes(p, left);
    snprintf(title, sizeof title, "%s bytes", bytes_text(p->bytes, bytes));
    svg_text(file, (struct point){ left, TOP - 10 }, START, SMALL + 1, title);
    draw_hosts(file, p);
    for (double power = p->y.low; power <= p->y.high + 1e-9; power++)
        draw_tick(file, p, pow(10, power));
    svg_line(file, (struct point){ left, TOP }, (struct point){ left, bottom }, &frame);
    svg_line(file, (struct point){ left, bottom }, (struct point){ left + PANEL_WIDTH, bottom },
             &frame);
    for (int i = 0; i < CURVES; i++)
        draw_curve(file, p, &curves[i]);
}

static void draw_legend(FILE *file)
{
    double x = FIRST_LEFT;

    for (int i = 0; i < CURVES; i++) {
        svg_line(file, (struct point){ x, HEIGHT - 24 }, (struct point){ x + 22, HEIGHT - 24 },
                 &curves[i].pen);
        svg_text(file, (struct point){ x + 27, HEIGHT - 20 }, START, SMALL + 1, curves[i].label);
        x += 27 + svg_width(curves[i].label, SMALL + 1) + 16;
    }
}

/* The sizes that there are, in the order in which they came. */
static int sizes_of(const struct results *results, int each, size_t sizes[PANELS])
{
    int count = 0;

    for (size_t k = 0; k < results->count && count < PANELS; k++) {
        const struct job *job = &results->all[k].job;
        int is_new = job->operation == OPERATION_ALL_REDUCE && job->each == each;

        for (int i = 0; i < count; i++)
            is_new &= sizes[i] != job->bytes;
        if (is_new)
            sizes[count++] = job->bytes;
    }
    return count;
}

void figure_draw(FILE *file, const struct results *results, int each)
{
    size_t sizes[PANELS];
    const int panels = sizes_of(results, each, sizes);
    char title[160];

    snprintf(title, sizeof title,
             "all_reduce by hosts of %d rank%s, simulated: time of a call (lower is better)", each,
             each == 1 ? "" : "s");
    svg_open(file, (int)(FIRST_LEFT + APART * (panels > 1 ? panels : 2)), HEIGHT, title);
    svg_text(file, (struct point){ FIRST_LEFT, 32 }, START, LARGE, title);
    for (int i = 0; i < panels; i++) {
        struct panel panel = { .results = results, .bytes = sizes[i], .each = each };

        draw_panel(file, &panel, FIRST_LEFT + APART * i);
    }
    draw_legend(file);
    svg_close(file);
}
