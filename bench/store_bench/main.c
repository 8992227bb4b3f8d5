/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - how fast are servers that speak PyTorch's TCPStore wire?
 *
 *   store_bench [--quick] MODE NAME=HOST:PORT[/PID]...
 *   store_bench floor FILE
 *
 * A raw client: it writes requests as bytes and knows the length of each answer,
 * so that the server is measured and not a library.  A mode goes round the
 * servers in small batches, so that what else the machine does hits all alike.
 * Each figure is one line,
 *
 *   case=latency/add/same-cpu/p50 unit=us server=ours value=13.1
 *
 * where the value is a number, >LIMIT when the case was given up, or refused
 * when the server closed the connection.  With a PID the server's processor time
 * is measured too: on a busy machine it says more than the clock on the wall.
 * Keys begin with a number that no other case uses.
 *
 * floor is a server that does next to nothing: see floor.c. */
#include "bench/store_bench/modes.h"
#include "bench/store_bench/servers.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static const struct {
    const char *name;
    void (*run)(void);
} modes[] = {
    { "memory", memory },         { "latency", latency },     { "throughput", throughput },
    { "rendezvous", rendezvous }, { "many-keys", many_keys }, { "big-values", big_values },
};

static _Noreturn void usage(void)
{
    fprintf(stderr, "usage: store_bench [--quick] MODE NAME=HOST:PORT[/PID]...\n"
                    "       store_bench floor FILE\nmodes:");
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        fprintf(stderr, " %s", modes[i].name);
    fprintf(stderr, "\n");
    exit(2);
}

/* Changes the word. */
static void server_parse(char *word)
{
    struct server *server = &servers[server_count];
    char *host = strchr(word, '='), *port = host ? strchr(host, ':') : NULL;
    char *pid = port ? strchr(port, '/') : NULL;

    if (!port || server_count == MOST_SERVERS)
        usage();
    *host++ = *port++ = 0;
    server->name = word;
    server->pid = pid ? (pid_t)atoi(pid + 1) : 0;
    server->address.sin_family = AF_INET;
    server->address.sin_port = htons((uint16_t)atoi(port));
    if (inet_pton(AF_INET, host, &server->address.sin_addr) != 1)
        usage();
    server_count++;
}

/* 10,000 clients need as many descriptors. */
static void raise_limit(void)
{
    struct rlimit limit;

    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

int main(int argc, char **argv)
{
    const char *mode = NULL;

    raise_limit();
    if (argc == 3 && !strcmp(argv[1], "floor"))
        floor_server(argv[2]);
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--quick"))
            quick = 1;
        else if (!mode)
            mode = argv[i];
        else
            server_parse(argv[i]);
    }
    if (!mode || !server_count)
        usage();
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (!strcmp(mode, modes[i].name)) {
            modes[i].run();
            return 0;
        }
    usage();
}
