/* SPDX-License-Identifier: Apache-2.0 */
/* interface.h - the network interfaces of this host. */
#ifndef RUNTIME_NET_INTERFACE_H
#define RUNTIME_NET_INTERFACE_H

#include <net/if.h>
#include <stdint.h>

#include "runtime/util/error.h"

/* Writes the name of the interface of the default route (IPv4); "" without such a route. */
void default_interface(char name[IF_NAMESIZE]);

/* Writes the hardware address of the interface of the default route, such as "0242ac110002"; ""
 * without such a route. */
#define HARDWARE_TEXT 13
void default_hardware(char text[HARDWARE_TEXT]);

/* Writes the address of the interface that `value` gives by name or by address.  If `value` is a
 * list (with commas, as gloo allows), the first interface that exists is taken.  Returns
 * CT_ERR_INVALID if no such interface is up; the error message begins with what=value and lists the
 * interfaces that are up. */
ct_status interface_address(const char *what, const char *value, char *text, size_t size);
/* Returns the speed of the link of the interface with this address in Mbit/s, as the driver reports
 * it; 0 if it is unknown. */
uint32_t interface_speed(const char *address);
/* Writes the address of the default route's interface, or else of the first interface that leads
 * out of this host. */
ct_status interface_outward(char *text, size_t size);
/* Writes the addresses of all interfaces that lead out of this host, separated by commas, in the
 * order in which interface_outward() prefers them.  Interfaces to containers and virtual machines
 * of this host are left out if there are others.  If interface_variable() is set, only the address
 * of the interface that it names is written. */
ct_status interface_addresses(char *list, size_t size);

/* Returns the name of the variable that is set to the interface the user wants: CT_INTERFACE or
 * GLOO_SOCKET_IFNAME; NULL if neither is set. */
const char *interface_variable(void);

/* Returns why the loopback interface does not work, and what to do; NULL if it works.  If
 * is_ipv6_fine, ::1 without 127.0.0.1 is enough. */
const char *interface_loopback_fault(int is_ipv6_fine);

#endif
