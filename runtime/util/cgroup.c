/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup.c - reads the limits of this process's control groups (cgroups).  A container often gets
 * the time of a few CPUs while its affinity mask has all CPUs of the host.
 *
 * A limit binds its group and all groups below.  So the code reads every group from this process's
 * group up to the root and takes the smallest limit.  Version 2 has one tree, in which cpu.max
 * holds quota and period ("150000 100000" or "max 100000").  Version 1 has a tree for each
 * controller and a file for each of the two numbers.  A container may see only a part of the tree.
 * Then this process's path, which is valid on the host, does not exist in the container, and the
 * root that the container sees is this process's group. */
#include "runtime/util/cgroup.h"

#include <stdio.h>
#include <string.h>

/* A quota of at least this many CPUs counts as no limit. */
#define MOST_CPUS 1000000
#define MOST_PERIOD_US 1000000000 /* 1000 s; the kernel accepts at most 1 s */

static long long in_milli_cpus(long long quota, long long period)
{
    long long milli;

    if (quota <= 0 || period <= 0 || period > MOST_PERIOD_US || quota / period >= MOST_CPUS)
        return 0;
    milli = quota / period * 1000 + quota % period * 1000 / period;
    return milli > 0 ? milli : 1;
}

/* Reads the one or two numbers at the start of the group's file `name`.  Returns how many numbers
 * were read, and 0 or -1 if none were. */
static int read_numbers(const char *group, const char *name, long long *first, long long *second)
{
    char path[1100], text[64] = "";
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", group, name);
    file = fopen(path, "re");
    if (!file)
        return 0;
    if (!fgets(text, sizeof text, file))
        *text = '\0';
    fclose(file);
    return sscanf(text, "%lld %lld", first, second);
}

/* Returns the limit in the file `most` minus the use in the file `now`, and at least 1.  Returns 0
 * if the group has no limit. */
static long long left_in(const char *group, const char *most, const char *now)
{
    long long limit, used, none;

    if (read_numbers(group, most, &limit, &none) < 1 || read_numbers(group, now, &used, &none) < 1)
        return 0;
    return limit > used ? limit - used : 1;
}

static long long pids_left(const char *group)
{
    return left_in(group, "pids.max", "pids.current");
}

static long long memory_left(const char *group)
{
    return left_in(group, "memory.max", "memory.current");
}

static long long limit_v2(const char *group)
{
    long long quota, period;

    return read_numbers(group, "cpu.max", &quota, &period) == 2 ? in_milli_cpus(quota, period) : 0;
}

static long long limit_v1(const char *group)
{
    long long quota, period, none;

    return read_numbers(group, "cpu.cfs_quota_us", &quota, &none) >= 1
                   && read_numbers(group, "cpu.cfs_period_us", &period, &none) >= 1
               ? in_milli_cpus(quota, period)
               : 0;
}

/* Returns the smallest limit of the group `path` in the tree `mount` and of the groups above it, or
 * 0 if none of them has a limit.  A path with "/.." lies outside of the visible tree, so only the
 * root is read. */
static long long cgroup_least(const char *mount, const char *path,
                              long long (*limit)(const char *group))
{
    char group[1024];
    const size_t top = (size_t)snprintf(group, sizeof group, "%s", mount);
    long long found = 0;

    snprintf(group + top, sizeof group - top, "%s",
             path[1] == '\0' || strstr(path, "/..") ? "" : path);
    for (;;) {
        const long long here = limit(group);
        char *slash = strrchr(group + top, '/');

        if (here > 0 && (found == 0 || here < found))
            found = here;
        if (!slash)
            return found;
        *slash = '\0';
    }
}

/* Returns 1 if "cpu" is one of the controllers, as in "cpu,cpuacct". */
static int names_cpu(const char *controllers, size_t length)
{
    for (size_t i = 0; i < length; i += strcspn(controllers + i, ",:") + 1)
        if (!strncmp(controllers + i, "cpu", 3) && strchr(",:", controllers[i + 3]))
            return 1;
    return 0;
}

/* The functions that read one limit of a group in version 2 and in version 1.  v1 is NULL for a
 * limit that is not read in version 1. */
struct cgroup_limit {
    long long (*v2)(const char *group), (*v1)(const char *group);
};

/* Returns the limit of the group in one line of /proc/self/cgroup, "number:controllers:path", or 0
 * if that group has no limit. */
static long long limit_of_line(const char *root, const char *line, const struct cgroup_limit *limit)
{
    static const char *const trees[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };
    const char *controllers = strchr(line, ':');
    const char *path = controllers ? strchr(controllers + 1, ':') : NULL;
    char mount[300];
    long long found = 0;

    if (!path)
        return 0;
    controllers++;
    if (controllers == path) {
        for (int i = 0; i < 2 && found == 0; i++) {
            snprintf(mount, sizeof mount, "%s%s", root, trees[i]);
            found = cgroup_least(mount, path + 1, limit->v2);
        }
    } else if (limit->v1 && names_cpu(controllers, (size_t)(path - controllers))) {
        snprintf(mount, sizeof mount, "%s/sys/fs/cgroup/%.*s", root, (int)(path - controllers),
                 controllers);
        found = cgroup_least(mount, path + 1, limit->v1);
        snprintf(mount, sizeof mount, "%s/sys/fs/cgroup/cpu", root);
        found = found > 0 ? found : cgroup_least(mount, path + 1, limit->v1);
    }
    return found;
}

static long long least_of_lines(const char *root, const struct cgroup_limit *limit)
{
    char path[300], line[1024];
    long long found = 0;
    FILE *file;

    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file)) {
        long long here;

        line[strcspn(line, "\n")] = '\0';
        here = limit_of_line(root, line, limit);
        if (here > 0 && (found == 0 || here < found))
            found = here;
    }
    if (file)
        fclose(file);
    return found;
}

long long cgroup_milli_cpus(const char *root)
{
    return least_of_lines(root, &(struct cgroup_limit){ limit_v2, limit_v1 });
}

long long cgroup_pids_left(const char *root)
{
    return least_of_lines(root, &(struct cgroup_limit){ pids_left, NULL });
}

long long cgroup_memory_left(const char *root)
{
    return least_of_lines(root, &(struct cgroup_limit){ memory_left, NULL });
}

int cgroup_cpus(const char *root)
{
    return (int)((cgroup_milli_cpus(root) + 999) / 1000);
}
