/* SPDX-License-Identifier: Apache-2.0 */
/* signal_name.h - names of signals. */
#ifndef RUNTIME_UTIL_SIGNAL_NAME_H
#define RUNTIME_UTIL_SIGNAL_NAME_H

#include <stddef.h>

/* Writes a signal's name such as "SIGKILL", or "signal 42" if it has no name.  Returns text. */
const char *signal_name(int number, char *text, size_t size);

#endif
