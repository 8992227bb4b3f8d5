/* SPDX-License-Identifier: Apache-2.0 */
/* detach.c - starts the keeper and the ctrun of a job in the background.
 *
 *     ctrun --detach    waits until the workers run, prints the pid and ends
 *       keeper          has its own session; writes the output to the job's folder (kept_job.h)
 *         ctrun         runs the job; its output and its workers' goes to a pipe
 *
 * The keeper is a separate process, so that the output has a bound, no reader can stop the job,
 * and the exit code is written whatever ends ctrun. */
#include "launcher/detach/detach.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/detach/kept_job.h"
#include "launcher/util/standard_output.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"

#define KEPT_JOBS 16          /* ended jobs whose output is kept */
#define START_MS 5000         /* how long ctrun --detach waits for the start of the workers */
#define READ_AT_ONCE 65536    /* bytes */
#define LEAST_BOUND (1 << 16) /* bytes of output; at least READ_AT_ONCE */
#define READS_AFTER_END 64    /* a process that outlives ctrun might write without end */

enum { READS, WRITES }; /* the ends of a pipe; of the socket between the caller and ctrun */

static int detach_refuse(const char *what, const char *why)
{
    log_line(LOG_ERROR, "--detach: %s%s%s", what, *what ? ": " : "", why);
    return 1;
}

/* ---- The keeper ------------------------------------------------------------------ */

struct keeper {
    struct kept_job job;
    struct kept_output output;
    uint64_t unwritten; /* bytes of output that did not fit on the disk */
    int from;           /* the pipe from ctrun and its workers */
};

/* Reads from the pipe.  Returns 1 if there may be more now. */
static int keeper_read(struct keeper *keeper)
{
    char bytes[READ_AT_ONCE];
    const ssize_t got = read(keeper->from, bytes, sizeof bytes);

    if (got > 0 && kept_output_add(&keeper->output, bytes, (size_t)got) < 0)
        keeper->unwritten += (uint64_t)got;
    return got > 0;
}

/* Keeps the output until ctrun has ended.  A process that outlives ctrun may hold the pipe open, so
 * the end of the pipe is not the end of ctrun.  Returns the exit code, or -1 if it is not known. */
static int keeper_wait(struct keeper *keeper)
{
    struct pollfd from = { keeper->from, POLLIN, 0 };
    int status, ended;

    /* SIGCHLD interrupts poll(), but may come just before it. */
    while ((ended = waitpid(keeper->job.pid, &status, WNOHANG)) == 0)
        if (poll(&from, 1, 100) > 0 && !keeper_read(keeper) && from.revents & POLLHUP)
            from.fd = -1;
    for (int i = 0; i < READS_AFTER_END && keeper_read(keeper); i++)
        continue;
    return ended < 0 ? -1 : WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void keeper_run(struct keeper *keeper)
{
    char text[128];
    const int code = keeper_wait(keeper);

    if (keeper->unwritten > 0) {
        snprintf(text, sizeof text, "ctrun: %llu bytes of output could not be written to disk\n",
                 (unsigned long long)keeper->unwritten);
        kept_output_add(&keeper->output, text, strlen(text));
    }
    snprintf(text, sizeof text, "%d", code);
    if (code >= 0 && symlink(text, "exit") < 0)
        return;                           /* ctctl says that the code is not known */
    kept_jobs_prune("..", KEPT_JOBS - 1); /* and this one, whose lock is still held */
}

/* Interrupts poll(). */
static void nothing(int number)
{
    (void)number;
}

/* Leaves all files of the caller but the output and what the keeper itself uses: someone may wait
 * for the end of a pipe. */
static void keeper_close_others(const struct keeper *keeper, int lock)
{
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    DIR *folder = opendir("/proc/self/fd");
    struct dirent *entry;

    while (folder && (entry = readdir(folder)) != NULL) {
        const int fd = atoi(entry->d_name);

        if (fd > STDERR_FILENO && fd != null && fd != lock && fd != dirfd(folder)
            && fd != keeper->from && fd != keeper->output.fd)
            close(fd);
    }
    if (folder)
        closedir(folder);
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        dup2(null, fd);
    close(null);
}

/* ---- ctrun in the background ------------------------------------------------------- */

/* Removes each --detach from the command line, which a ctrun on another node may get.  The user may
 * have shortened the name. */
static void remove_detach(char **words, char **program)
{
    int to = 1;

    for (int at = 1; words[at]; at++)
        if ((program && words[at] == *program) || strncmp(words[at], "--de", 4) != 0
            || strncmp(words[at], "--detach", strcspn(words[at], "=")) != 0)
            words[to++] = words[at];
    words[to] = NULL;
}

/* Gives the job's folder the name of this process.  An ended job may have had the same pid. */
static int name_folder(const char *folder, const char *parent, const char *run_id)
{
    struct kept_job job = { .pid = getpid() };
    char path[PATH_MAX + 8];

    snprintf(path, sizeof path, "%s/run_id", folder);
    if ((run_id && symlink(run_id, path) < 0)
        || snprintf(job.path, sizeof job.path, "%s/%d", parent, (int)job.pid)
               >= (int)sizeof job.path)
        return -1;
    if (!kept_job_runs(&job, 0))
        kept_job_remove(job.path);
    return rename(folder, job.path);
}

/* Returns 0, or -1 after an error is logged. */
static int become_ctrun(struct options *options, char **words, const char *folder,
                        const char *parent, int output, int caller)
{
    const pid_t self = getpid();
    const int null = open("/dev/null", O_RDONLY);
    const int has_id = options->settings[OPTION_RDZV_ID].from != FROM_DEFAULT;
    const char *const run_id = has_id ? options->rdzv_id : NULL;

    if (name_folder(folder, parent, run_id) < 0
        || write(caller, &self, sizeof self) != (ssize_t)sizeof self)
        return -detach_refuse(parent, strerror(errno));
    dup2(null, STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    if (null > STDERR_FILENO)
        close(null);
    close(output);
    options->detach = (struct detach_options){ .caller = caller };
    options->settings[OPTION_DETACH].from = FROM_DEFAULT; /* ctruns on other hosts do not detach */
    remove_detach(words, options->program);
    return 0;
}

/* Runs in the keeper's process and starts ctrun as its child.  Returns in that child only: 0, or -1
 * after an error is logged. */
static int keep(struct options *options, char **words, const char *folder, const char *parent,
                int caller)
{
    struct keeper keeper = { .unwritten = 0 };
    char path[PATH_MAX + 8];
    int ends[2], lock, here;

    snprintf(path, sizeof path, "%s/lock", folder);
    signal(SIGCHLD, nothing); /* if it were ignored, the exit code would be lost */
    if ((here = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0
        || (lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600)) < 0 || flock(lock, LOCK_EX) < 0
        || kept_output_create(&keeper.output, folder, options->detach.bound) < 0
        || pipe2(ends, O_CLOEXEC) < 0 || (keeper.job.pid = fork()) < 0)
        _exit(detach_refuse(folder, strerror(errno)));
    if (keeper.job.pid == 0) {
        close(lock); /* the keeper alone must hold it */
        close(here);
        close(ends[READS]);
        kept_output_close(&keeper.output);
        return become_ctrun(options, words, folder, parent, ends[WRITES], caller);
    }
    keeper.from = ends[READS];
    fcntl(keeper.from, F_SETFL, O_NONBLOCK);
    signal(SIGHUP, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    prctl(PR_SET_NAME, "ctrun-keeper");
    if (fchdir(here) < 0) /* ctrun gives the folder another name */
        _exit(detach_refuse(folder, strerror(errno)));
    keeper_close_others(&keeper, lock);
    keeper_run(&keeper);
    _exit(0); /* gives up the lock */
}

/* ---- The caller --------------------------------------------------------------------- */

static pid_t caller_job;
static volatile sig_atomic_t caller_stopped;

/* The user stops the job, whose report is still shown.  SIGHUP ends the caller alone. */
static void caller_on_signal(int number)
{
    caller_stopped = 1;
    kill(caller_job, number);
}

/* Waits until the workers run.  Returns 1 if they do, 0 if the job has ended, and -1 after
 * START_MS. SIGINT and SIGTERM are blocked except in ppoll(), so each of them reaches the job.
 * `before` is the mask of signals in ppoll(). */
static int wait_for_start(int from_job, pid_t job, const sigset_t *before)
{
    const struct sigaction stop = { .sa_handler = caller_on_signal };
    int64_t deadline = clock_ms() + START_MS;
    char byte;

    caller_job = job;
    sigaction(SIGINT, &stop, NULL);
    sigaction(SIGTERM, &stop, NULL);
    for (;;) {
        const int64_t left = deadline - clock_ms();
        const struct timespec time = { left > 0 ? left / 1000 : 1,
                                       left > 0 ? left % 1000 * 1000000 : 0 };

        if (left <= 0 && !caller_stopped)
            return -1;
        if (left <= 0) {
            log_line(LOG_WARN,
                     "waiting for job %d to stop; its workers have until --shutdown-timeout",
                     (int)job);
            deadline = clock_ms() + START_MS;
        }
        if (ppoll(&(struct pollfd){ from_job, POLLIN, 0 }, 1, &time, before) > 0) {
            const ssize_t got = read(from_job, &byte, 1);

            if (got == 0 || (got == 1 && !caller_stopped))
                return (int)got;
        }
    }
}

/* Prints the output of a job that ended before its workers ran.  Returns its exit code. */
static int show_ended(const struct kept_job *job)
{
    struct kept_output output;
    char bytes[4096];
    size_t got;
    int code;

    kept_job_runs(job, 1);
    code = kept_job_code(job);
    if (kept_output_open(&output, job, -1) == 0)
        while ((got = kept_output_read(&output, bytes, sizeof bytes)) > 0)
            fwrite(bytes, 1, got, stderr);
    kept_output_close(&output);
    kept_job_remove(job->path);
    return code >= 0 ? code : 1;
}

static int show_started(const struct options *options, pid_t pid, int runs)
{
    printf("%d\n", (int)pid);
    if (!options->quiet && isatty(STDERR_FILENO))
        fprintf(stderr, "ctrun: %s; ctctl attach %d shows its output\n",
                runs ? "the job runs in the background"
                     : "the workers do not run yet; the job waits in the background",
                (int)pid);
    return standard_output_close("ctrun", 0);
}

/* Makes the folder and those above it.  Returns 0, or -1 with errno set. */
static int make_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(path, 0700) < 0 && errno != EEXIST)
            return -1;
        *slash = '/';
    }
    return mkdir(path, 0700) == 0 || errno == EEXIST ? 0 : -1;
}

int detach(struct options *options, char **words)
{
    struct kept_job job;
    char parent[PATH_MAX], folder[PATH_MAX];
    sigset_t stops, before;
    int ends[2], started;
    pid_t keeper;

    sigemptyset(&stops);
    sigaddset(&stops, SIGINT);
    sigaddset(&stops, SIGTERM);
    if (getenv("SLURM_STEP_ID")) {
        log_line(LOG_ERROR, "--detach: srun ends step %s with its ctrun; use sbatch instead",
                 getenv("SLURM_STEP_ID"));
        return 2;
    }
    if (options->detach.bound < LEAST_BOUND) {
        log_line(LOG_ERROR, "--detach=%s: it must be at least 64k",
                 options->settings[OPTION_DETACH].text);
        return 2;
    }
    if (kept_jobs_folder(parent, sizeof parent) < 0)
        return detach_refuse("HOME and XDG_STATE_HOME", "neither is the path of a folder");
    if (make_folders(parent) < 0)
        return detach_refuse(parent, strerror(errno));
    if (snprintf(folder, sizeof folder, "%s/new_XXXXXX", parent) >= (int)sizeof folder)
        return detach_refuse(parent, strerror(ENAMETOOLONG));
    sigprocmask(SIG_BLOCK, &stops, &before);
    if (!mkdtemp(folder))
        return detach_refuse(parent, strerror(errno));
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0 || (keeper = fork()) < 0) {
        rmdir(folder);
        return detach_refuse("", strerror(errno));
    }
    if (keeper == 0) {
        close(ends[READS]);
        setsid(); /* a terminal's SIGINT comes no more */
        sigprocmask(SIG_SETMASK, &before, NULL);
        return keep(options, words, folder, parent, ends[WRITES]) == 0 ? DETACHED : 1;
    }
    close(ends[WRITES]);
    if (read(ends[READS], &job.pid, sizeof job.pid) != (ssize_t)sizeof job.pid) {
        kept_job_remove(folder);
        return 1; /* the keeper or ctrun has said why */
    }
    snprintf(job.path, sizeof job.path, "%.*s/%d", PATH_MAX - 16, parent, (int)job.pid);
    started = wait_for_start(ends[READS], job.pid, &before);
    if (started == 0)
        return show_ended(&job);
    return show_started(options, job.pid, started == 1);
}

void detach_tell_began(const struct options *options)
{
    if (options->detach.caller > 0)
        send(options->detach.caller, "", 1, MSG_NOSIGNAL); /* the caller may have gone */
}
