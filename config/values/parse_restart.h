/* SPDX-License-Identifier: Apache-2.0 */
/* parse_restart.h - what follows a failure: the job stops, continues or restarts its workers. */
#ifndef CONFIG_VALUES_PARSE_RESTART_H
#define CONFIG_VALUES_PARSE_RESTART_H

#include "config/values/parse_number.h"

/* --max-restarts=3, or 3/1h: 3 in any hour. */
struct restart_budget {
    int most;
    int window_seconds; /* 0: in the whole job */
};

/* --restart: after which ends the workers are started again. */
struct restart_policy {
    unsigned char exits[256];
    unsigned char signals[65];
};

/* --on-failure */
struct on_failure {
    int go_on; /* the other workers are not signalled, */
    int least; /* as long as so many of them live */
};

value_parser parse_restart_budget;
value_parser parse_restart_policy;
value_parser parse_on_failure;

#endif
