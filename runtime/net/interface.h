/* SPDX-License-Identifier: Apache-2.0 */
/* interface.h - the network interfaces of this host. */
#ifndef RUNTIME_NET_INTERFACE_H
#define RUNTIME_NET_INTERFACE_H

#include <net/if.h>
#include <stdint.h>

#include "runtime/util/error.h"

/* The interface of the default route (IPv4); "": there is none. */
void default_interface(char name[IF_NAMESIZE]);

/* Its hardware address, "0242ac110002"; "": there is none. */
#define HARDWARE_TEXT 13
void default_hardware(char text[HARDWARE_TEXT]);

/* The address, as text, of the interface that `value` names, or whose address it is; of a list
 * (gloo's, with commas) of the first that is there.  CT_ERR_INVALID: there is none that is up; the
 * sentence begins with what=value and lists those that are. */
ct_status interface_address(const char *what, const char *value, char *text, size_t size);
/* Mbit/s of the link of the interface with this address, as its driver says; 0: it is unknown. */
uint32_t interface_speed(const char *address);
/* The same as interface_address(), of the default route's interface, or of the first one that leads
 * out of this host. */
ct_status interface_outward(char *text, size_t size);
/* Those of all interfaces that lead out of this host, with commas between them, in the order in
 * which interface_outward() prefers them; without those to containers and the like, if there are
 * others.  With interface_variable() the one that it names. */
ct_status interface_addresses(char *list, size_t size);

/* CT_INTERFACE or GLOO_SOCKET_IFNAME, which name the interface that the user wants; NULL: neither
 * is set. */
const char *interface_variable(void);

/* Why the loopback does not work, and what to do; NULL: nothing is wrong. */
const char *interface_loopback_fault(int is_ipv6_fine); /* ::1 alone will do */

#endif
