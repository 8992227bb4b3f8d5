/* SPDX-License-Identifier: Apache-2.0 */
/* endpoint_host.c - who hosts a dynamic rendezvous?
 *
 * Whoever can bind the endpoint, and serves its store from then on; nobody compares names.  A key
 * in it tells the other ctruns that the host is one, which they can link to. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "launcher/nodes/elastic/elastic.h"
#include "runtime/net/socket.h"
#include "runtime/util/log.h"

/* -1: somebody else does, here or elsewhere; else a listener.  A host's own name may
 * mean its loopback: the others come from outside, so then it is all interfaces. */
static int bind_endpoint(const struct meeting *meeting)
{
    const int only_here = !strncmp(meeting->host, "127.", 4) || !strcmp(meeting->host, "::1")
                          || !strcmp(meeting->host, "localhost");
    int fd;

    if (socket_listen(meeting->host, meeting->port, &fd) != CT_OK)
        return -1;
    if (!socket_is_loopback(fd) || only_here)
        return fd;
    close(fd);
    return socket_listen(NULL, meeting->port, &fd) == CT_OK ? fd : -1;
}

int dynamic_host_or_not(struct dynamic *d, const struct meeting *meeting)
{
    const int asked = d->options->rdzv_conf.is_host;
    char key[320];
    const int fd = *meeting->file || asked == 0 ? -1 : bind_endpoint(meeting);

    d->port = meeting->port;
    if (fd < 0 && asked == 1) {
        log_line(LOG_ERROR, "--rdzv-conf=is_host=1: %s", ct_last_error());
        return -1;
    }
    if (fd < 0)
        return 0;
    d->port = socket_port(fd);
    if (store_server_create(d->base, fd, &d->meet->policy, &d->store) == CT_OK) {
        key[0] = '/'; /* as clients' keys travel */
        c10d_host_key(d->meet->run_id, key + 1, sizeof key - 1);
        store_server_put(d->store, key, CT_VERSION, strlen(CT_VERSION));
        store_server_on_agents(d->store, &dynamic_guest_hooks, d);
        return 0;
    }
    log_line(LOG_ERROR, "%s", ct_last_error());
    return -1;
}
