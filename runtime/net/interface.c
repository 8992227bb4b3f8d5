/* SPDX-License-Identifier: Apache-2.0 */
/* interface.c - reads /proc/net/route. */
#include "runtime/net/interface.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

void default_interface(char name[IF_NAMESIZE])
{
    FILE *routes = fopen("/proc/net/route", "re");
    char line[256], interface[IF_NAMESIZE];
    unsigned to, flags, metric, mask, least = UINT32_MAX;

    name[0] = 0;
    while (routes && fgets(line, sizeof line, routes))
        if (sscanf(line, "%15s %x %*x %x %*d %*d %u %x", interface, &to, &flags, &metric, &mask)
                == 5
            && to == 0 && mask == 0 && (flags & 1) && metric < least) {
            least = metric;
            snprintf(name, IF_NAMESIZE, "%s", interface);
        }
    if (routes)
        fclose(routes);
}

void default_hardware(char text[HARDWARE_TEXT])
{
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq request = { 0 };
    const unsigned char *bytes = (const unsigned char *)request.ifr_hwaddr.sa_data;

    text[0] = 0;
    default_interface(request.ifr_name);
    if (fd >= 0 && request.ifr_name[0] && ioctl(fd, SIOCGIFHWADDR, &request) == 0)
        snprintf(text, HARDWARE_TEXT, "%02x%02x%02x%02x%02x%02x", bytes[0], bytes[1], bytes[2],
                 bytes[3], bytes[4], bytes[5]);
    if (fd >= 0)
        close(fd);
}
