/* SPDX-License-Identifier: Apache-2.0 */
/* role_info.c - written as Python's json.dumps does it, for others compare roles as text; read as
 * far as it is needed: two fields of an object without nesting. */
#include "launcher/nodes/c10d/role_info.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As json.dumps writes it, which is how others compare: all but ASCII as \uXXXX. */
static size_t put_json(const char *text, char *to, size_t size)
{
    const unsigned char *c = (const unsigned char *)text;
    size_t used = 0;

    while (*c && used < size - 13) {
        unsigned code = *c++;

        if (code == '"' || code == '\\') {
            used += (size_t)sprintf(to + used, "\\%c", code);
        } else if (code >= ' ' && code < 127) {
            to[used++] = (char)code;
        } else {
            int more = code >= 0xf0 ? 3 : code >= 0xe0 ? 2 : code >= 0xc0 ? 1 : 0;

            code &= more == 3 ? 7 : more == 2 ? 15 : more == 1 ? 31 : 127;
            while (more-- > 0 && (*c & 0xc0) == 0x80)
                code = code << 6 | (*c++ & 63);
            if (code > 0xffff)
                used += (size_t)sprintf(to + used, "\\u%04x\\u%04x",
                                        (0xd800 + ((code - 0x10000) >> 10)) & 0xffff,
                                        0xdc00 + (code & 0x3ff));
            else
                used += (size_t)sprintf(to + used, "\\u%04x", code);
        }
    }
    to[used] = 0;
    return used;
}

void role_info_print(const char *role, int rank, int workers, char text[ROLE_INFO_TEXT])
{
    char json[512];

    put_json(role, json, sizeof json);
    snprintf(text, ROLE_INFO_TEXT, "{\"role\": \"%s\", \"rank\": %d, \"local_world_size\": %d}",
             json, rank, workers);
}

/* The value behind "name": in an object without nesting; NULL: there is none. */
static const char *json_field(const char *json, const char *name)
{
    char quoted[64];
    const char *at;

    snprintf(quoted, sizeof quoted, "\"%s\"", name);
    at = strstr(json, quoted);
    if (!at)
        return NULL;
    at += strlen(quoted);
    at += strspn(at, " \t\n");
    if (*at++ != ':')
        return NULL;
    return at + strspn(at, " \t\n");
}

int role_info_read(const char *json, struct role_info *info)
{
    const char *role = json_field(json, "role");
    const char *workers = json_field(json, "local_world_size");
    size_t length = 0;

    if (!role || *role++ != '"' || !workers)
        return -1;
    while (role[length] && role[length] != '"')
        length += role[length] == '\\' && role[length + 1] ? 2 : 1;
    if (length >= sizeof info->role)
        return -1;
    memcpy(info->role, role, length);
    info->role[length] = 0;
    info->workers = atoi(workers);
    return info->workers < 1 || info->workers > 1 << 20 ? -1 : 0;
}
