/* SPDX-License-Identifier: Apache-2.0 */
/* oom_kill.c - finds out from the kill counter of the cgroup whether the kernel sent SIGKILL.
 *
 * In cgroup v2, the file memory.events has the counter as "oom_kill N".  The kernel counts each
 * kill there, no matter whether ctrun's cgroup, a cgroup above it or the machine reached its memory
 * limit.  In cgroup v1, the file memory.oom_control has the counter.  oom_killed() reports the
 * smallest limit of ctrun's cgroup and the cgroups above it. */
#include "launcher/report/oom_kill.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Reads a file into `text`, which becomes "" if there is no such file. */
static void oom_slurp(const char *path, char *text, size_t size)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t got = fd < 0 ? -1 : read(fd, text, size - 1);

    if (fd >= 0)
        close(fd);
    text[got > 0 ? got : 0] = '\0';
}

static void slurp_of(const struct oom_watch *oom, const char *group, const char *file, char *text,
                     size_t size)
{
    char path[800];

    snprintf(path, sizeof path, "%s%s/%s", oom->root, group, file);
    oom_slurp(path, text, size);
}

/* Returns the number after "key " at the start of a line, or -1 if there is no such line. */
static long oom_value_of(const char *text, const char *key)
{
    const size_t length = strlen(key);

    for (; *text; text += strcspn(text, "\n"), text += *text == '\n')
        if (!strncmp(text, key, length) && text[length] == ' ')
            return atol(text + length + 1);
    return -1;
}

static long kills_of(const struct oom_watch *oom, const char *group)
{
    char text[512];

    slurp_of(oom, group, oom->v1 ? "memory.oom_control" : "memory.events", text, sizeof text);
    return oom_value_of(text, "oom_kill");
}

/* Uses the cgroup `group` of version 1 or 2, and reads its kill counter.  In a container, the path
 * of the group may be the path on the host.  If there is no counter at that path, uses the root of
 * the mount.  Returns 1 if a counter was found, else 0. */
static int take(struct oom_watch *oom, int v1, const char *root, const char *group, size_t length)
{
    oom->v1 = v1;
    snprintf(oom->root, sizeof oom->root, "%s", root);
    snprintf(oom->group, sizeof oom->group, "%.*s", (int)length, group);
    if (!strcmp(oom->group, "/"))
        oom->group[0] = '\0';
    if ((oom->kills = kills_of(oom, oom->group)) < 0) {
        oom->group[0] = '\0';
        oom->kills = kills_of(oom, "");
    }
    return oom->kills >= 0;
}

/* The file `self` has the line "0::/a/b" for cgroup v2 and the line "4:memory:/a/b" for cgroup v1.
 * A host may have both lines. */
void oom_watch_open(struct oom_watch *oom, const char *mounts, const char *self)
{
    char text[4096], v1_root[128];

    *oom = (struct oom_watch){ .kills = -1 };
    snprintf(v1_root, sizeof v1_root, "%s/memory", mounts);
    oom_slurp(self, text, sizeof text);
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        const char *const controller = strchr(line, ':');
        const char *const group = controller ? strchr(controller + 1, ':') : NULL;
        const size_t length = group ? strcspn(group + 1, "\n") : 0;

        if (!group || group > line + strcspn(line, "\n"))
            continue;
        if (!strncmp(controller, ":memory:", 8) && take(oom, 1, v1_root, group + 1, length))
            return;
        if (!strncmp(line, "0::", 3) && take(oom, 0, mounts, group + 1, length))
            return;
    }
}

void oom_watch_reset(struct oom_watch *oom)
{
    if (oom->kills >= 0)
        oom->kills = kills_of(oom, oom->group);
}

/* ---- Why -------------------------------------------------------------------- */

/* Returns the number of bytes in a file of the cgroup, or -1 if there is no limit.  cgroup v1
 * writes a number near 2^63 if there is no limit. */
static double oom_bytes(const struct oom_watch *oom, const char *group, const char *v1,
                        const char *v2)
{
    char text[64];
    double bytes;

    slurp_of(oom, group, oom->v1 ? v1 : v2, text, sizeof text);
    bytes = strtod(text, NULL);
    return *text >= '0' && *text <= '9' && bytes < 9e18 ? bytes : -1;
}

static void in_units(double bytes, char *text, size_t size)
{
    static const char *const units[] = { "bytes", "KiB", "MiB", "GiB", "TiB" };
    int unit = 0;

    for (; bytes >= 1024 && unit < 4; unit++)
        bytes /= 1024;
    snprintf(text, size, "%.*f %s", unit > 0, bytes, units[unit]);
}

int oom_killed(const struct oom_watch *oom, char *why, size_t size)
{
    double smallest = -1, peak = -1;
    char group[512], limit[32], most[32];

    if (oom->kills < 0 || kills_of(oom, oom->group) <= oom->kills)
        return 0;
    snprintf(group, sizeof group, "%s", oom->group);
    for (;;) {
        const double bytes = oom_bytes(oom, group, "memory.limit_in_bytes", "memory.max");
        char *const slash = strrchr(group, '/');

        if (bytes >= 0 && (smallest < 0 || bytes < smallest)) {
            smallest = bytes;
            peak = oom_bytes(oom, group, "memory.max_usage_in_bytes", "memory.peak");
        }
        if (!slash)
            break;
        *slash = '\0';
    }
    in_units(smallest, limit, sizeof limit);
    in_units(peak, most, sizeof most);
    if (smallest < 0)
        snprintf(why, size, "of the machine; no cgroup limit");
    else
        snprintf(why, size, "cgroup limit %s%s%s", limit, peak < 0 ? "" : ", peak ",
                 peak < 0 ? "" : most);
    return 1;
}
