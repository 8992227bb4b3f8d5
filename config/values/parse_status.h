/* SPDX-License-Identifier: Apache-2.0 */
/* parse_status.h - where --status serves its page. */
#ifndef CONFIG_VALUES_PARSE_STATUS_H
#define CONFIG_VALUES_PARSE_STATUS_H

#include "config/values/parse_number.h"

#define STATUS_PATH 108 /* what a unix socket's name may be long, with its 0 */

struct status_at {
    int is_on;
    char path[STATUS_PATH]; /* of a unix socket; "": */
    char host[256];         /* "127.0.0.1" if none was given */
    int port;               /* 0: any free one */
};

value_parser parse_status; /* struct status_at */

#endif
