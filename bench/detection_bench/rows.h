/* SPDX-License-Identifier: Apache-2.0 */
/* rows.h - what is measured: a row of the table is a place and a layout. */
#ifndef DETECTION_BENCH_ROWS_H
#define DETECTION_BENCH_ROWS_H

struct layout {
    const char *name;
    int ranks, nodes;
    const char *link; /* of libct (CT_LINK); NULL: what it takes by itself */
};

enum dies { ANYBODY, NOT_RANK_0, RANK_0 };

struct row_kind {
    const char *place;
    enum dies dies;
    const char *systems; /* "" or all who can be there */
    const char *layouts;
};

struct row {
    const struct row_kind *kind;
    const struct layout *layout;
};

extern const struct row_kind row_kinds[];
extern const int row_kind_count;

/* The rows of a kind, one after the other; 0 after the last. */
int row_next(const struct row_kind *kind, int *position, struct row *row);

/* Is `word` one of the words of the list? */
int listed(const char *list, const char *word);

/* Does this rank wait for the victim in this row? */
int row_waits(const struct row *row, int rank, int victim);

int row_victim(const struct row *row, int run);

#endif
