/* SPDX-License-Identifier: Apache-2.0 */
/* results.h - what was measured, as rows (operation, hosts, ranks, bytes) by libraries: the medians
 * of the rounds. */
#ifndef PEERS_REPORT_RESULTS_H
#define PEERS_REPORT_RESULTS_H

#include <stddef.h>
#include <stdio.h>

/* In the order of the columns; ours, with buffers of its own and of ct_mem_alloc(), are before
 * GLOO.  What a file names besides them is refused. */
enum library {
    LIBCT,
    LIBCT_MEM,
    GLOO,
    OPENMPI4,
    OPENMPI5,
    MPICH4,
    MPICH5,
    IMPI,
    ONECCL,
    LIMIT,
    LIBRARIES
};

extern const struct library_name {
    const char *key, *label, *color;
} library_names[LIBRARIES];

/* us of a call; NAN: not measured. */
struct time {
    double p50, p99, mean;
};

struct row {
    char operation[24];
    int hosts, ranks; /* ranks in all; hosts 0: one, not by the network */
    size_t bytes;
    int place; /* of the operation: it is that of its first row */
    struct time times[LIBRARIES];
};

struct results {
    struct row *rows; /* by hosts, ranks, operations as they came first, bytes */
    int row_count;
    int processors;
    int present[LIBRARIES]; /* has a time somewhere */
};

/* Lines of "library,ranks,round,operation,bytes,p50,p99,mean,samples"; ranks is "4", or "3x2" for
 * two on each of three hosts.  0, or -1 with the reason in `why`; results_free() either way. */
int results_read(struct results *results, FILE *file, char why[200]);
void results_free(struct results *results);

/* Whether the ranks are placed alike. */
int same_shape(const struct row *a, const struct row *b);

/* "4" or "3x2". */
void name_shape(const struct row *row, char text[24]);

/* The fastest of the others; LIBRARIES if there is none. */
enum library best_peer(const struct row *row);

/* Best peer over ours: more than 1 is faster.  NAN without either. */
double ratio_of(const struct row *row, enum library ours);

/* With more ranks than processors the root of a rooted operation of few bytes is far ahead, and who
 * gets a processor finds its message there: such times say little, and are left out of means. */
int says_little(const struct results *results, const struct row *row);

/* nccl-tests' bus bandwidth, 1e9 bytes a second. */
double bandwidth_of(const struct row *row, double us);

/* ---- What is made of them ----------------------------------------------------------- */

/* table.c: Markdown; JSON. */
void table_print(const struct results *results, const char *machine);
void json_print(const struct results *results, const char *machine, FILE *file);

/* figures.c: latency and bandwidth by size, in DIR/[net-]OPERATION-RANKS.svg.  0, or -1 with the
 * name that can't be written in `name`: errno. */
int figures_write(const struct results *results, const char *dir, char name[400]);

#endif
