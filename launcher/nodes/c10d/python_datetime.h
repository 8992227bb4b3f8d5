/* SPDX-License-Identifier: Apache-2.0 */
/* python_datetime.h - the ten bytes of a Python datetime, and microseconds since 1970 in UTC. */
#ifndef LAUNCHER_NODES_C10D_PYTHON_DATETIME_H
#define LAUNCHER_NODES_C10D_PYTHON_DATETIME_H

#include <stdint.h>

enum { UTC_BYTES = 10 };

/* Returns 0, or -1: no moment has these bytes. */
int utc_read(const unsigned char bytes[UTC_BYTES], int64_t *us);
/* Moments outside the years 1 to 9999, which Python cannot say, become the nearest it can. */
void utc_write(int64_t us, unsigned char bytes[UTC_BYTES]);

#endif
