/* SPDX-License-Identifier: Apache-2.0 */
/* proc_info.c - reads /proc.  Reading /proc also works for stopped processes, and never waits for
 * them. */
#include "launcher/inspect/proc_info.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "launcher/inspect/page_reader.h"

size_t process_file(pid_t pid, const char *name, char *text, size_t size)
{
    char path[64];
    size_t used = 0;
    ssize_t got = 1;
    int fd;

    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    text[0] = '\0';
    if ((fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
        return 0;
    while (used < size - 1 && (got = read(fd, text + used, size - 1 - used)) > 0)
        used += (size_t)got;
    close(fd);
    text[used] = '\0';
    return used;
}

/* Returns a short name for a system call in which a main thread often sleeps; NULL for other calls.
 */
static const char *call_name(long number)
{
    switch (number) {
    case SYS_clock_nanosleep:
#ifdef SYS_nanosleep
    case SYS_nanosleep:
#endif
        return "sleep";
    case SYS_futex:
        return "futex";
    case SYS_read:
    case SYS_recvfrom:
    case SYS_recvmsg:
        return "read";
    case SYS_write:
    case SYS_sendto:
    case SYS_sendmsg:
        return "write";
    case SYS_wait4:
    case SYS_waitid:
        return "wait";
#ifdef SYS_poll
    case SYS_poll:
    case SYS_select:
    case SYS_epoll_wait:
#endif
    case SYS_ppoll:
    case SYS_pselect6:
    case SYS_epoll_pwait:
        return "poll";
    }
    return NULL;
}

/* Returns the name of a restarted system call.  After SIGSTOP and SIGCONT, /proc shows
 * restart_syscall in place of a system call with a timeout. */
static const char *restarted_name(pid_t pid)
{
    char text[64];

    process_file(pid, "wchan", text, sizeof text);
    return strstr(text, "futex") ? "futex" : strstr(text, "poll") ? "poll" : "sleep";
}

static void set_waits_in(struct process_snapshot *process)
{
    char text[256], *end;
    const char *name = NULL;
    long number;

    if (!strchr("SDTt", process->state))
        return;
    if (process->state != 'D' && process_file(process->pid, "syscall", text, sizeof text) > 0) {
        number = strtol(text, &end, 10);
        if (end != text)
            name = number == SYS_restart_syscall ? restarted_name(process->pid) : call_name(number);
    }
    if (!name && process_file(process->pid, "wchan", text, sizeof text) > 0 && text[0] != '0'
        && process->state != 'T')
        name = text;
    if (name)
        page_text(process->waits_in, sizeof process->waits_in, name, strlen(name));
}

static pid_t tracer_of(pid_t pid)
{
    char text[4096];
    const char *line;

    process_file(pid, "status", text, sizeof text);
    line = strstr(text, "\nTracerPid:");
    return line ? (pid_t)strtol(line + 11, NULL, 10) : 0;
}

struct process_snapshot process_read(pid_t pid)
{
    struct process_snapshot process = { .pid = pid };
    unsigned long user = 0, kernel = 0, ended_user = 0, ended_kernel = 0;
    char stat[1024], *name, *behind;
    int parent = 0, group = 0;

    if (pid <= 0 || process_file(pid, "stat", stat, sizeof stat) == 0 || !(name = strchr(stat, '('))
        || !(behind = strrchr(stat, ')')) || behind < name) /* the name may contain any bytes */
        return process;
    if (sscanf(behind + 1, " %c %d %d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %lu %lu",
               &process.state, &parent, &group, &user, &kernel, &ended_user, &ended_kernel)
        < 1)
        return process;
    page_text(process.name, sizeof process.name, name + 1, (size_t)(behind - name - 1));
    process.parent = parent;
    process.group = group;
    process.cpu_s = (double)(user + kernel) / (double)sysconf(_SC_CLK_TCK);
    process.ended_s = (double)(ended_user + ended_kernel) / (double)sysconf(_SC_CLK_TCK);
    set_waits_in(&process);
    if (process.state == 't')
        process.tracer = tracer_of(pid);
    return process;
}

int process_each(int (*visit)(void *arg, pid_t pid, uid_t uid), void *arg)
{
    DIR *all = opendir("/proc");
    struct dirent *entry;
    int answer = 0;

    while (all && answer == 0 && (entry = readdir(all))) {
        const long pid = strtol(entry->d_name, NULL, 10);
        struct stat info;

        if (pid > 0 && fstatat(dirfd(all), entry->d_name, &info, 0) == 0)
            answer = visit(arg, (pid_t)pid, info.st_uid);
    }
    if (all)
        closedir(all);
    return answer;
}

int process_memfd(pid_t pid, int fd, const char *name)
{
    char path[64], link[64], wanted[64];
    ssize_t length;
    int own;

    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)pid, fd);
    snprintf(wanted, sizeof wanted, "/memfd:%s ", name); /* the link ends in " (deleted)" */
    if ((own = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) < 0)
        return -1;
    snprintf(path, sizeof path, "/proc/self/fd/%d", own);
    length = readlink(path, link, sizeof link);
    if (length > (ssize_t)strlen(wanted) && !memcmp(link, wanted, strlen(wanted)))
        return own;
    close(own);
    return -1;
}

/* ---- The process of a rank -------------------------------------------------- */

/* A search for a descendant of the worker that has pid `named` in its own pid namespace. */
struct nested {
    pid_t worker, named, found;
};

static int is_below(pid_t pid, pid_t worker)
{
    for (int i = 0; i < 64 && pid > 1; i++) {
        if (pid == worker)
            return 1;
        pid = process_read(pid).parent;
    }
    return 0;
}

/* Returns 1 if the process has pid nested->named in its own namespace.  "NSpid: 4310 7" means that
 * the pid is 4310 here, and 7 in the process's namespace. */
static int has_that_pid(void *arg, pid_t pid, uid_t uid)
{
    struct nested *nested = arg;
    char text[4096];
    const char *line, *last;

    (void)uid;
    process_file(pid, "status", text, sizeof text);
    if (!(line = strstr(text, "\nNSpid:")))
        return 0;
    last = line + 7;
    for (const char *at = last; *at && *at != '\n'; at++)
        if (*at == '\t')
            last = at + 1;
    if (last == line + 8 || strtol(last, NULL, 10) != nested->named
        || !is_below(pid, nested->worker))
        return 0;
    nested->found = pid;
    return 1;
}

/* Returns the pid, as seen here, of the process that wrote rank->pid; 0 if the process is gone.
 * The process must be a descendant of the worker.  A process that is not may have got the same pid
 * from the kernel later.  The rank's pid may also be valid only in a pid namespace that the worker
 * created. */
static pid_t writer_of(const struct rank_snapshot *rank)
{
    struct nested nested = { rank->worker, rank->pid, 0 };
    const struct process_snapshot process = process_read(rank->pid);

    if (rank->pid == rank->worker || rank->worker == 0)
        return process.state ? rank->pid : 0;
    if (process.state && (process.group == rank->worker || is_below(rank->pid, rank->worker)))
        return rank->pid;
    process_each(has_that_pid, &nested);
    return nested.found;
}

static void process_add_work(pid_t pid, struct process_work *sum)
{
    const struct process_snapshot process = process_read(pid);
    char text[1024];
    const char *written;

    process_file(pid, "io", text, sizeof text);
    written = strstr(text, "wchar: ");
    sum->written += written ? strtoull(written + 7, NULL, 10) : 0;
    sum->cpu_ms += (uint64_t)((process.cpu_s + process.ended_s) * 1000);
}

/* The kernel lists the children of each thread. */
int process_work_below(pid_t pid, struct process_work *sum)
{
    char path[300];
    struct dirent *thread;
    DIR *threads;
    int child, status = -1;

    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    threads = opendir(path);
    while (threads && (thread = readdir(threads))) {
        FILE *children;

        snprintf(path, sizeof path, "/proc/%d/task/%.16s/children", (int)pid, thread->d_name);
        children = fopen(path, "re");
        while (children && fscanf(children, "%d", &child) == 1) {
            process_add_work(child, sum);
            process_work_below(child, sum);
        }
        if (!children)
            continue;
        fclose(children);
        status = 0;
    }
    if (threads)
        closedir(threads);
    return status;
}

static void proc_info_take_command(struct rank_snapshot *rank)
{
    char words[sizeof rank->command];
    const size_t used = process_file(rank->process.pid, "cmdline", words, sizeof words);

    for (size_t i = 0; i + 1 < used; i++)
        if (words[i] == '\0')
            words[i] = ' ';
    page_text(rank->command, sizeof rank->command, words, used);
}

void process_read_all(struct job_snapshot *job)
{
    job->launcher_state = process_read(job->launcher).state;
    for (int i = 0; i < job->ranks; i++) {
        struct rank_snapshot *rank = &job->rank[i];
        const pid_t writer = rank->pid > 0 ? writer_of(rank) : 0;

        if (rank->worker != rank->pid)
            rank->wrapper = process_read(rank->worker);
        if (rank->pid == 0)
            rank->process = rank->wrapper;
        else if (writer)
            rank->process = process_read(writer);
        else
            rank->process = (struct process_snapshot){ .pid = rank->pid };
        if (rank->process.state)
            proc_info_take_command(rank);
        if (rank->observer_pid != rank->pid && !process_read(rank->observer_pid).state)
            rank->observer = OBSERVER_NONE; /* the process that had it has ended */
        if (rank->observer == OBSERVER_ASKED
            && (rank->process.state == 'T' || rank->process.state == 't'))
            rank->observer = OBSERVER_SILENT; /* a stopped process can't answer */
    }
}
