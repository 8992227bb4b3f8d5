/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LAUNCHER_CTCTL_ADDR2LINE_H
#define LAUNCHER_CTCTL_ADDR2LINE_H

#include "launcher/inspect/snapshot.h"

/* Sets ->where of each call that a living rank is in: "train.c:88 (step)" if eu-addr2line or
 * addr2line is installed and the program has debug information, else "train+0x1189". */
void source_lines(struct job_snapshot *job);

/* Below: for tests. */

/* The two lines that addr2line -f prints for an address -> "train.c:88 (step)"; 0: they name no
 * line. */
int source_words(const char *function, const char *place, char *text, size_t size);

#endif
