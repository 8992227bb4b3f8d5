/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - ctctl: shows the jobs of this host, merges the traces that jobs left, and examines hosts
 * before a job.
 *
 * It is a program of its own: ctrun would take a command's name for the user's program.  It reads
 * the control pages and /proc and needs no answer, so it works while ranks and ctrun hang, are
 * stopped, or are dead. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/ct.h"
#include "launcher/ctctl/command_table.h"
#include "launcher/util/standard_output.h"

int job_is_selected(const struct job_snapshot *job, const struct ctctl_options *options)
{
    char *end;
    long pid;

    if (!options->job || !strcmp(job->run_id, options->job))
        return 1;
    pid = strtol(options->job, &end, 10);
    return end != options->job && *end == '\0' && pid == job->launcher;
}

static int doctor(const struct ctctl_options *options)
{
    struct doctor_options words = options->doctor;

    words.json = options->json;
    words.verbose = options->verbose;
    return doctor_run(&words);
}

static int list_and_run(int (*command)(struct job_list *, const struct ctctl_options *),
                        const struct ctctl_options *options)
{
    struct job_list jobs;
    int found = 0, code = WRONG_USAGE;

    if (job_list_find(&jobs) < 0) {
        fprintf(stderr, "ctctl: %s\n", strerror(errno));
    } else {
        for (int i = 0; i < jobs.count; i++)
            found += job_is_selected(&jobs.job[i], options);
        if (options->job && found == 0)
            fprintf(stderr, "ctctl: no job %s runs here%s; ctctl ps lists those that do\n",
                    options->job, jobs.count == 0 ? " (nor any other)" : "");
        else
            code = command(&jobs, options);
    }
    job_list_free(&jobs);
    return code;
}

/* [JOB] RANK.  0, or the exit code after a message. */
static int take_rank(struct ctctl_options *options, char **words, int *count)
{
    char *end = NULL;

    options->rank = *count > 0 ? (int)strtol(words[*count - 1], &end, 10) : -1;
    if (*count < 1 || *count > 2 || *end || end == words[*count - 1] || options->rank < 0)
        return ctctl_wrong("stack: name a rank: ctctl stack [JOB] RANK", "");
    (*count)--;
    return 0;
}

/* words: those behind the command. */
static int run(const char *command, struct ctctl_options *options, char **words, int count)
{
    const int is_stack = !strcmp(command, "stack"), is_status = !strcmp(command, "status");
    const int is_top = !strcmp(command, "top"), most = is_stack || is_status || is_top;

    if (!strcmp(command, "trace merge"))
        return count > 0
                   ? command_trace_merge(words, count, options->output)
                   : ctctl_wrong("trace merge: name the files: ctctl trace merge FILE...", "");
    if (!strcmp(command, "new"))
        return count == 1 ? command_new(words[0])
                          : ctctl_wrong("new: name the program: ctctl new NAME", "");
    if (is_stack && take_rank(options, words, &count) != 0)
        return WRONG_USAGE;
    if (count > most)
        return ctctl_wrong("too many arguments: ", words[most]);
    options->job = count > 0 ? words[0] : NULL;
    if (!strcmp(command, "doctor"))
        return doctor(options);
    return list_and_run(is_stack    ? command_stack
                        : is_status ? command_status
                        : is_top    ? command_top
                                    : command_ps,
                        options);
}

static int act(struct ctctl_options *options, unsigned taken, char **words, int count)
{
    const struct command_row *command = ctctl_command(words, count);
    int length = 1;

    if (count == 0)
        return ctctl_wrong("name a command: ps, status, top, stack, trace merge, new or doctor",
                           "");
    if (!command && !strcmp(words[0], "trace"))
        return ctctl_wrong("trace: name what to do: ctctl trace merge FILE...", "");
    if (!command)
        return ctctl_unknown("unknown command: ", words[0]);
    if (ctctl_check_options(command, taken) != 0)
        return WRONG_USAGE;
    for (const char *blank = command->name; (blank = strchr(blank, ' ')) != NULL; blank++)
        length++;
    return run(command->name, options, words + length, count - length);
}

int main(int argc, char **argv)
{
    struct ctctl_options options = { .after_s = 1 };
    unsigned taken = 0;
    int code = doctor_on_host(argv), option;

    if (code >= 0)
        return code;
    option = ctctl_read_options(&options, &taken, argc, argv);
    if (option < 0)
        return WRONG_USAGE;
    code = 0;
    if (option == CTCTL_HELP)
        ctctl_help(stdout);
    else if (option == CTCTL_VERSION)
        printf("ctctl %s\n", CT_VERSION);
    else if (option == CTCTL_PRINT_COMPLETION)
        code = ctctl_completion(options.shell);
    else
        code = act(&options, taken, argv + optind, argc - optind);
    return standard_output_close("ctctl", code);
}
