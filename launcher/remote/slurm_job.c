/* SPDX-License-Identifier: Apache-2.0 */
/* slurm_job.c - asks Slurm for two facts that its variables may lack: when the job ends
 * (SLURM_JOB_END_TIME, which Slurm sets since version 23.02), and whether the job still exists.
 *
 * Only one ctrun of the job runs squeue, and only once, since requests from a thousand nodes at the
 * same time would burden Slurm's controller.  The answer is stored in SLURM_JOB_END_TIME, so the
 * rest of ctrun, the other nodes and libct only read that variable. */
#include "launcher/remote/remote.h"

#include <stdlib.h>
#include <string.h>

#include "launcher/util/run_tool.h"
#include "runtime/util/log.h"
#include "runtime/util/text.h"

/* Limit for squeue, in seconds.  If Slurm's controller is too busy to answer, the job has no
 * deadline. */
#define SECONDS 5

static const char *slurm_variable(const char *name)
{
    const char *value = getenv(name);

    return value && *value ? value : NULL;
}

/* True if this ctrun runs squeue.  A ctrun does not run squeue if a worker started it, if it is not
 * on the first node, or if it does not need the answer. */
static int should_ask(const struct options *options)
{
    const char *node = slurm_variable("SLURM_NODEID"), *job = slurm_variable("SLURM_JOB_ID");

    return !options->surroundings.is_host_of_job && job && strspn(job, "0123456789") == strlen(job)
           && !slurm_variable("SLURM_JOB_END_TIME") && !slurm_variable("TORCHELASTIC_RUN_ID")
           && !options->standalone && !options->explain && !options->dry_run
           && (!node || !strcmp(node, "0")) && tool_is_there("squeue");
}

int remote_slurm_ask(const struct options *options)
{
    char *const words[] = { "squeue", "-h", "-o", "%e", "-j", getenv("SLURM_JOB_ID"), NULL };
    const char *before = getenv("SLURM_TIME_FORMAT");
    char *format = before ? strdup(before) : NULL;
    struct text said = { 0 };
    int code, result = 0;

    if (!should_ask(options)) {
        free(format);
        return 0;
    }
    setenv("SLURM_TIME_FORMAT", "%s", 1);
    code = tool_run(words, SECONDS, &said);
    if (format)
        setenv("SLURM_TIME_FORMAT", format, 1);
    else
        unsetenv("SLURM_TIME_FORMAT");
    text_add(&said, "", 1);
    /* The output is "NONE" if the job has no time limit. */
    if (said.data && code == 0 && strspn(said.data, "0123456789") > 0) {
        said.data[strspn(said.data, "0123456789")] = 0;
        setenv("SLURM_JOB_END_TIME", said.data, 1);
    } else if (said.data
               && (code == 0 ? !*said.data : strstr(said.data, "Invalid job id") != NULL)) {
        result = options->surroundings.srun_nodes > 0 ? -1 : 0;
        log_line(result < 0 ? LOG_ERROR : LOG_WARN,
                 "SLURM_JOB_ID=%s, but Slurm has no such job, or it is over%s: `unset "
                 "SLURM_JOB_ID` if this shell has it from elsewhere, or --standalone uses this "
                 "host only",
                 words[5], result < 0 ? "" : ", so the job has no deadline");
    }
    free(said.data);
    free(format);
    return result;
}
