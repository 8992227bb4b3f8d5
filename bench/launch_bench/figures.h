/* SPDX-License-Identifier: Apache-2.0 */
/* figures.h - samples by case and launcher, and the lines that are printed of them. */
#ifndef LAUNCH_BENCH_FIGURES_H
#define LAUNCH_BENCH_FIGURES_H

struct figure {
    char name[48];
    const char *unit, *launcher;
    double *values;
    int count, room;
};

struct figures {
    struct figure *list;
    int count;
};

__attribute__((format(printf, 5, 6))) void figure_add(struct figures *figures, const char *launcher,
                                                      const char *unit, double value,
                                                      const char *format, ...);

/* case=wall/64 unit=ms launcher=ctrun median=20.1 min=18.0 runs=31 */
void figures_print(struct figures *figures);

#endif
