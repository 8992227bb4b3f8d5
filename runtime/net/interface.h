/* SPDX-License-Identifier: Apache-2.0 */
/* interface.h - the network interface of this host's default route. */
#ifndef RUNTIME_NET_INTERFACE_H
#define RUNTIME_NET_INTERFACE_H

#include <net/if.h>

/* The interface of the default route (IPv4); "": there is none. */
void default_interface(char name[IF_NAMESIZE]);

/* Its hardware address, "0242ac110002"; "": there is none. */
#define HARDWARE_TEXT 13
void default_hardware(char text[HARDWARE_TEXT]);

#endif
