/* SPDX-License-Identifier: Apache-2.0 */
/* doctor.c - the command ctctl doctor.  The work is done in launcher/doctor. */
#include "launcher/ctctl/ctctl.h"

int command_doctor(struct ctctl_options *options, char **words, int count)
{
    (void)words;
    (void)count;
    options->doctor.json = options->json;
    options->doctor.verbose = options->verbose;
    return doctor_run(&options->doctor);
}
