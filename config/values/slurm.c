/* SPDX-License-Identifier: Apache-2.0 */
/* slurm.c - derives the port of a step, and reads a node's address and number of tasks from
 * Slurm. */
#include "config/values/slurm.h"

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int slurm_step_port(void)
{
    const char *job = getenv("SLURM_JOB_ID"), *step = getenv("SLURM_STEP_ID");
    unsigned hash = 2166136261u; /* FNV-1a; consecutive ids of jobs or steps get different ports */

    if (!job || !*job || !step || !*step)
        return 0;
    for (const char *c = job; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 16777619u;
    for (const char *c = step; *c; c++)
        hash = (hash ^ (unsigned char)(*c + 1)) * 16777619u;
    return SLURM_FIRST_PORT + (int)((hash ^ hash >> 16) % (SLURM_LAST_PORT - SLURM_FIRST_PORT + 1));
}

static int resolves(const char *host)
{
    struct addrinfo *found = NULL;
    const int error = getaddrinfo(host, NULL, NULL, &found);

    if (error == 0)
        freeaddrinfo(found);
    return error == 0;
}

/* Reads the value of NodeAddr from the output of scontrol -o, which prints a node on one line.
 * Returns 0, or -1 if the line has no such value or the value does not fit. */
static int read_address(FILE *from, char *address, size_t size)
{
    static const char field[] = " NodeAddr=";
    char line[8192];
    const char *at = fgets(line, sizeof line, from) ? strstr(line, field) : NULL;
    size_t length;

    if (!at)
        return -1;
    at += sizeof field - 1;
    length = strcspn(at, " \n");
    if (length == 0 || length >= size)
        return -1;
    snprintf(address, size, "%.*s", (int)length, at);
    return 0;
}

/* Waits at most 5 s for a Slurm controller that does not answer. */
int slurm_node_address(char *host, size_t size)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
    char command[400], address[256];
    FILE *scontrol;
    int found;

    if (resolves(host))
        return 0;
    if (host[strspn(host, letters)] || strlen(host) > 255)
        return -1; /* the shell would not take the name as one word */
    snprintf(command, sizeof command, "timeout 5 scontrol -o show node %s 2>/dev/null", host);
    scontrol = popen(command, "re");
    if (!scontrol)
        return -1;
    found = read_address(scontrol, address, sizeof address);
    pclose(scontrol);
    if (found < 0 || strlen(address) >= size || !resolves(address))
        return -1;
    snprintf(host, size, "%s", address);
    return 0;
}

int slurm_tasks_of_node(const char *text, int node)
{
    while (text && *text && node >= 0) {
        int tasks = 0, times = 1, used = 0;

        if (sscanf(text, "%6d%n", &tasks, &used) != 1 || tasks < 1)
            return 0;
        text += used;
        used = 0;
        if (sscanf(text, "(x%6d)%n", &times, &used) == 1 && times > 0)
            text += used;
        if ((node -= times) < 0)
            return tasks;
        text += *text == ',';
    }
    return 0;
}
