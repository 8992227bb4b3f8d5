/* SPDX-License-Identifier: Apache-2.0 */
/* doctor.c - runs the command ctctl doctor.  launcher/doctor does the work. */
#include "launcher/ctctl/ctctl.h"

int command_doctor(struct ctctl_options *options, char **words, int count)
{
    (void)words;
    (void)count;
    options->doctor.json = options->json;
    options->doctor.verbose = options->verbose;
    return doctor_run(&options->doctor);
}
