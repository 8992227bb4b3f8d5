/* SPDX-License-Identifier: Apache-2.0 */
/* srun.c - `ctrun ./app` in a batch script, or in the shell of salloc: srun starts ctrun once on
 * each node of the allocation with the same words.
 *
 * The step's variables say the rest.  Two are ours: CT_SLOTS, the tasks of each node as the
 * allocation has them, since the step's own are one a node; and CT_STORE_SECRET, which Slurm
 * carries in the environment, where other users can't read it.  What sbatch's options left in the
 * environment for srun and would make the step smaller than the job is taken away.
 *
 * This process stays in front of srun because of signals.  srun answers SIGTERM with SIGKILL to all
 * tasks; but it forwards SIGINT, and that is what it gets from here instead.  So a job that is
 * asked to stop can save, as everywhere under ctrun: there SIGINT counts as SIGTERM.  The end
 * of the job and scancel need none of this: Slurm signals the ctruns on the nodes itself. */
#include "launcher/remote/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/nodes/job_rendezvous.h"
#include "launcher/util/shell_words.h"
#include "launcher/workers/program.h"
#include "launcher/workers/signals.h"
#include "runtime/util/log.h"

#define SRUN_WORDS 24

/* The words that make this ctrun show a command instead of running it, and would do so there. */
static int only_shows(const char *word)
{
    static const char *const words[] = { "--explain", "--dry-run", "--dry_run" };

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(word, words[i]))
            return 1;
    return 0;
}

/* Of ctrun's own words only the first is not passed on. */
static char **srun_command(const struct options *options, char **argv, char *counts, size_t size)
{
    static char own_path[4096], variables[128], patience[32], gpus[48];
    const int is_range = options->nnodes.min < options->nnodes.max;
    const char *per_task = getenv("SLURM_CPUS_PER_TASK"); /* which programs read */
    const char *input = "--input=0";
    char **words, *nodes = counts, *tasks = counts + size / 2;
    int count = 0, rest = 0, programs = 0;

    while (argv[0] && argv[rest + 1])
        rest++;
    while (options->program && options->program[programs])
        programs++;
    if (!(words = calloc((size_t)(SRUN_WORDS + rest), sizeof *words)))
        return NULL;
    program_own(own_path, sizeof own_path);
    snprintf(nodes, size / 2, "--nodes=%d", options->surroundings.srun_nodes);
    snprintf(tasks, size / 2, "--ntasks=%d", options->surroundings.srun_nodes);
    snprintf(variables, sizeof variables, "--export=ALL%s%.20s",
             per_task ? ",SLURM_CPUS_PER_TASK=" : "", per_task ? per_task : "");
    /* The nodes of a fixed job end together.  One that could not begin, since its port is taken,
     * say, leaves others that would wait for it until --rdzv-conf=timeout. */
    snprintf(patience, sizeof patience, "--wait=%d",
             is_range                                   ? 0
             : options->shutdown_timeout > INT_MAX - 30 ? INT_MAX
                                                        : options->shutdown_timeout + 30);
    if (options->stdin_to.kind == STDIN_NONE)
        input = "--input=none";
    else if (options->stdin_to.kind == STDIN_ALL || options->stdin_to.rank > 0)
        input = "--input=all";
    words[count++] = "srun";
    words[count++] = nodes;
    words[count++] = tasks;
    words[count++] = "--ntasks-per-node=1";
    words[count++] = "--distribution=block";
    words[count++] = "--overlap";            /* of an interactive step, or another job step */
    words[count++] = "--cpu-bind=none";      /* workers may use all that the job has here */
    words[count++] = "--kill-on-bad-exit=0"; /* each ctrun ends by itself, and prints its report */
    words[count++] = patience;
    words[count++] = "--disable-status"; /* SIGINT goes to the ctruns at once */
    words[count++] = "--mpi=none";
    words[count++] = variables;
    if (getenv("SLURM_GPUS_ON_NODE")
        && (getenv("SLURM_GPUS_PER_TASK") || getenv("SLURM_TRES_PER_TASK"))) {
        /* Else our one task a node gets the GPUs of one task of the job. */
        snprintf(gpus, sizeof gpus, "--gpus-per-node=%.20s", getenv("SLURM_GPUS_ON_NODE"));
        words[count++] = gpus;
    }
    if (is_range)
        words[count++] = "--no-kill"; /* the others go on without a node */
    words[count++] = (char *)input;
    words[count++] = own_path;
    for (int i = 0; i < rest; i++)
        if (i >= rest - programs || !only_shows(argv[i + 1]))
            words[count++] = argv[i + 1];
    return words;
}

void remote_srun_print(FILE *out, const struct options *options, char **argv)
{
    char counts[64], **words = srun_command(options, argv, counts, sizeof counts);

    if (words)
        shell_print(out, words);
    free(words);
}

/* Options of sbatch and salloc that srun takes for its own: with one task a node they would give
 * the step a task's share of the processors or GPUs, or contradict the words above. */
static const char *const per_task[] = {
    "SLURM_CPUS_PER_TASK",   "SRUN_CPUS_PER_TASK",      "SLURM_TRES_PER_TASK",
    "SLURM_GPUS_PER_TASK",   "SLURM_GPUS_PER_SOCKET",   "SLURM_GPUS",
    "SLURM_GPU_BIND",        "SLURM_TRES_BIND",         "SLURM_NTASKS_PER_GPU",
    "SLURM_NTASKS_PER_CORE", "SLURM_NTASKS_PER_SOCKET", "SLURM_NTASKS_PER_TRES",
    "SLURM_EXACT",           "SLURM_HOSTFILE",          "SLURM_PTY_PORT"
};

/* 0, or -1: the error is logged. */
static int prepare_environment(const struct options *options)
{
    const char *tasks = getenv("SLURM_NTASKS") ? getenv("SLURM_TASKS_PER_NODE") : NULL;
    char secret[JOB_SECRET_TEXT];

    if (job_secret_make(options, secret) != CT_OK) {
        log_line(LOG_ERROR, "%s", ct_last_error());
        return -1;
    }
    if (setenv("CT_STORE_SECRET", secret, 1) < 0 || setenv("CT_SLOTS", tasks ? tasks : "", 1) < 0)
        return -1;
    for (size_t i = 0; i < sizeof per_task / sizeof *per_task; i++)
        unsetenv(per_task[i]);
    return 0;
}

static _Noreturn void srun_child(const struct options *options, char **words,
                                 const sigset_t *before)
{
    const int terminal = open("/dev/tty", O_RDWR | O_CLOEXEC);

    /* Slurm signals the batch script's process group at the job's end.  An srun in that group would
     * not pass on any more what the workers print while they save. */
    if (terminal < 0)
        setpgid(0, 0);
    else
        close(terminal);
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* srun ends the step */
    sigprocmask(SIG_SETMASK, before, NULL);
    execvp(words[0], words);
    log_line(LOG_ERROR,
             "this is Slurm job %s with %d nodes, but srun can't be executed: %s (--nnodes=1 or "
             "--standalone uses this node only)",
             getenv("SLURM_JOB_ID"), options->surroundings.srun_nodes, strerror(errno));
    _exit(127);
}

/* Slurm's own, for the end of a batch job: the ctruns on the nodes get that from Slurm, too. */
static int is_from_slurm(pid_t sender)
{
    char path[64], name[32] = "";
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/comm", (int)sender);
    if (!(file = fopen(path, "re")))
        return 0;
    if (!fgets(name, sizeof name, file))
        *name = 0;
    fclose(file);
    return !strncmp(name, "slurmstepd", strlen("slurmstepd"));
}

static int ends_srun(int signal)
{
    return signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT || signal == SIGINT;
}

/* Until srun ends.  A terminal's signals reach it without us. */
static int wait_for(pid_t srun, const sigset_t *watched)
{
    int status, code, stopped_by = 0;

    for (;;) {
        siginfo_t info;
        const int signal = sigwaitinfo(watched, &info);

        if (signal == SIGCHLD && waitpid(srun, &status, WNOHANG) == srun)
            break;
        if (signal <= 0 || signal == SIGCHLD)
            continue;
        if (ends_srun(signal))
            stopped_by = signal;
        if (info.si_code <= 0 && !is_from_slurm(info.si_pid))
            kill(srun, ends_srun(signal) ? SIGINT : signal);
    }
    code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return stopped_by && (code == 128 + SIGINT || code == 128 + SIGTERM) ? 128 + stopped_by : code;
}

int remote_srun(const struct options *options, char **argv)
{
    static const int signals[] = { SIGCHLD, SIGTERM, SIGHUP,  SIGINT,
                                   SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM };
    char counts[64], **words = srun_command(options, argv, counts, sizeof counts);
    sigset_t watched, before;
    pid_t srun = -1;
    int code = 1;

    sigemptyset(&watched);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaddset(&watched, signals[i]);
    if (signals_hangup_is_ignored()) /* nohup means it */
        sigdelset(&watched, SIGHUP);
    signal(SIGCHLD, SIG_DFL); /* ignored, it would not come */
    if (words && prepare_environment(options) == 0) {
        sigprocmask(SIG_BLOCK, &watched, &before);
        if ((srun = fork()) == 0)
            srun_child(options, words, &before);
        if (srun > 0)
            code = wait_for(srun, &watched);
        else
            log_line(LOG_ERROR, "no process for srun: %s", strerror(errno));
    }
    free(words);
    return code;
}
