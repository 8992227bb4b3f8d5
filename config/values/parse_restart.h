/* SPDX-License-Identifier: Apache-2.0 */
/* parse_restart.h - parses the options that say whether a job stops, continues or restarts its
 * workers after a failure. */
#ifndef CONFIG_VALUES_PARSE_RESTART_H
#define CONFIG_VALUES_PARSE_RESTART_H

#include "config/values/parse_number.h"

/* The value of --max-restarts.  "3" allows 3 restarts in the whole job, and "3/1h" allows 3 in any
 * hour. */
struct restart_budget {
    int most;
    int window_seconds; /* 0 if `most` is for the whole job */
};

/* The value of --restart.  exits[code] and signals[number] are 1 if workers are restarted after
 * that exit code or signal. */
struct restart_policy {
    unsigned char exits[256];
    unsigned char signals[65];
};

/* The value of --on-failure. */
struct on_failure {
    int go_on; /* true if a failure does not stop the other workers */
    int least; /* the fewest live workers with which the job continues */
};

value_parser parse_restart_budget;
value_parser parse_restart_policy;
value_parser parse_on_failure;

#endif
