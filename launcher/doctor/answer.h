/* SPDX-License-Identifier: Apache-2.0 */
/* answer.h - what a function says that may take too long: a name server's reply, another program's
 * output. */
#ifndef LAUNCHER_DOCTOR_ANSWER_H
#define LAUNCHER_DOCTOR_ANSWER_H

#include <stddef.h>

/* Runs it in a process of its own, and reads what that writes to standard output, as far as it has
 * room.  0; -1: it is killed since it took more than so many milliseconds, or there is no process
 * for it, and the text says so. */
int answer_read(void (*run)(const void *arg), const void *arg, int ms, char *text, size_t size);

struct addresses {
    int count;
    char text[8][64];
    char error[200]; /* why there are none */
};

/* The addresses of a name, as programs on this host find them. */
void addresses_find(struct addresses *addresses, const char *name);

#endif
