/* SPDX-License-Identifier: Apache-2.0 */
#include "config/values/subnet.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const unsigned char mapped[12] = { [10] = 0xff, [11] = 0xff };

int network_parse(const char *text, struct network *network)
{
    char address[64];
    const size_t length = strcspn(text, "/");
    int most, offset = 0;

    *network = (struct network){ .bits = 0 };
    if (!strcmp(text, "any"))
        return 0;
    if (length >= sizeof address)
        return -1;
    memcpy(address, text, length);
    address[length] = 0;
    if (inet_pton(AF_INET, address, network->address + 12) == 1) {
        memcpy(network->address, mapped, sizeof mapped);
        most = 32;
        offset = 96;
    } else if (inet_pton(AF_INET6, address, network->address) == 1) {
        most = 128;
    } else {
        return -1;
    }
    network->bits = most;
    if (text[length] == '/') {
        char *end;
        const long bits = strtol(text + length + 1, &end, 10);

        if (!isdigit((unsigned char)text[length + 1]) || *end || bits > most)
            return -1;
        network->bits = (int)bits;
    }
    network->bits += offset;
    return 0;
}

int network_has(const struct network *network, const unsigned char address[16])
{
    const int whole = network->bits / 8, rest = network->bits % 8;

    if (memcmp(network->address, address, (size_t)whole))
        return 0;
    return rest == 0 || (network->address[whole] ^ address[whole]) >> (8 - rest) == 0;
}
