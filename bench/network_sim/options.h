/* SPDX-License-Identifier: Apache-2.0 */
/* options.h - the command line, and CT_NETWORK. */
#ifndef NETWORK_SIM_OPTIONS_H
#define NETWORK_SIM_OPTIONS_H

enum { MOST_VALUES = 32, MOST_OPERATIONS = 8 };

struct values {
    long values[MOST_VALUES];
    int count;
};

struct options {
    struct values hosts, ranks, sizes;
    int operation[MOST_OPERATIONS], operations;
    enum { ALL_ROWS, CHOSEN_ROW } rows;
    double patience; /* s that a row may take by an estimate */
    const char *csv, *json, *figure;
    int samples, self_test, help;
    char wrong[200]; /* "" if nothing is */
};

extern const char options_usage[];

/* Sets `model` too.  0, or -1: see wrong. */
int options_read(struct options *o, int argc, char **argv);

#endif
