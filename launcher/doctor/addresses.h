/* SPDX-License-Identifier: Apache-2.0 */
/* addresses.h - finds the addresses of a host name, as programs on this host find them. */
#ifndef LAUNCHER_DOCTOR_ADDRESSES_H
#define LAUNCHER_DOCTOR_ADDRESSES_H

#define ADDRESSES 8

struct addresses {
    int count;
    char text[ADDRESSES][64];
    char error[200]; /* the reason if count is 0 */
};

void addresses_find(struct addresses *addresses, const char *name);

int is_loopback_address(const char *address);

#endif
