/* SPDX-License-Identifier: Apache-2.0 */
/* heat_map.c - the matrices as an SVG picture: a panel each, two beside each other.
 *
 * A cell is the darker, the more; the scale is logarithmic and the same with peer access on and
 * off, for a machine's pairs may be a hundred times apart.  Below the number stands what lies
 * between. */
#include <math.h>

#include "examples/topology/show.h"

enum {
    CELL = 56,
    LEFT = 24,
    LABELS = 44, /* left of a panel's cells */
    NARROWEST = 330,
    TOP = 64,
    HEAD = 64, /* above a panel's cells */
    GAP = 20,
};

struct colour {
    double red, green, blue;
};

struct scale {
    double low, high; /* logarithms */
    struct colour pale, dark;
};

static double panel_width(const struct machine *machine)
{
    const double width = LABELS + machine->count * CELL + GAP;

    return width > NARROWEST ? width : NARROWEST;
}

static double panel_height(const struct machine *machine)
{
    return HEAD + machine->count * CELL + GAP;
}

static void put_text(FILE *file, double x, double y, const char *look, const char *text)
{
    fprintf(file, "<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, look);
    for (; *text; text++)
        if (*text == '<' || *text == '&')
            fputs(*text == '<' ? "&lt;" : "&amp;", file);
        else
            fputc(*text, file);
    fputs("</text>\n", file);
}

static int is_latency(int kind)
{
    return kind == LATENCY || kind == LATENCY_OFF;
}

/* Of a kind with peer access on, and the one after it, where it is off. */
static struct scale scale_of(const struct machine *machine, const struct measured *measured,
                             int kind)
{
    struct scale scale = { INFINITY, -INFINITY, { 227, 242, 253 }, { 13, 71, 161 } };
    const int first = kind / 2 * 2;

    if (is_latency(kind)) {
        scale.pale = (struct colour){ 255, 243, 224 };
        scale.dark = (struct colour){ 191, 54, 12 };
    }
    for (int k = first; k < first + 2; k++)
        for (int i = 0; i < machine->count * machine->count; i++) {
            const double value = measured->value[k][i / machine->count][i % machine->count];

            if (!(value > 0)) /* NAN and wrong ones too */
                continue;
            scale.low = fmin(scale.low, log(value));
            scale.high = fmax(scale.high, log(value));
        }
    return scale;
}

/* 0 to 1. */
static double place(const struct scale *scale, double value)
{
    return scale->high > scale->low ? (log(value) - scale->low) / (scale->high - scale->low) : 0.5;
}

static void draw_cell(FILE *file, const struct between *between, const struct scale *scale,
                      double x, double y, double value)
{
    const double at = value > 0 ? place(scale, value) : 0;
    const struct colour from = scale->pale, to = scale->dark;
    const char *ink = at > 0.6 || value < 0 ? "#ffffff" : "#212121";
    char text[16], look[96];

    fprintf(file, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%d\" height=\"%d\" stroke=\"#ffffff\" ", x,
            y, CELL, CELL);
    if (isnan(value))
        fprintf(file, "fill=\"#eeeeee\"/>\n");
    else if (value < 0)
        fprintf(file, "fill=\"#d50000\"/>\n");
    else
        fprintf(file, "fill=\"rgb(%.0f,%.0f,%.0f)\"/>\n", from.red + at * (to.red - from.red),
                from.green + at * (to.green - from.green), from.blue + at * (to.blue - from.blue));
    snprintf(look, sizeof look, "font-size=\"13\" text-anchor=\"middle\" fill=\"%s\"", ink);
    cell_text(value, text);
    put_text(file, x + CELL / 2.0, y + CELL / 2.0, look, text);
    if (isnan(value) || between->way == WAY_SAME)
        return;
    snprintf(look, sizeof look, "font-size=\"10\" text-anchor=\"middle\" fill=\"%s\"", ink);
    way_word(between, text);
    put_text(file, x + CELL / 2.0, y + CELL / 2.0 + 16, look, text);
}

static void draw_panel(FILE *file, const struct machine *machine, const struct measured *measured,
                       int kind, double x, double y)
{
    static const char middle[] = "font-size=\"12\" text-anchor=\"middle\"";
    const struct scale scale = scale_of(machine, measured, kind);
    const double left = x + LABELS, top = y + HEAD;

    put_text(file, x, y + 18, "font-size=\"14\" font-weight=\"bold\"", kind_titles[kind]);
    put_text(file, left, top - 26, "font-size=\"12\" fill=\"#757575\"", "to GPU");
    put_text(file, x, top + 14, "font-size=\"12\" fill=\"#757575\"", "from");
    for (int i = 0; i < machine->count; i++) {
        char number[16];

        snprintf(number, sizeof number, "%d", i);
        put_text(file, left + (i + 0.5) * CELL, top - 8, middle, number);
        put_text(file, left - 12, top + (i + 0.5) * CELL + 4, middle, number);
    }
    for (int from = 0; from < machine->count; from++)
        for (int to = 0; to < machine->count; to++)
            draw_cell(file, &machine->links.between[from][to], &scale, left + to * CELL,
                      top + from * CELL, measured->value[kind][from][to]);
}

int draw_heat_map(const char *path, const struct machine *machine, const struct measured *measured)
{
    int kinds[KINDS_COUNT], count = 0, failed;
    char title[128];
    double width, height;
    FILE *file = fopen(path, "we");

    if (!file)
        return -1;
    for (int kind = 0; kind < KINDS_COUNT; kind++)
        if (kind_is_measured(machine, measured, kind))
            kinds[count++] = kind;
    width = LEFT + (count > 1 ? 2 : 1) * panel_width(machine);
    height = TOP + (count + 1) / 2 * panel_height(machine);
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
            "font-family=\"Helvetica, Arial, DejaVu Sans, sans-serif\" fill=\"#212121\">\n"
            "<rect width=\"%.0f\" height=\"%.0f\" fill=\"#ffffff\"/>\n",
            width, height, width, height);
    if (machine->count == 1)
        snprintf(title, sizeof title, "Copies within one GPU: %s", machine->gpu[0].name);
    else
        snprintf(title, sizeof title, "Copies between %d GPUs: %s", machine->count,
                 machine->gpu[0].name);
    put_text(file, LEFT, 30, "font-size=\"17\" font-weight=\"bold\"", title);
    put_text(file, LEFT, 50, "font-size=\"12\" fill=\"#757575\"", "darker: more; logarithmic");
    for (int i = 0; i < count; i++)
        draw_panel(file, machine, measured, kinds[i], LEFT + i % 2 * panel_width(machine),
                   TOP + i / 2 * panel_height(machine));
    fprintf(file, "</svg>\n");
    failed = ferror(file);
    return fclose(file) != 0 || failed ? -1 : 0;
}
