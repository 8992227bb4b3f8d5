/* SPDX-License-Identifier: Apache-2.0 */
/* report.h - what ctrun says of ends, on stderr. */
#ifndef LAUNCHER_REPORT_H
#define LAUNCHER_REPORT_H

#include "launcher/worker.h"

/* The culprit first, then who was stopped because of it, then its last words if
 * they passed through our hands. */
void report_failure(const struct worker *workers, int size, struct worker *culprit,
                    const char *what_follows);

/* "0,2-3" of the workers for which pick says yes; "" if for none. */
void report_ranks(const struct worker *workers, int size, int (*pick)(const struct worker *worker),
                  char *text, size_t bytes);

/* "exited with code 7", "died of SIGSEGV (core dumped)" */
void report_cause(const struct worker *worker, char *text, size_t bytes);

/* "SIGTERM" */
const char *report_signal(int number, char *text, size_t bytes);

#endif
