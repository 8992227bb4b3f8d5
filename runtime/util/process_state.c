/* SPDX-License-Identifier: Apache-2.0 */
/* process_state.c - reads from /proc whether a process is stopped, and asks the kernel whether it
 * has ended.  A stop by a signal or a debugger shows in the state in /proc/<pid>/stat.  The freezer
 * of a control group does not change that state, so the groups in /proc/<pid>/cgroup are checked,
 * too. */
#include "runtime/util/process_state.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/util/log.h"

#define NUMBER_OF_PIDFD_OPEN 434 /* the same on all architectures */

/* Reads the file into text and ends text with a 0.  Returns the number of bytes, or 0 if the file
 * can't be read. */
static size_t process_read_file(const char *path, char *text, size_t size)
{
    FILE *file = fopen(path, "re");
    size_t bytes;

    text[0] = 0;
    if (!file)
        return 0;
    bytes = fread(text, 1, size - 1, file);
    text[bytes] = 0;
    fclose(file);
    return bytes;
}

/* Field 2 is the process's name in parentheses and may hold any character, so fields are counted
 * from the last ')'. */
const char *process_stat(pid_t pid, int field, char text[PROCESS_FIELD])
{
    char path[64], stat[1024];
    const char *at;

    text[0] = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    if (process_read_file(path, stat, sizeof stat) == 0)
        return text;
    at = strrchr(stat, ')');
    for (int i = 2; at && i < field; i++)
        at = strchr(at + 1, ' ');
    if (at)
        snprintf(text, PROCESS_FIELD, "%.*s", (int)strcspn(at + 1, " \n"), at + 1);
    return text;
}

char process_state(pid_t pid)
{
    char text[PROCESS_FIELD];

    return *process_stat(pid, 3, text);
}

/* Returns 1 if the group in a line of /proc/<pid>/cgroup is frozen.  The line is
 * "number:controllers:path".  In version 2 the number is 0 and the controllers are empty. */
static int is_frozen_in(const char *line)
{
    const char *const path = strchr(line, '/');
    char file[1200], text[512];

    if (path && !strncmp(line, "0::", 3)) {
        snprintf(file, sizeof file, "/sys/fs/cgroup%s/cgroup.events", path);
        return process_read_file(file, text, sizeof text) && strstr(text, "frozen 1") != NULL;
    }
    if (path && strstr(line, ":freezer:")) {
        snprintf(file, sizeof file, "/sys/fs/cgroup/freezer%s/freezer.state", path);
        return process_read_file(file, text, sizeof text) && !strncmp(text, "FROZEN", 6);
    }
    return 0;
}

static int is_frozen(pid_t pid)
{
    char path[64], text[4096], *rest = text, *line;

    snprintf(path, sizeof path, "/proc/%d/cgroup", (int)pid);
    process_read_file(path, text, sizeof text);
    while ((line = strsep(&rest, "\n")))
        if (is_frozen_in(line))
            return 1;
    return 0;
}

char process_is_stopped(pid_t pid)
{
    const char state = pid > 0 ? process_state(pid) : 0;

    return state == 'T' || state == 't' ? state : state && is_frozen(pid) ? 'F' : 0;
}

int process_open(pid_t pid)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;
    const int fd = (int)syscall(NUMBER_OF_PIDFD_OPEN, pid, 0);

    if (fd < 0 && errno != ESRCH)
        log_missing(&said, "pidfd_open()",
                    "deaths are noticed up to 100 ms later, and of workers that die at the same "
                    "moment the first one is not known");
    return fd;
}

/* Without a pidfd, a process with this pid may be a new one, but pids are reused late. */
int process_has_ended(pid_t pid)
{
    struct pollfd ended = { .fd = process_open(pid), .events = POLLIN };
    int has_ended;
    char state;

    if (ended.fd < 0 && errno == ESRCH)
        return 1;
    if (ended.fd < 0) {
        state = process_state(pid);
        return state == 'Z' || state == 'X' || (kill(pid, 0) < 0 && errno == ESRCH);
    }
    has_ended = poll(&ended, 1, 0) > 0; /* also readable for a zombie */
    close(ended.fd);
    return has_ended;
}
