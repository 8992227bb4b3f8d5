/* SPDX-License-Identifier: Apache-2.0 */
/* show.h - what was found, for a reader: in text, and as a picture. */
#ifndef TOPOLOGY_SHOW_H
#define TOPOLOGY_SHOW_H

#include "examples/topology/copies.h"

void show_machine(const struct machine *machine);
void show_measured(const struct machine *machine, const struct measured *measured);

extern const char *const kind_titles[KINDS_COUNT];
int kind_is_measured(const struct machine *machine, const struct measured *measured, int kind);
/* "18.3", "412", "WRONG", "-". */
void cell_text(double value, char text[16]);

/* ---- heat_map.c ---- */

/* An SVG file with a panel for each kind that was measured.  -1: errno says why not. */
int draw_heat_map(const char *path, const struct machine *machine, const struct measured *measured);

#endif
