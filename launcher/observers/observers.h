/* SPDX-License-Identifier: Apache-2.0 */
/* observers.h - lists the observers of a job (launcher/job/observer.h).  A file of this folder
 * implements each observer. */
#ifndef LAUNCHER_OBSERVERS_OBSERVERS_H
#define LAUNCHER_OBSERVERS_OBSERVERS_H

#include "launcher/job/observer.h"

extern const struct job_observer events_observer;
extern const struct job_observer trace_observer;
extern const struct job_observer stall_observer;
extern const struct job_observer straggler_observer;
extern const struct job_observer status_observer;
extern const struct job_observer init_observer;
extern const struct job_observer uninterruptible_observer;
extern const struct job_observer health_observer;
extern const struct job_observer pmi_observer;
extern const struct job_observer detach_observer;

extern const struct job_observer *const observers[]; /* ends with NULL */

#endif
