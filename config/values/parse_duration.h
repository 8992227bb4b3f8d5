/* SPDX-License-Identifier: Apache-2.0 */
/* parse_duration.h - parses durations (--stall, --max-restarts=3/1h) into seconds. */
#ifndef CONFIG_VALUES_PARSE_DURATION_H
#define CONFIG_VALUES_PARSE_DURATION_H

#include "config/values/parse_number.h"

/* Returns the seconds of a duration such as "90", "90s", "5m", "1h" or "2d", or -1 if the text has
 * another form. */
int duration_seconds(const char *text);

value_parser parse_duration; /* writes an int in seconds; "0" means off */

#endif
