/* SPDX-License-Identifier: Apache-2.0 */
/* parse_status.h - parses the address at which --status serves its page. */
#ifndef CONFIG_VALUES_PARSE_STATUS_H
#define CONFIG_VALUES_PARSE_STATUS_H

#include "config/values/parse_number.h"

#define STATUS_PATH 108 /* bytes of a unix socket's path, with the final 0 */

struct status_at {
    int is_on;
    char path[STATUS_PATH]; /* path of a unix socket; "" if host and port are used */
    char host[256];         /* "127.0.0.1" if none was given */
    int port;               /* 0 means any free port */
};

value_parser parse_status; /* writes a struct status_at */

#endif
