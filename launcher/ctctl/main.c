/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - ctctl: looks at the jobs of this host.
 *
 * A program of its own, so that no command of it can be taken for a user's program by ctrun.  It
 * asks nobody: it reads the control pages and /proc, so it answers while ranks and ctrun hang, are
 * stopped, or have died. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/suggest.h"
#include "include/ct.h"
#include "launcher/ctctl/ctctl.h"
#include "launcher/util/standard_output.h"

static const char help[] =
    "usage: ctctl ps     [--json]\n"
    "       ctctl status [--json] [-v] [--after=SECONDS] [JOB]\n"
    "       ctctl stack  [JOB] RANK\n"
    "\n"
    "Looks at the jobs that run on this host: yours, or everybody's for root.  Nobody is\n"
    "asked, so it answers while ranks hang or are stopped.\n"
    "\n"
    "  ps       each job, its ctrun, its ranks, and a word for its state\n"
    "  status   a sentence for each group that stands: who waits, since when, in which call\n"
    "           of which source line, and who is missing and where that one is\n"
    "  stack    the stack of a rank: eu-stack or gdb, py-spy for Python\n"
    "\n"
    "JOB is a run id (--rdzv-id) or the pid of a ctrun; without it, status takes all jobs and\n"
    "stack the only one.  RANK is a rank of the job.\n"
    "\n"
    "  --json             for programs\n"
    "  -v, --verbose      status: also where each rank is\n"
    "  --after=SECONDS    status: who waits for less is on the way (1)\n"
    "  -h, --help         print this\n"
    "  --version          print the version\n"
    "\n"
    "Programs that don't use libct, as PyTorch's, are shown as their processes show: state,\n"
    "CPU time, and their Python line where py-spy is installed.  Ranks that were started\n"
    "without ctrun are found when they use libct.  Other hosts: run ctctl there.\n"
    "\n"
    "Exit code of status: 0 all move, 1 somebody waits or is stopped; 2 for wrong usage, or\n"
    "a job or rank that is not there.\n";

static int wrong(const char *what, const char *which)
{
    fprintf(stderr, "ctctl: %s%s (ctctl --help)\n", what, which);
    return WRONG_USAGE;
}

/* A command or an option that there is not. */
static int unknown(const char *what, const char *typed)
{
    static const char *const words[] = { "ps",        "status",  "stack",  "--json",
                                         "--verbose", "--after", "--help", "--version" };
    struct suggestion best = { NULL, 0 };
    char name[64];

    snprintf(name, sizeof name, "%.*s", (int)strcspn(typed, "="), typed);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        suggest(&best, name, words[i]);
    fprintf(stderr, "ctctl: %s%s%s%s%s (ctctl --help)\n", what, typed,
            best.word ? "; did you mean " : "", best.word ? best.word : "", best.word ? "?" : "");
    return WRONG_USAGE;
}

int job_is_wanted(const struct job_snapshot *job, const struct wanted *wanted)
{
    char *end;
    long pid;

    if (!wanted->job || !strcmp(job->run_id, wanted->job))
        return 1;
    pid = strtol(wanted->job, &end, 10);
    return end != wanted->job && *end == '\0' && pid == job->launcher;
}

/* 0, or the exit code and the sentence is said. */
static int read_options(struct wanted *wanted, int argc, char **argv)
{
    static const struct option options[] = {
        { "json", no_argument, NULL, 'j' },        { "verbose", no_argument, NULL, 'v' },
        { "after", required_argument, NULL, 'a' }, { "help", no_argument, NULL, 'h' },
        { "version", no_argument, NULL, 'V' },     { NULL, 0, NULL, 0 },
    };
    char *end;
    int letter;

    opterr = 0;
    while ((letter = getopt_long(argc, argv, "vh", options, NULL)) != -1)
        switch (letter) {
        case 'j':
            wanted->json = 1;
            break;
        case 'v':
            wanted->verbose = 1;
            break;
        case 'a':
            wanted->after_s = strtod(optarg, &end);
            if (end == optarg || *end || !(wanted->after_s >= 0) || wanted->after_s > 1e9)
                return wrong("--after: it must be a number of seconds, not ", optarg);
            break;
        case 'h':
            fputs(help, stdout);
            exit(standard_output_close("ctctl", 0));
        case 'V':
            printf("ctctl %s\n", CT_VERSION);
            exit(standard_output_close("ctctl", 0));
        default:
            return unknown("unknown option: ", argv[optind - 1]);
        }
    return 0;
}

static int run(const char *command, struct job_list *jobs, const struct wanted *wanted)
{
    int found = 0;

    for (int i = 0; i < jobs->count; i++)
        found += job_is_wanted(&jobs->job[i], wanted);
    if (wanted->job && found == 0) {
        fprintf(stderr, "ctctl: no job %s runs here%s; ctctl ps lists those that do\n", wanted->job,
                jobs->count == 0 ? " (nor any other)" : "");
        return WRONG_USAGE;
    }
    if (!strcmp(command, "ps"))
        return command_ps(jobs, wanted);
    return !strcmp(command, "status") ? command_status(jobs, wanted) : command_stack(jobs, wanted);
}

int main(int argc, char **argv)
{
    struct wanted wanted = { .after_s = 1 };
    struct job_list jobs;
    const char *command;
    int code = read_options(&wanted, argc, argv), words;
    char *end;

    if (code != 0)
        return code;
    words = argc - optind - 1;
    if (words < 0)
        return wrong("say what: ps, status or stack", "");
    command = argv[optind];
    if (strcmp(command, "ps") != 0 && strcmp(command, "status") != 0
        && strcmp(command, "stack") != 0)
        return unknown("there is no command ", command);
    if (!strcmp(command, "stack")) {
        wanted.rank = words > 0 ? (int)strtol(argv[argc - 1], &end, 10) : -1;
        if (words < 1 || words > 2 || *end || end == argv[argc - 1] || wanted.rank < 0)
            return wrong("stack: say of which rank: ctctl stack [JOB] RANK", "");
        words--;
    }
    if (words > (strcmp(command, "ps") != 0))
        return wrong("too many words: ", argv[optind + 2 - !strcmp(command, "ps")]);
    wanted.job = words > 0 ? argv[optind + 1] : NULL;
    if (job_list_find(&jobs) < 0) {
        fprintf(stderr, "ctctl: %s\n", strerror(errno));
        code = WRONG_USAGE;
    } else {
        code = run(command, &jobs, &wanted);
    }
    job_list_free(&jobs);
    return standard_output_close("ctctl", code);
}
