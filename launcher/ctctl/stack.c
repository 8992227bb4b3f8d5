/* SPDX-License-Identifier: Apache-2.0 */
/* stack.c - implements ctctl stack, which prints the stacks of a rank with the tools that are
 * installed.  Without a tool, it prints what /proc shows. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/ctctl/command_table.h"
#include "launcher/inspect/page_reader.h"
#include "launcher/inspect/source_lines.h"
#include "launcher/util/run_tool.h"
#include "launcher/inspect/proc_info.h"
#include "launcher/inspect/verdict_text.h"

#define TIMEOUT_S 60 /* most seconds of a tool; a debugger reads the symbols of every library */

static int stack_show(char **argv)
{
    struct text out = { 0 };
    const int code = tool_run(argv, TIMEOUT_S, &out);

    fwrite(out.data, 1, out.used, stdout);
    free(out.data);
    if (code != 0)
        fprintf(stderr, "ctctl: %s %s\n", argv[0],
                code < 0 ? "could not be run, or did not end in time"
                         : "failed; its output is above");
    return code == 0;
}

/* Prints the Python stacks that the rank's observer wrote, a text that ends in a 0 byte.  Returns
 * 1, or 0 if there are none. */
static int by_observer(const struct rank_snapshot *rank)
{
    static const size_t room = 1 << 18;
    const int fd = rank->observer == OBSERVER_ANSWERED
                       ? process_memfd(rank->process.pid, rank->stacks_fd, "ct-stacks")
                       : -1;
    char line[400], *text = fd >= 0 ? calloc(1, room + 1) : NULL, *rest = NULL;
    const int found = text && pread(fd, text, room, 0) > 0 && *text;

    for (char *at = found ? strtok_r(text, "\n", &rest) : NULL; at;
         at = strtok_r(NULL, "\n", &rest)) {
        page_text(line, sizeof line, at, strlen(at));
        printf("%s\n", line);
    }
    free(text);
    if (fd >= 0)
        close(fd);
    return found;
}

static int by_py_spy(char *pid)
{
    char *argv[] = { "py-spy", "dump", "--pid", pid, NULL };

    printf("Python:\n");
    fflush(stdout);
    return stack_show(argv);
}

static int by_c_tool(char *pid)
{
    char *eu_stack[] = { "eu-stack", "-s", "-p", pid, NULL }; /* -s: with source lines */
    char *gdb[] = {
        "gdb", "--batch", "-nx", "-ex", "set pagination off", "-ex", "thread apply all bt",
        "-p",  pid,       NULL
    };

    if (tool_is_there("eu-stack") && stack_show(eu_stack))
        return 1;
    return tool_is_there("gdb") && stack_show(gdb);
}

/* Prints what /proc shows about the process.  Used if no tool is installed, or all tools failed. */
static void by_proc(const struct process_snapshot *process)
{
    static const char *const files[] = { "wchan", "syscall", "stack" };
    char text[8192];

    printf("state %c%s%s\n", process->state, *process->waits_in ? ", in " : "", process->waits_in);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (process_file(process->pid, files[i], text, sizeof text) > 0) {
            const char *newline = strchr(text, '\n');

            printf("/proc/%d/%s: %s%s%s", (int)process->pid, files[i],
                   newline && newline[1] ? "\n" : "", text,
                   text[strlen(text) - 1] == '\n' ? "" : "\n");
        }
}

static int show_rank(const struct job_snapshot *job, const struct rank_snapshot *rank)
{
    const struct process_snapshot *process = &rank->process;
    const int python = python_is_it(process);
    char pid[24], call[RANK_TEXT];
    int shown = 0;

    if (process->pid == 0) {
        fprintf(stderr, "ctctl: rank %d of job %s is not started yet\n", rank->rank, job->run_id);
        return WRONG_USAGE;
    }
    if (!process->state) {
        fprintf(stderr, "ctctl: rank %d of job %s has no process any more (its pid was %d)\n",
                rank->rank, job->run_id, (int)process->pid);
        return WRONG_USAGE;
    }
    snprintf(pid, sizeof pid, "%d", (int)process->pid);
    printf("rank %d of job %s, pid %s: %s\n", rank->rank, job->run_id, pid, rank->command);
    describe_rank(job, rank, call, sizeof call);
    if (rank_is_in_call(rank))
        printf("%s\n", call);
    fflush(stdout);
    if (rank->observer == OBSERVER_SILENT)
        printf(
            "its Python threads do not answer, since one of them holds Python's lock (the GIL)\n");
    if (by_observer(rank))
        shown = 1;
    else if (python && tool_is_there("py-spy"))
        shown |= by_py_spy(pid);
    else if (python)
        printf("Python lines need py-spy (pip install py-spy); this is the interpreter's stack:\n");
    fflush(stdout);
    shown |= by_c_tool(pid);
    if (!shown)
        by_proc(process);
    if (!shown && !tool_is_there("eu-stack") && !tool_is_there("gdb"))
        printf("the stack needs eu-stack or gdb: apt-get install elfutils\n");
    return NO_RANK_WAITS;
}

static int stack_show_jobs(struct job_list *jobs, const struct ctctl_options *options)
{
    const struct job_snapshot *found = NULL;
    const struct rank_snapshot *rank = NULL;

    for (int i = 0; i < jobs->count; i++)
        for (int j = 0; j < jobs->job[i].ranks; j++) {
            struct job_snapshot *job = &jobs->job[i];

            if (!job_is_selected(job, options) || job->rank[j].rank != options->rank)
                continue;
            if (found && found != job) {
                fprintf(stderr,
                        "ctctl: several jobs have a rank %d here: name one (ctctl ps), as in "
                        "ctctl stack %d %d\n",
                        options->rank, (int)job->launcher, options->rank);
                return WRONG_USAGE;
            }
            source_lines(job);
            found = job;
            rank = &job->rank[j];
        }
    if (rank)
        return show_rank(found, rank);
    fprintf(stderr, "ctctl: there is no rank %d here; ctctl status -v lists those that are\n",
            options->rank);
    return WRONG_USAGE;
}

/* The words are [JOB] RANK. */
int command_stack(struct ctctl_options *options, char **words, int count)
{
    char *end;

    options->rank = (int)strtol(words[count - 1], &end, 10);
    if (*end || end == words[count - 1] || options->rank < 0)
        return ctctl_wrong("stack: it must be the number of a rank, not ", words[count - 1]);
    return jobs_run(options, words, count - 1, stack_show_jobs);
}
