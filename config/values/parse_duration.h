/* SPDX-License-Identifier: Apache-2.0 */
/* parse_duration.h - text of durations (--stall, --max-restarts=3/1h) into seconds. */
#ifndef CONFIG_VALUES_PARSE_DURATION_H
#define CONFIG_VALUES_PARSE_DURATION_H

#include "config/values/parse_number.h"

/* "90", "90s", "5m", "1h", "2d" in seconds; -1: text is not one of these. */
int duration_seconds(const char *text);

value_parser parse_duration; /* int, seconds; "0": off */

#endif
