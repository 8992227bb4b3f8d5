/* SPDX-License-Identifier: Apache-2.0 */
/* addresses.c - finds the addresses of a host name.  getaddrinfo() has no timeout, and takes half a
 * minute if the name server is unreachable.  So a forked process calls it, and an alarm ends that
 * process. */
#include "launcher/doctor/addresses.h"

#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOOKUP_SECONDS 3

/* Prints each address of the name on a line to `out`, and ends the process.  The exit code is the
 * negative error of getaddrinfo(), 0 for success. */
static _Noreturn void addresses_look_up(const char *name, FILE *out)
{
    const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
    struct addrinfo *found = NULL;
    char text[64];
    int error;

    alarm(LOOKUP_SECONDS);
    error = getaddrinfo(name, NULL, &hints, &found);
    for (const struct addrinfo *at = found; at; at = at->ai_next)
        if (getnameinfo(at->ai_addr, at->ai_addrlen, text, sizeof text, NULL, 0, NI_NUMERICHOST)
            == 0)
            fprintf(out, "%s\n", text);
    fflush(out);
    _exit(-error); /* errors of getaddrinfo() are from -127 to 0 */
}

void addresses_find(struct addresses *addresses, const char *name)
{
    int ends[2], status = 0;
    FILE *from = NULL;
    pid_t pid;

    *addresses = (struct addresses){ .error = "no process to look it up" };
    if (pipe(ends) < 0)
        return;
    if ((pid = fork()) == 0)
        addresses_look_up(name, fdopen(ends[1], "w"));
    close(ends[1]);
    from = fdopen(ends[0], "r");
    while (addresses->count < ADDRESSES
           && fscanf(from, "%63s", addresses->text[addresses->count]) == 1)
        addresses->count++;
    fclose(from);
    if (pid > 0 && waitpid(pid, &status, 0) == pid)
        snprintf(addresses->error, sizeof addresses->error, "%s",
                 WIFEXITED(status) ? gai_strerror(-WEXITSTATUS(status)) : "no answer within 3 s");
}

int is_loopback_address(const char *address)
{
    return !strncmp(address, "127.", 4) || !strcmp(address, "::1");
}
