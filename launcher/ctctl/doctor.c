/* SPDX-License-Identifier: Apache-2.0 */
/* doctor.c - implements the command ctctl doctor with the functions of launcher/doctor. */
#include "launcher/ctctl/ctctl.h"

int command_doctor(struct ctctl_options *options, char **words, int count)
{
    (void)words;
    (void)count;
    options->doctor.json = options->json;
    options->doctor.verbose = options->verbose;
    return doctor_run(&options->doctor);
}
