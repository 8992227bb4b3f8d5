/* SPDX-License-Identifier: Apache-2.0 */
/* srun.c - `ctrun ./app` in a batch script or in the shell of salloc.  ctrun runs srun, which
 * starts ctrun with the same words once on each node of the allocation.
 *
 * The ctruns on the nodes read most facts from the variables of the Slurm step.  This ctrun adds
 * two variables.  CT_SLOTS has the number of tasks of each node in the allocation, since the step
 * itself has only one task on each node.  CT_STORE_SECRET has the job's secret, which Slurm passes
 * on in the environment, where other users can't read it.  This ctrun removes the variables by
 * which sbatch's options would make the step smaller than the job.
 *
 * This process stays in front of srun because of signals.  srun answers SIGTERM by killing all
 * tasks with SIGKILL, but forwards SIGINT.  So for each stop signal this process sends SIGINT to
 * srun, and the ctruns on the nodes handle SIGINT like SIGTERM.  Programs can then save before they
 * stop, as they can everywhere under ctrun.  At the end of the job and after scancel, Slurm itself
 * signals the ctruns on the nodes, so this process sends nothing. */
#include "launcher/detach/detach.h"
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

/* True if the word makes ctrun show a command instead of running it.  The ctruns on the nodes must
 * not get such a word. */
static int only_shows(const char *word)
{
    static const char *const words[] = { "--explain", "--dry-run", "--dry_run" };

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(word, words[i]))
            return 1;
    return 0;
}

/* Returns the command, which is srun's words and then ctrun's own words except its name.  The
 * caller frees the list only, since the text is in `counts`, `argv` and static buffers. */
static char **srun_command(const struct options *options, char **argv, char *counts, size_t size)
{
    static char own_path[4096], variables[128], patience[32], gpus[48];
    const int is_range = options->nnodes.min < options->nnodes.max;
    const char *per_task = getenv("SLURM_CPUS_PER_TASK"); /* some programs read this variable */
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
    /* --wait limits how long srun waits for the other nodes after the first node has ended.  The
     * nodes of a fixed job end together.  But if a node could not start, for example because its
     * port is in use, the other nodes would wait for that node until the timeout of --rdzv-conf. */
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
    words[count++] = "--overlap";       /* other steps of the job may run on the same nodes */
    words[count++] = "--cpu-bind=none"; /* workers may use all processors of the job on this node */
    words[count++] = "--kill-on-bad-exit=0"; /* so each ctrun can print its report */
    words[count++] = patience;
    words[count++] = "--disable-status"; /* srun forwards the first SIGINT at once */
    words[count++] = "--mpi=none";
    words[count++] = variables;
    if (getenv("SLURM_GPUS_ON_NODE")
        && (getenv("SLURM_GPUS_PER_TASK") || getenv("SLURM_TRES_PER_TASK"))) {
        /* Without this option, each task of the step, which is the only task on its node, would get
         * the GPUs of one task of the job. */
        snprintf(gpus, sizeof gpus, "--gpus-per-node=%.20s", getenv("SLURM_GPUS_ON_NODE"));
        words[count++] = gpus;
    }
    if (is_range)
        words[count++] = "--no-kill"; /* if a node is lost, the other nodes continue */
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

/* Variables of sbatch and salloc that srun would read as its own options.  As the step has one task
 * on each node, these variables would give the step only one task's share of the processors or
 * GPUs, or contradict the words above. */
static const char *const per_task[] = {
    "SLURM_CPUS_PER_TASK",   "SRUN_CPUS_PER_TASK",      "SLURM_TRES_PER_TASK",
    "SLURM_GPUS_PER_TASK",   "SLURM_GPUS_PER_SOCKET",   "SLURM_GPUS",
    "SLURM_GPU_BIND",        "SLURM_TRES_BIND",         "SLURM_NTASKS_PER_GPU",
    "SLURM_NTASKS_PER_CORE", "SLURM_NTASKS_PER_SOCKET", "SLURM_NTASKS_PER_TRES",
    "SLURM_EXACT",           "SLURM_HOSTFILE",          "SLURM_PTY_PORT"
};

/* Sets and removes variables for srun.  Returns 0, or -1 after an error. */
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

    /* At the job's end, Slurm signals the process group of the batch script.  An srun in that group
     * would no longer pass on the output that workers print while they save. */
    if (terminal < 0)
        setpgid(0, 0);
    else
        close(terminal);
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* srun ends the step when it gets SIGTERM */
    sigprocmask(SIG_SETMASK, before, NULL);
    execvp(words[0], words);
    log_line(LOG_ERROR,
             "this is Slurm job %s with %d nodes, but srun can't be executed: %s (--nnodes=1 or "
             "--standalone uses this node only)",
             getenv("SLURM_JOB_ID"), options->surroundings.srun_nodes, strerror(errno));
    _exit(127);
}

/* True if the sender of a signal is Slurm's slurmstepd, which signals all processes at the end of a
 * batch job.  The ctruns on the nodes then get the signal from Slurm, too. */
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

/* Waits for the end of srun, and passes signals on to srun, except those that srun gets from Slurm
 * or from the terminal itself.  Returns the exit code. */
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
    if (signals_hangup_is_ignored()) /* the user started ctrun with nohup */
        sigdelset(&watched, SIGHUP);
    signal(SIGCHLD, SIG_DFL); /* the kernel would not deliver an ignored SIGCHLD */
    if (words && prepare_environment(options) == 0) {
        sigprocmask(SIG_BLOCK, &watched, &before);
        if ((srun = fork()) == 0)
            srun_child(options, words, &before);
        if (srun > 0) {
            detach_tell_began(options);
            code = wait_for(srun, &watched);
        } else
            log_line(LOG_ERROR, "no process for srun: %s", strerror(errno));
    }
    free(words);
    return code;
}
