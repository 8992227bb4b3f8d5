/* SPDX-License-Identifier: Apache-2.0 */
/* interface.h - this host's network interfaces, as far as one has to be preferred. */
#ifndef RUNTIME_NET_INTERFACE_H
#define RUNTIME_NET_INTERFACE_H

#include <net/if.h>

/* By which the host reaches what is no neighbour of its own (IPv4); "": there is none. */
void default_interface(char name[IF_NAMESIZE]);

/* That one's hardware address, "0242ac110002"; "": there is none. */
#define HARDWARE_TEXT 13
void default_hardware(char text[HARDWARE_TEXT]);

#endif
