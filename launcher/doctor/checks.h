/* SPDX-License-Identifier: Apache-2.0 */
/* checks.h - what ctctl doctor looks at on each host. */
#ifndef LAUNCHER_DOCTOR_CHECKS_H
#define LAUNCHER_DOCTOR_CHECKS_H

#include <stdio.h>

#include "launcher/doctor/finding.h"

/* What the checks depend on, beside the host. */
struct check_input {
    int hosts;          /* of the job; 1: what only several need is left out */
    const char *ctctl;  /* its path where the user typed the command: ctrun lies beside it */
    const char *folder; /* in which the user is, and so ctrun --hosts runs */
    int cores;          /* of this host: host_cores() */
};

typedef void finding_hook(void *arg, const struct finding *finding);

int host_cores(void);

/* Those that mean something here, in the order of the table. */
void checks_run(const struct check_input *input, finding_hook *hook, void *arg);

/* What should be the same on all hosts: "kernel", "6.1.0". */
void facts_say(const struct check_input *input,
               void (*say)(void *arg, const char *name, const char *value), void *arg);

#endif
