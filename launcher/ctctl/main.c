/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - ctctl: shows the jobs of this host, merges the traces that jobs left, and examines hosts
 * before a job.
 *
 * It is a program of its own: ctrun would take a command's name for the user's program.  It reads
 * the control pages and /proc and needs no answer, so it works while ranks and ctrun hang, are
 * stopped, or are dead. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/values/suggest.h"
#include "include/ct.h"
#include "launcher/ctctl/ctctl.h"
#include "launcher/util/standard_output.h"

static const char help[] =
    "usage: ctctl ps     [--json]\n"
    "       ctctl status [--json] [-v] [--after=SECONDS] [JOB]\n"
    "       ctctl stack  [JOB] RANK\n"
    "       ctctl trace merge [-o OUT] FILE...\n"
    "       ctctl doctor [--json] [-v] [--hosts=HOST,... | --hostfile=FILE]\n"
    "\n"
    "Shows the jobs that run on this host: yours, or all users' jobs for root.  It reads shared\n"
    "memory and /proc, so it works while ranks or ctrun hang or are stopped.\n"
    "\n"
    "  ps       each job, its ctrun, its ranks, and its state in one word\n"
    "  status   each group in which ranks wait: in which call, at which source line, for how\n"
    "           long, and what the ranks do that they wait for\n"
    "  stack    the stack of a rank: by eu-stack or gdb, by py-spy for Python\n"
    "  trace merge\n"
    "           makes one trace of the files that the nodes of a job wrote (run.node*.json\n"
    "           of ctrun --trace=run.json), on the clock of the first, for ui.perfetto.dev\n"
    "  doctor   can a job run here, or on these hosts: limits, shared memory, GPUs, versions, and\n"
    "           between hosts names, connections, bandwidth, clocks; what is wrong, and the "
    "remedy.\n"
    "           In a Slurm allocation it takes the job's nodes (docs/doctor.md)\n"
    "\n"
    "JOB is a run id (--rdzv-id) or the pid of a ctrun; without it, status takes all jobs and\n"
    "stack the only one.  RANK is a rank of the job.\n"
    "\n"
    "  --json             print JSON for programs (docs/events.md)\n"
    "  -v, --verbose      status: also print where each rank is; doctor: what is ok, too\n"
    "  --after=SECONDS    status: leave out waits that are shorter (1)\n"
    "  -o, --output=OUT   trace merge: the file to write, instead of standard output\n"
    "  --hosts, --hostfile, --ssh, --iface\n"
    "                     doctor: as ctrun has them\n"
    "  -h, --help         print this\n"
    "  --version          print the version\n"
    "\n"
    "If a program does not use libct, as PyTorch's, it shows the processes: state, CPU time, and\n"
    "the Python line if py-spy is installed.  It finds ranks that another launcher started if\n"
    "they use libct.  For ranks of other hosts run ctctl there.\n"
    "\n"
    "Exit code of status: 0 if no rank waits, 1 if a rank waits or is stopped; of trace merge: 1\n"
    "if a file can't be read or written, or is no trace; of doctor: 1 if there is a FAIL; 2 for\n"
    "wrong usage or if there is no such job or rank.\n";

static int wrong(const char *what, const char *which)
{
    fprintf(stderr, "ctctl: %s%s (ctctl --help)\n", what, which);
    return WRONG_USAGE;
}

/* An unknown command or option. */
static int unknown(const char *what, const char *typed)
{
    static const char *const words[] = {
        "ps",        "status",     "stack",   "trace",    "doctor",
        "--json",    "--verbose",  "--after", "--output", "--help",
        "--version", "--hostfile", "--ssh",   "--hosts",  "--iface"
    };
    struct suggestion best = { NULL, 0 };
    char name[64];

    snprintf(name, sizeof name, "%.*s", (int)strcspn(typed, "="), typed);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        suggest(&best, name, words[i]);
    fprintf(stderr, "ctctl: %s%s%s%s%s (ctctl --help)\n", what, typed,
            best.word ? "; did you mean " : "", best.word ? best.word : "", best.word ? "?" : "");
    return WRONG_USAGE;
}

int job_is_selected(const struct job_snapshot *job, const struct ctctl_options *options)
{
    char *end;
    long pid;

    if (!options->job || !strcmp(job->run_id, options->job))
        return 1;
    pid = strtol(options->job, &end, 10);
    return end != options->job && *end == '\0' && pid == job->launcher;
}

/* 0, or the exit code after a message. */
static int read_options(struct ctctl_options *options, int argc, char **argv)
{
    static const struct option known[] = {
        { "json", no_argument, NULL, 'j' },
        { "verbose", no_argument, NULL, 'v' },
        { "after", required_argument, NULL, 'a' },
        { "help", no_argument, NULL, 'h' },
        { "version", no_argument, NULL, 'V' },
        { "output", required_argument, NULL, 'o' },
        { "hosts", required_argument, NULL, 'H' },
        { "hostfile", required_argument, NULL, 'F' },
        { "ssh", required_argument, NULL, 'S' },
        { "iface", required_argument, NULL, 'I' },
        { NULL, 0, NULL, 0 },
    };
    char *end;
    int letter;

    opterr = 0;
    while ((letter = getopt_long(argc, argv, "vho:", known, NULL)) != -1)
        switch (letter) {
        case 'j':
            options->json = 1;
            break;
        case 'v':
            options->verbose = 1;
            break;
        case 'a':
            options->after_s = strtod(optarg, &end);
            if (end == optarg || *end || !(options->after_s >= 0) || options->after_s > 1e9)
                return wrong("--after: it must be a number of seconds, not ", optarg);
            break;
        case 'o':
            options->output = optarg;
            break;
        case 'H':
            options->doctor.hosts = optarg;
            break;
        case 'F':
            options->doctor.hostfile = optarg;
            break;
        case 'S':
            options->doctor.ssh = optarg;
            break;
        case 'I':
            options->doctor.iface = optarg;
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

static int trace(char **words, int count, const struct ctctl_options *options)
{
    if (count < 1 || strcmp(words[0], "merge") != 0)
        return wrong("trace: name what to do: ctctl trace merge FILE...", "");
    if (count < 2)
        return wrong("trace merge: name the files: ctctl trace merge FILE...", "");
    return command_trace_merge(words + 1, count - 1, options->output);
}

static int doctor(const struct ctctl_options *options)
{
    struct doctor_options words = options->doctor;

    words.json = options->json;
    words.verbose = options->verbose;
    return doctor_run(&words);
}

static int run(const char *command, struct job_list *jobs, const struct ctctl_options *options)
{
    int found = 0;

    for (int i = 0; i < jobs->count; i++)
        found += job_is_selected(&jobs->job[i], options);
    if (options->job && found == 0) {
        fprintf(stderr, "ctctl: no job %s runs here%s; ctctl ps lists those that do\n",
                options->job, jobs->count == 0 ? " (nor any other)" : "");
        return WRONG_USAGE;
    }
    if (!strcmp(command, "ps"))
        return command_ps(jobs, options);
    return !strcmp(command, "status") ? command_status(jobs, options)
                                      : command_stack(jobs, options);
}

int main(int argc, char **argv)
{
    struct ctctl_options options = { .after_s = 1 };
    struct job_list jobs;
    const char *command;
    int code, arguments;
    char *end;

    if ((code = doctor_on_host(argv)) >= 0)
        return code;
    if ((code = read_options(&options, argc, argv)) != 0)
        return code;
    arguments = argc - optind - 1;
    if (arguments < 0)
        return wrong("name a command: ps, status, stack, trace merge or doctor", "");
    command = argv[optind];
    if (!strcmp(command, "trace"))
        return standard_output_close("ctctl", trace(argv + optind + 1, arguments, &options));
    if (options.output)
        return wrong("--output is for trace merge", "");
    if (!strcmp(command, "doctor") && arguments > 0)
        return wrong("too many arguments: ", argv[optind + 1]);
    if (!strcmp(command, "doctor"))
        return standard_output_close("ctctl", doctor(&options));
    if (options.doctor.hosts || options.doctor.hostfile || options.doctor.ssh
        || options.doctor.iface)
        return wrong("--hosts, --hostfile, --ssh and --iface are for doctor", "");
    if (strcmp(command, "ps") != 0 && strcmp(command, "status") != 0
        && strcmp(command, "stack") != 0)
        return unknown("unknown command: ", command);
    if (!strcmp(command, "stack")) {
        options.rank = arguments > 0 ? (int)strtol(argv[argc - 1], &end, 10) : -1;
        if (arguments < 1 || arguments > 2 || *end || end == argv[argc - 1] || options.rank < 0)
            return wrong("stack: name a rank: ctctl stack [JOB] RANK", "");
        arguments--;
    }
    if (arguments > (strcmp(command, "ps") != 0))
        return wrong("too many arguments: ", argv[optind + 2 - !strcmp(command, "ps")]);
    options.job = arguments > 0 ? argv[optind + 1] : NULL;
    if (job_list_find(&jobs) < 0) {
        fprintf(stderr, "ctctl: %s\n", strerror(errno));
        code = WRONG_USAGE;
    } else {
        code = run(command, &jobs, &options);
    }
    job_list_free(&jobs);
    return standard_output_close("ctctl", code);
}
