/* SPDX-License-Identifier: Apache-2.0 */
#include "config/values/parse_status.h"

#include <stdio.h>
#include <string.h>

/* Parses [HOST:]PORT.  HOST may be an IPv6 address in brackets. */
static int parse_host_and_port(const char *text, struct status_at *at, struct why *why)
{
    const char *const colon = strrchr(text, ':');
    size_t length = colon ? (size_t)(colon - text) : 0;
    const char *host = text;

    if (parse_port(colon ? colon + 1 : text, &at->port, why) < 0)
        return value_wrong(why, "'%s': give PORT, HOST:PORT or unix:PATH", text);
    if (length > 1 && host[0] == '[' && host[length - 1] == ']') {
        host++;
        length -= 2;
    }
    if (colon && (length == 0 || length >= sizeof at->host))
        return value_wrong(why, "'%s': before the last ':' give a name or an address of this host",
                           text);
    snprintf(at->host, sizeof at->host, "%.*s", colon ? (int)length : 9,
             colon ? host : "127.0.0.1");
    return 0;
}

int parse_status(const char *text, void *field, struct why *why)
{
    struct status_at at = { .is_on = 1 };

    if (strncmp(text, "unix:", 5) != 0) {
        if (parse_host_and_port(text, &at, why) < 0)
            return -1;
    } else if (!text[5] || strlen(text + 5) >= sizeof at.path) {
        return value_wrong(why, "the path of a unix socket has 1 to %d characters",
                           (int)sizeof at.path - 1);
    } else {
        snprintf(at.path, sizeof at.path, "%s", text + 5);
    }
    *(struct status_at *)field = at;
    return 0;
}
