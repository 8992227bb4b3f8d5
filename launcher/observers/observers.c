/* SPDX-License-Identifier: Apache-2.0 */
/* observers.c - the order in which a job calls its observers.  The observers of
 * stalls and stragglers come before the observers that report what these two find. */
#include "launcher/observers/observers.h"

#include <stddef.h>

const struct job_observer *const observers[] = { &stall_observer,
                                                 &straggler_observer,
                                                 &events_observer,
                                                 &trace_observer,
                                                 &status_observer,
                                                 &init_observer,
                                                 &uninterruptible_observer,
                                                 &health_observer,
                                                 &pmi_observer,
                                                 &detach_observer,
                                                 NULL };
