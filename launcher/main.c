/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - has main() of ctrun, which reads the command line into options, runs a job with these
 * options, and returns the job's exit code. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/help.h"
#include "config/options.h"
#include "launcher/cli/cli.h"
#include "launcher/detach/detach.h"
#include "launcher/job/job.h"
#include "launcher/job/no_effect.h"
#include "launcher/observers/observers.h"
#include "launcher/placement/placement.h"
#include "launcher/remote/branch.h"
#include "launcher/remote/remote.h"
#include "launcher/report/report.h"
#include "launcher/util/print_version.h"
#include "launcher/util/standard_output.h"
#include "launcher/workers/program.h"
#include "launcher/workers/signals.h"
#include "launcher/workers/worker_env.h"
#include "runtime/util/error.h"
#include "runtime/util/log.h"

/* Opens descriptors 0, 1 and 2 if ctrun was started without them.  Otherwise a socket of ctrun
 * would become a worker's stdin. */
static void fill_standard_descriptors(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

static int main_refuse(const char *error)
{
    if (*error) /* if the error is "", another ctrun of the step logs the error */
        log_line(LOG_ERROR, "%s (ctrun --help lists the options)", error);
    report_own_fault(error);
    return 2;
}

/* Returns 1 if the user typed "ctrun help", and no program is called "help". */
static int asks_for_help(int argc, char **argv)
{
    char path[PATH_MAX];

    return argc == 2 && !strcmp(argv[1], "help") && access("help", F_OK) < 0
           && program_search("help", path, sizeof path) != 0;
}

/* Starts a ctrun on each node if the options require that, or prints how.  Returns the exit code,
 * or -1 if this ctrun must run a node itself. */
static int start_elsewhere(const struct options *options, char **words)
{
    const int by_hosts =
        (options->hosts || options->hostfile) && !options->surroundings.is_host_of_job;
    const int shows = options->explain || options->dry_run;

    if (!by_hosts && remote_slurm_ask(options) < 0)
        return 1;
    if (options->surroundings.srun_nodes == 0 && !by_hosts)
        return -1;
    if (!shows)
        return by_hosts ? remote_hosts(options) : remote_srun(options, words);
    if (options->explain)
        explain_before(options);
    if (by_hosts)
        return standard_output_close("ctrun", remote_hosts_print(stdout, options));
    remote_srun_print(stdout, options, words);
    putchar('\n');
    return standard_output_close("ctrun", 0);
}

static int run(const struct options *options)
{
    const struct jobfile_entry *conflict = worker_env_conflict(&options->file);
    struct meeting meeting;
    char why[256], error[1024];
    int size;

    if (options_meeting(options, &meeting, error, sizeof error) != OPTIONS_RUN)
        return main_refuse(error);
    if (conflict) {
        log_line(LOG_ERROR, "%s:%d: %s can't be set here; ctrun sets it for each worker",
                 options->file.path, conflict->line, conflict->key);
        return 2;
    }
    if (variables_check(&options->file, error, sizeof error) < 0)
        return main_refuse(error);
    if (!options->explain && !options->dry_run)
        signals_block(options);
    size = nproc_count(options, why, sizeof why);
    if (size == 0 && !meeting.serves_only) {
        log_line(LOG_ERROR, "%s", why);
        report_own_fault(why);
        return 1;
    }
    if (options->file.path && !options->settings[OPTION_JOB].text)
        log_line(LOG_WARN,
                 "reading ./job.ini, which is in this folder (--job=/dev/null ignores it)");
    no_effect_words(options, &meeting, size);
    variables_warn(&options->file);
    if (options->explain)
        return standard_output_close("ctrun", explain(options, &meeting, size, why));
    if (options->dry_run)
        return standard_output_close("ctrun", dry_run(options, &meeting, size));
    if (meeting.warning)
        log_line(LOG_WARN, "%s", meeting.warning);
    if (*options->signals.unknown)
        log_line(LOG_WARN, "Failed to register signal handler for %s: there is no such signal",
                 options->signals.unknown);
    /* only one ctrun of the job logs this */
    if (meeting.kind != MEET_STATIC || options->node_rank == 0)
        nproc_warn(options, size);
    return job_run(options, &meeting, size, observers);
}

int main(int argc, char **argv)
{
    struct options options;
    char error[1024], **words;
    enum outcome outcome;
    int code = 2;

    fill_standard_descriptors();
    log_setup("ctrun", LOG_WARN);
    if (log_check() != CT_OK) {
        log_line(LOG_ERROR, "%s", ct_last_error());
        return code;
    }
    if (argc == 2 && !strcmp(argv[1], NODE_WORD))
        return remote_node();
    if (!(words = calloc((size_t)argc + 1, sizeof *words)))
        return main_refuse("out of memory");
    if (asks_for_help(argc, argv))
        argv[1] = "--help";
    memcpy(words, argv, (size_t)argc * sizeof *words); /* options_read() moves the words of argv */
    outcome = options_read(&options, argv, error, sizeof error);
    switch (outcome) {
    case OPTIONS_RUN:
        if (options.quiet)
            log_setup("ctrun", LOG_ERROR);
        if (options.detach.bound > 0 && !options.explain && !options.dry_run
            && (code = detach(&options, words)) != DETACHED)
            break;
        if ((code = start_elsewhere(&options, words)) < 0)
            code = run(&options);
        break;
    case OPTIONS_SHOW_HELP:
    case OPTIONS_SHOW_BRIEF_HELP:
        options_help(stdout, outcome == OPTIONS_SHOW_BRIEF_HELP);
        code = standard_output_close("ctrun", 0);
        break;
    case OPTIONS_SHOW_VERSION:
        print_version("ctrun");
        code = standard_output_close("ctrun", 0);
        break;
    case OPTIONS_SHOW_COMPLETION:
        completion_print(stdout, options.print_completion, &ctrun_words);
        code = standard_output_close("ctrun", 0);
        break;
    case OPTIONS_WRONG:
        code = main_refuse(error);
        break;
    }
    options_free(&options);
    free(words);
    return code;
}
