/* SPDX-License-Identifier: Apache-2.0 */
/* doctor.h - ctctl doctor: can a job run on these hosts, and what is in its way? */
#ifndef LAUNCHER_DOCTOR_DOCTOR_H
#define LAUNCHER_DOCTOR_DOCTOR_H

#include "launcher/doctor/matrix.h"

struct doctor_options {
    const char *hosts, *hostfile, *ssh, *iface; /* NULL: not given */
    int json, verbose;
};

/* The exit code: 0, 1 if there is a FAIL, 2 for wrong usage. */
int doctor_run(const struct doctor_options *options);

/* What ctctl is on a host that doctor_run() examines: a relay, or what that starts (node.c), by a
 * first word that no user writes.  The exit code; -1: it is neither. */
int doctor_on_host(char **argv);

/* ---- node.c ---- */

int doctor_node(char **words);

/* ---- report.c ---- */

/* A finding and the hosts that have it; it belongs to the pairs if the check is "network". */
struct diagnosis {
    enum level level;
    char *check, *text, *remedy; /* malloc'ed */
    int host;                    /* -1: of no single one */
};

struct report {
    int hosts;
    char **names;
    int *lost; /* that host did not answer */
    struct diagnosis *list;
    int count;
    struct matrix matrix;
    int64_t *skews;
    double seconds;
};

void report_add(struct report *report, int host, enum level level, const char *check,
                const char *text, const char *remedy);
enum level report_worst(const struct report *report);
void report_print(const struct report *report, int verbose);
void report_print_json(const struct report *report);
void report_free(struct report *report);

#endif
