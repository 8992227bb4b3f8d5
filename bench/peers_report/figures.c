/* SPDX-License-Identifier: Apache-2.0 */
/* figures.c - see figures.h.
 *
 * Two panels over one axis of sizes: the time of a call, both axes logarithmic, and the bus
 * bandwidth. The legend is below them, in the order of the table; ours is drawn last, above the
 * others.  What has one size only, as a barrier, has a scale instead. */
#include "bench/peers_report/figures.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/peers_report/panel.h"
#include "bench/peers_report/scale.h"

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

static void draw(FILE *file, const struct series *series, int net)
{
    char title[100];

    snprintf(title, sizeof title, "%s, %d ranks%s", series->rows[0].operation,
             series->rows[0].ranks, net ? " on two hosts, TCP" : "");
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

static int write_one(const struct series *series, const char *dir, int net, char name[400])
{
    FILE *file;
    int broken;

    snprintf(name, 400, "%s/%s%s-%d.svg", dir, net ? "net-" : "", series->rows[0].operation,
             series->rows[0].ranks);
    file = fopen(name, "we");
    if (!file)
        return -1;
    draw(file, series, net);
    broken = ferror(file);
    return fclose(file) != 0 || broken ? -1 : 0;
}

int figures_write(const struct results *results, const char *dir, int net, char name[400])
{
    snprintf(name, 400, "%s", dir);
    if (mkdir(dir, 0777) < 0 && errno != EEXIST)
        return -1;
    for (int i = 0; i < results->row_count;) {
        struct series series = { &results->rows[i], 0 };

        while (i < results->row_count && results->rows[i].ranks == series.rows[0].ranks
               && results->rows[i].place == series.rows[0].place) {
            series.count++;
            i++;
        }
        if (write_one(&series, dir, net, name) < 0)
            return -1;
    }
    return 0;
}
