/* SPDX-License-Identifier: Apache-2.0 */
/* doctor.h - runs ctctl doctor, which finds out whether a job can run on these hosts, and what
 * prevents it. */
#ifndef LAUNCHER_DOCTOR_DOCTOR_H
#define LAUNCHER_DOCTOR_DOCTOR_H

#include "config/values/host_list.h"
#include "launcher/doctor/matrix.h"

struct doctor_options {
    const char *hosts, *hostfile, *ssh, *iface; /* NULL if not given */
    int json, verbose;
};

/* Checks the hosts and prints the results.  Returns the exit code: 0 if no check failed, 1 if there
 * is a FAIL, or 2 for wrong usage. */
int doctor_run(const struct doctor_options *options);

/* Runs ctctl on a host that doctor_run() examines: as a relay, or as the process that the relay
 * starts (node.c).  The first word of argv tells which; users never type that word.  Returns the
 * exit code, or -1 if the first word is neither of the two. */
int doctor_on_host(char **argv);

/* ---- node.c ---- */

int doctor_node(char **words);

/* ---- report.c ---- */

struct diagnosis {
    enum finding_level level;
    int host;
    char check[32], text[640], remedy[320];
};

struct report {
    int hosts;
    const struct host_slots *list_of_hosts; /* belongs to the caller */
    int *lost;                              /* [hosts]; 1 if the host did not answer */
    struct diagnosis *list;
    int count;
    enum finding_level worst; /* worst level in list; set by report_finish() */
    struct matrix matrix;
    double usual[FIGURES];
    double seconds;
};

const char *report_name(const struct report *report, int host);
void report_add(struct report *report, int host, enum finding_level level, const char *check,
                const char *text, const char *remedy);
void report_finish(struct report *report); /* must be called after the last report_add() */
void report_print(const struct report *report, int verbose);
void report_print_json(const struct report *report);

#endif
