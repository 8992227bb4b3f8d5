/* SPDX-License-Identifier: Apache-2.0 */
/* py_spy.c - where Python programs are, by py-spy, which reads their memory from outside. */
#include "launcher/ctctl/py_spy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/ctctl/run_tool.h"
#include "launcher/inspect/page_reader.h"

#define TIMEOUT_S 10

int python_is_it(const struct process_snapshot *process)
{
    char path[64], link[512];
    const char *name;
    ssize_t length;

    snprintf(path, sizeof path, "/proc/%d/exe", (int)process->pid);
    length = readlink(path, link, sizeof link - 1);
    link[length > 0 ? length : 0] = '\0';
    name = strrchr(link, '/');
    return !strncmp(name ? name + 1 : process->name, "python", 6);
}

/* Thread 4310 (idle): "MainThread"
 *     step (train.py:12)
 *     <module> (train.py:40) */
int python_frame(const char *dump, char *text, size_t size)
{
    const char *thread = strstr(dump, "\"MainThread\""), *line, *open, *close;
    char function[80], place[100];

    line = thread ? strchr(thread, '\n') : NULL;
    if (!line || strncmp(line, "\n    ", 5) != 0)
        return 0;
    line += 5;
    open = strstr(line, " (");
    close = open ? strchr(open, ')') : NULL;
    if (!close || memchr(line, '\n', (size_t)(close - line)))
        return 0;
    page_text(function, sizeof function, line, (size_t)(open - line));
    page_text(place, sizeof place, open + 2, (size_t)(close - open - 2));
    snprintf(text, size, "%s (%s)", place, function);
    return 1;
}

int python_line(const struct rank_snapshot *rank, char *text, size_t size)
{
    char pid[24], *argv[] = { "py-spy", "dump", "--nonblocking", "--pid", pid, NULL };
    struct text out = { 0 };
    int found = 0;

    if (!rank->process.state || !tool_is_there("py-spy") || !python_is_it(&rank->process))
        return 0;
    snprintf(pid, sizeof pid, "%d", (int)rank->process.pid);
    if (tool_run(argv, TIMEOUT_S, &out) == 0) {
        text_add(&out, "", 1);
        found = out.data && python_frame(out.data, text, size);
    }
    free(out.data);
    return found;
}
