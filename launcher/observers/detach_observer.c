/* SPDX-License-Identifier: Apache-2.0 */
/* detach_observer.c - tells ctrun --detach that the workers run. */
#include "launcher/detach/detach.h"
#include "launcher/job/job.h"
#include "launcher/observers/observers.h"

/* Tells it in each round; the caller has gone after the first. */
static void detach_round_began(void *state, struct job *job)
{
    (void)state;
    detach_tell_began(job->options);
}

const struct job_observer detach_observer = { .round_began = detach_round_began };
