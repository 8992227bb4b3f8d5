/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LAUNCHER_CTCTL_ADDR2LINE_H
#define LAUNCHER_CTCTL_ADDR2LINE_H

#include "launcher/inspect/snapshot.h"

/* ->where of each call that a living rank is in: "train.c:88 (step)", as far as eu-addr2line or
 * addr2line is there and the program has debug information; else "train+0x1189". */
void source_lines(struct job_snapshot *job);

/* Below: for tests. */

/* What addr2line -f says of an address, a function and a place, in a few words; 0: nothing. */
int source_words(const char *function, const char *place, char *text, size_t size);

#endif
