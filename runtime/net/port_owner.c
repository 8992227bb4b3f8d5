/* SPDX-License-Identifier: Apache-2.0 */
/* port_owner.c - finds the process that listens on a port.  /proc/net/tcp gives the socket's inode,
 * and /proc/<pid>/fd shows which process has that socket open.  Only root can read /proc/<pid>/fd
 * of other users' processes. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/net/socket.h"

#define LISTENING 0x0a

static unsigned long inode_in(const char *path, int port)
{
    FILE *file = fopen(path, "re");
    unsigned long inode = 0, found = 0;
    char line[512];
    unsigned local, state;

    while (file && !found && fgets(line, sizeof line, file))
        if (sscanf(line, " %*d: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*s %*s %*s %*s %*s %lu",
                   &local, &state, &inode)
                == 3
            && local == (unsigned)port && state == LISTENING)
            found = inode;
    if (file)
        fclose(file);
    return found;
}

static int has_socket(const char *pid, const char *wanted)
{
    char path[300], target[64];
    struct dirent *entry;
    int found = 0;
    DIR *fds;

    snprintf(path, sizeof path, "/proc/%.20s/fd", pid);
    fds = opendir(path);
    while (fds && !found && (entry = readdir(fds))) {
        ssize_t n;

        snprintf(path, sizeof path, "/proc/%.20s/fd/%.20s", pid, entry->d_name);
        n = readlink(path, target, sizeof target - 1);
        target[n > 0 ? n : 0] = 0;
        found = !strcmp(target, wanted);
    }
    if (fds)
        closedir(fds);
    return found;
}

static void port_describe(const char *pid, char *text, size_t size)
{
    char path[64], name[64] = "?";
    FILE *file;

    snprintf(path, sizeof path, "/proc/%.20s/comm", pid);
    file = fopen(path, "re");
    if (file) {
        if (fgets(name, sizeof name, file))
            name[strcspn(name, "\n")] = 0;
        fclose(file);
    }
    snprintf(text, size, "pid %.20s (%s)", pid, name);
}

void socket_port_owner(int port, char *text, size_t size)
{
    unsigned long inode = inode_in("/proc/net/tcp", port);
    struct dirent *entry;
    char wanted[64];
    DIR *processes;

    text[0] = 0;
    if (!inode)
        inode = inode_in("/proc/net/tcp6", port);
    if (!inode)
        return;
    snprintf(wanted, sizeof wanted, "socket:[%lu]", inode);
    processes = opendir("/proc");
    while (processes && !text[0] && (entry = readdir(processes)))
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' && has_socket(entry->d_name, wanted))
            port_describe(entry->d_name, text, size);
    if (processes)
        closedir(processes);
}
