/* SPDX-License-Identifier: Apache-2.0 */
/* svg.c - see svg.h. */
#include "bench/peers_report/svg.h"

#include <string.h>

/* White below all, or a dark page would show through. */
void svg_open(FILE *file, int width, int height, const char *title)
{
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d "
            "%d\" "
            "font-family=\"Helvetica, Arial, DejaVu Sans, sans-serif\" "
            "fill=\"#212121\">\n<title>%s</title>\n"
            "<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n",
            width, height, width, height, title, width, height);
}

void svg_close(FILE *file)
{
    fprintf(file, "</svg>\n");
}

void svg_text(FILE *file, struct point at, enum anchor anchor, int size, const char *text)
{
    static const char *const anchors[] = { "start", "middle", "end" };

    fprintf(file, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"%d\" text-anchor=\"%s\">%s</text>\n",
            at.x, at.y, size, anchors[anchor], text);
}

static void put_pen(FILE *file, const struct pen *pen)
{
    fprintf(file, " stroke=\"%s\" stroke-width=\"%.1f\"%s", pen->color, pen->width,
            pen->dashed ? " stroke-dasharray=\"6 4\"" : "");
}

void svg_line(FILE *file, struct point from, struct point to, const struct pen *pen)
{
    fprintf(file, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"", from.x, from.y, to.x,
            to.y);
    put_pen(file, pen);
    fprintf(file, "/>\n");
}

void svg_curve(FILE *file, const struct point *points, int count, const struct pen *pen)
{
    fprintf(file, "<polyline fill=\"none\" stroke-linejoin=\"round\" points=\"");
    for (int i = 0; i < count; i++)
        fprintf(file, "%s%.1f,%.1f", i > 0 ? " " : "", points[i].x, points[i].y);
    fprintf(file, "\"");
    put_pen(file, pen);
    fprintf(file, "/>\n");
    for (int i = 0; i < count && !pen->dashed; i++)
        fprintf(file, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" fill=\"%s\"/>\n", points[i].x,
                points[i].y, pen->width + 1, pen->color);
}

void svg_clip(FILE *file, const char *id, struct point at, double width, double height)
{
    fprintf(file,
            "<clipPath id=\"%s\"><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
            "height=\"%.1f\"/></clipPath>\n"
            "<g clip-path=\"url(#%s)\">\n",
            id, at.x, at.y, width, height, id);
}

void svg_unclip(FILE *file)
{
    fprintf(file, "</g>\n");
}

double svg_width(const char *text, int size)
{
    return 0.6 * size * (double)strlen(text);
}
