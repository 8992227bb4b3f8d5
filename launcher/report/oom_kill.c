/* SPDX-License-Identifier: Apache-2.0 */
/* oom_kill.c - finds out that the kernel sent SIGKILL, by the kill counter of the cgroup.
 *
 * v2: memory.events has "oom_kill N", whether the limit was that of ctrun's cgroup, of a cgroup
 * above it or of the machine.  v1: memory.oom_control has it.  ctrun names the smallest limit from
 * its cgroup upwards. */
#include "launcher/report/oom_kill.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* "" if there is no such file. */
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

/* Gives the number after "key " at the start of a line; -1: no such line. */
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

/* In a container the group's path may be the host's.  If nothing is there, the root of the mount
 * is the group. */
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

/* Lines are "0::/a/b" of v2 and "4:memory:/a/b" of v1; both may be there. */
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

/* Gives a number of bytes; -1: no limit, which v1 writes as a number near 2^63. */
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
