/* SPDX-License-Identifier: Apache-2.0 */
/* subnet.h - sets of IP addresses, written "10.1.0.0/16", "fd00::/8" or "192.168.0.7". */
#ifndef CONFIG_VALUES_SUBNET_H
#define CONFIG_VALUES_SUBNET_H

/* A network.  IPv4 addresses are mapped into IPv6. */
struct network {
    unsigned char address[16];
    int bits; /* number of leading bits that an address must share; 0 allows every address */
};

/* Parses "any", an address, or address/bits.  Returns 0, or -1 for any other text. */
int network_parse(const char *text, struct network *network);
int network_has(const struct network *network, const unsigned char address[16]);

/* The value of --store-allow, which is up to NETWORKS networks with commas between them. */
#define NETWORKS 16
struct networks {
    struct network list[NETWORKS];
    int count;
};

#endif
