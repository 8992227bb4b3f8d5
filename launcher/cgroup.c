/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup.c - a container is often given the time of a few CPUs, not CPUs: then the
 * affinity mask has all of the host's.
 *
 * A limit binds all groups below it, so every group from ours up to the root is
 * looked at and the least counts.  Version 2 has one tree and cpu.max ("150000
 * 100000" or "max 100000"), version 1 a tree for each controller and two files.
 * A container may see only a part of the tree; our path, which is the host's, then
 * leads nowhere, and its root is our group. */
#include "launcher/cgroup.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/topology.h"

/* A quota that no machine could use is none. */
static int ceiling(long long quota, long long period)
{
    const long long cpus = quota > 0 && period > 0 ? quota / period + (quota % period != 0) : 0;

    return cpus < INT_MAX ? (int)cpus : 0;
}

static int limit_v2(const char *group)
{
    long long quota, period;
    char text[64];

    return topology_line(text, sizeof text, "%s/cpu.max", group) == 0
                   && sscanf(text, "%lld %lld", &quota, &period) == 2
               ? ceiling(quota, period)
               : 0;
}

static int limit_v1(const char *group)
{
    char quota[32], period[32];

    return topology_line(quota, sizeof quota, "%s/cpu.cfs_quota_us", group) == 0
                   && topology_line(period, sizeof period, "%s/cpu.cfs_period_us", group) == 0
               ? ceiling(atoll(quota), atoll(period))
               : 0;
}

/* The least limit of the group `path` in the tree `mount` and of those above it. */
static int least(const char *mount, const char *path, int (*limit)(const char *group))
{
    char group[1024];
    const size_t top = (size_t)snprintf(group, sizeof group, "%s", mount);
    int found = 0;

    snprintf(group + top, sizeof group - top, "%s", strstr(path, "/..") ? "" : path);
    for (;;) {
        const int here = limit(group);
        char *slash = strrchr(group + top, '/');

        if (here > 0 && (found == 0 || here < found))
            found = here;
        if (!slash)
            return found;
        *slash = '\0';
    }
}

/* "cpu" among "cpu,cpuacct" */
static int names_cpu(const char *controllers, size_t length)
{
    for (size_t i = 0; i < length; i += strcspn(controllers + i, ",:") + 1)
        if (!strncmp(controllers + i, "cpu", 3) && strchr(",:", controllers[i + 3]))
            return 1;
    return 0;
}

/* One line of /proc/self/cgroup: "number:controllers:path". */
static int limit_of_line(const char *root, const char *line)
{
    static const char *const trees[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };
    const char *controllers = strchr(line, ':');
    const char *path = controllers ? strchr(controllers + 1, ':') : NULL;
    char mount[300];
    int found = 0;

    if (!path)
        return 0;
    controllers++;
    if (controllers == path) {
        for (int i = 0; i < 2 && found == 0; i++) {
            snprintf(mount, sizeof mount, "%s%s", root, trees[i]);
            found = least(mount, path + 1, limit_v2);
        }
    } else if (names_cpu(controllers, (size_t)(path - controllers))) {
        snprintf(mount, sizeof mount, "%s/sys/fs/cgroup/%.*s", root, (int)(path - controllers),
                 controllers);
        found = least(mount, path + 1, limit_v1);
        snprintf(mount, sizeof mount, "%s/sys/fs/cgroup/cpu", root);
        found = found > 0 ? found : least(mount, path + 1, limit_v1);
    }
    return found;
}

int cgroup_cpus(const char *root)
{
    char path[300], line[1024];
    int found = 0;
    FILE *file;

    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file)) {
        int here;

        line[strcspn(line, "\n")] = '\0';
        here = limit_of_line(root, line);
        if (here > 0 && (found == 0 || here < found))
            found = here;
    }
    if (file)
        fclose(file);
    return found;
}
