/* SPDX-License-Identifier: Apache-2.0 */
/* rendezvous.c - one node: the store is ours, on the loopback, at a free port.
 *
 * The socket is bound before anything else happens and never let go, so nobody
 * can take the port between choosing and using it.  Nothing is looked up unless
 * the user named a host. */
#include "launcher/rendezvous.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "runtime/clock.h"
#include "runtime/log.h"
#include "runtime/socket.h"

/* Version 4: random but for six bits. */
static void new_uuid(char *text, size_t size)
{
    unsigned char b[16] = { 0 };

    if (getrandom(b, sizeof b, 0) < 0)
        memcpy(b, &(pid_t){ getpid() }, sizeof(pid_t));
    b[6] = (unsigned char)((b[6] & 0x0f) | 0x40);
    b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
    snprintf(text, size, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
             b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13],
             b[14], b[15]);
}

/* "[::1]" is how a user writes it, "::1" what workers are told. */
static void copy_host(char *to, size_t size, const char *host)
{
    const size_t length = strlen(host);

    if (length > 2 && host[0] == '[' && host[length - 1] == ']')
        snprintf(to, size, "%.*s", (int)(length - 2), host + 1);
    else
        snprintf(to, size, "%s", host);
}

void rendezvous_plan(struct rendezvous *meet, const struct options *options, const char **why)
{
    const char *host = options->master_addr ? options->master_addr : options->local_addr;

    *meet = (struct rendezvous){ .listener = -1 };
    *why = "one node: loopback, nothing is looked up";
    if (host && !options->standalone) {
        copy_host(meet->address, sizeof meet->address, host);
        *why = options->master_addr ? "--master-addr" : "--local-addr";
    } else
        strcpy(meet->address, "127.0.0.1");
    if (options->standalone)
        *why = "--standalone: loopback, any free port";
    else
        meet->port = options->master_port;
    /* torchrun: a port makes it a "static" job, which keeps its name. */
    if (meet->port > 0)
        snprintf(meet->run_id, sizeof meet->run_id, "%s", options->rdzv_id);
    else
        new_uuid(meet->run_id, sizeof meet->run_id);
}

int rendezvous_open(struct rendezvous *meet, const struct options *options)
{
    const char *why;

    rendezvous_plan(meet, options, &why);
    if (socket_listen(meet->address, meet->port, &meet->listener) != CT_OK) {
        log_line(LOG_ERROR, "%s", ct_last_error());
        return 1;
    }
    meet->port = socket_port(meet->listener);
    return 0;
}

int rendezvous_serve(struct rendezvous *meet, struct event_base *base)
{
    const ct_status status = store_server_create(base, meet->listener, &meet->server);

    meet->listener = -1;
    if (status == CT_OK)
        return 0;
    log_line(LOG_ERROR, "%s", ct_last_error());
    return 1;
}

void rendezvous_new_round(struct rendezvous *meet)
{
    uint64_t random = (uint64_t)getpid() << 32 | (uint64_t)clock_ms();

    if (getrandom(&random, sizeof random, 0) < 0)
        log_line(LOG_INFO, "no random numbers: the generation is made of pid and clock");
    snprintf(meet->generation, sizeof meet->generation, "%016llx", (unsigned long long)random);
    store_server_clear(meet->server);
}

int rendezvous_arrived(const struct rendezvous *meet, int rank)
{
    char key[64];

    snprintf(key, sizeof key, "/ct/%s/arrived/%d", meet->generation, rank);
    return store_server_has(meet->server, key);
}

void rendezvous_close(struct rendezvous *meet)
{
    store_server_destroy(meet->server);
    if (meet->listener >= 0)
        close(meet->listener);
    *meet = (struct rendezvous){ .listener = -1 };
}
