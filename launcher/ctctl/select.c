/* SPDX-License-Identifier: Apache-2.0 */
/* select.c - selects the jobs of this host that a command shows. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/ctctl/ctctl.h"

int job_is_selected(const struct job_snapshot *job, const struct ctctl_options *options)
{
    char *end;
    long pid;

    if (!options->job || !strcmp(job->run_id, options->job))
        return 1;
    pid = strtol(options->job, &end, 10);
    return end != options->job && *end == '\0' && pid == job->launcher;
}

int jobs_run(struct ctctl_options *options, char **words, int count, jobs_shower *show)
{
    struct job_list jobs;
    int found = 0, code = WRONG_USAGE;

    options->job = count > 0 ? words[0] : NULL;
    if (job_list_find(&jobs) < 0) {
        fprintf(stderr, "ctctl: %s\n", strerror(errno));
    } else {
        for (int i = 0; i < jobs.count; i++)
            found += job_is_selected(&jobs.job[i], options);
        if (options->job && found == 0)
            fprintf(stderr, "ctctl: no job %s runs here%s; ctctl ps lists those that do\n",
                    options->job, jobs.count == 0 ? " (nor any other)" : "");
        else
            code = show(&jobs, options);
    }
    job_list_free(&jobs);
    return code;
}
