/* SPDX-License-Identifier: Apache-2.0 */
/* checks.h - the checks that ctctl doctor makes on each host. */
#ifndef LAUNCHER_DOCTOR_CHECKS_H
#define LAUNCHER_DOCTOR_CHECKS_H

enum finding_level { LEVEL_OK, LEVEL_WARN, LEVEL_FAIL, LEVELS }; /* hosts send it as a number */

/* text: a sentence; of a check that is ok the figure, or "".  remedy: of one that is ok what to do
 * if the text differs between hosts, or "". */
typedef void finding_hook(enum finding_level level, const char *check, const char *text,
                          const char *remedy);

/* Runs the checks that matter here, in the order of the table, then reports facts that should be
 * the same on all hosts.  hosts: number of hosts in the job.  ctctl: its path where the user typed
 * the command; ctrun is in the same folder.  folder: the user's, in which ctrun --hosts would run.
 */
void checks_run(int hosts, const char *ctctl, const char *folder, finding_hook *hook);

#endif
