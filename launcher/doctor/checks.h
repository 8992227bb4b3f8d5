/* SPDX-License-Identifier: Apache-2.0 */
/* checks.h - runs the checks of ctctl doctor on each host. */
#ifndef LAUNCHER_DOCTOR_CHECKS_H
#define LAUNCHER_DOCTOR_CHECKS_H

/* Hosts send the level as a number. */
enum finding_level { LEVEL_OK, LEVEL_WARN, LEVEL_FAIL, LEVELS };

/* A function that is called with the result of each check.  `text` is an error message.  For
 * LEVEL_OK it is the value found, or "".  `remedy` is what the user should do.  For LEVEL_OK it is
 * what the user should do if the text differs between hosts, or "". */
typedef void finding_hook(enum finding_level level, const char *check, const char *text,
                          const char *remedy);

/* Runs the checks that matter here, in the order of the table, then reports facts that should be
 * the same on all hosts.  `hosts` is the number of hosts in the job.  `ctctl` is the path of ctctl
 * on the host where the user typed the command; ctrun is expected in the same folder.  `folder` is
 * the user's folder, in which ctrun --hosts would run. */
void checks_run(int hosts, const char *ctctl, const char *folder, finding_hook *hook);

#endif
