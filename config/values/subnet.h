/* SPDX-License-Identifier: Apache-2.0 */
/* subnet.h - "10.1.0.0/16", "fd00::/8", "192.168.0.7": sets of addresses. */
#ifndef CONFIG_VALUES_SUBNET_H
#define CONFIG_VALUES_SUBNET_H

/* IPv4 addresses are mapped into IPv6. */
struct network {
    unsigned char address[16];
    int bits; /* of the address that count; 0: every address */
};

/* "any", an address, or address/bits.  0, or -1: it is none of these. */
int network_parse(const char *text, struct network *network);
int network_has(const struct network *network, const unsigned char address[16]);

/* --store-allow: up to this many, with commas between. */
#define NETWORKS 16
struct networks {
    struct network list[NETWORKS];
    int count;
};

#endif
