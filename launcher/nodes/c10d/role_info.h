/* SPDX-License-Identifier: Apache-2.0 */
/* role_info.h - what a node tells of its workers under torchelastic/role_info, as JSON. */
#ifndef LAUNCHER_NODES_C10D_ROLE_INFO_H
#define LAUNCHER_NODES_C10D_ROLE_INFO_H

struct role_info {
    char role[512]; /* as JSON */
    int workers;
};

#define ROLE_INFO_TEXT 640

void role_info_print(const char *role, int rank, int workers, char text[ROLE_INFO_TEXT]);
/* 0, or -1: it is not that, or more than a node can have. */
int role_info_read(const char *json, struct role_info *info);

#endif
