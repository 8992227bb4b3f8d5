/* SPDX-License-Identifier: Apache-2.0 */
/* checks.c - has a table row for each check of a host.  The row has the function that checks, the
 * level of a failed check, and what the user can do.
 *
 * A check function writes what it found, or an error message if the check failed.  The checks run
 * with the limits and variables that ctrun has when ctrun --hosts starts it on this host, since a
 * login shell may have other limits and variables. */
#include "launcher/doctor/checks.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config/rendezvous_options.h"
#include "config/values/slurm.h"
#include "include/ct.h"
#include "launcher/doctor/addresses.h"
#include "launcher/placement/gpus.h"
#include "launcher/util/run_tool.h"
#include "launcher/workers/limits.h"
#include "launcher/workers/program.h"
#include "runtime/net/fd_passing.h"
#include "runtime/net/interface.h"
#include "runtime/net/libssl.h"
#include "runtime/net/socket.h"
#include "runtime/net/shared_secret.h"
#include "runtime/util/cgroup.h"
#include "runtime/util/clock.h"
#include "runtime/util/cpu_set.h"
#include "runtime/util/error.h"
#include "runtime/util/memory_file.h"
#include "runtime/util/text.h"

#define RANK_FILES 200 /* descriptors that a rank needs for CUDA and NCCL, without connections */
#define WORKER_THREADS 16
#define LEAST_MEMORY ((long long)512 << 20)
#define LEAST_ROOM ((long long)64 << 20)
#define LEAST_DEV_SHM ((long long)128 << 20) /* warns if less; Docker's default is 64 MiB */
#define VERSION_SECONDS 5

/* The facts that the checks depend on, in addition to the host itself. */
struct check_input {
    /* number of hosts in the job; checks that matter only between hosts are skipped if this is 1 */
    int hosts;
    const char *ctctl, *folder;
    int cores; /* number of CPU cores of this host */
};

/* results of a check; UNKNOWN if the fact can't be determined, or does not matter here */
enum { UNKNOWN = -1, FINE, WRONG };

/* ---- Small readers ------------------------------------------------------------------ */

/* Reads the first line of a file, "" if the file is empty.  Returns 0, or -1 if the file can't be
 * opened. */
static int check_read_line(const char *path, char *text, size_t size)
{
    FILE *file = fopen(path, "re");

    *text = 0;
    if (!file)
        return -1;
    if (!fgets(text, (int)size, file))
        *text = 0;
    fclose(file);
    text[strcspn(text, "\n")] = 0;
    return 0;
}

static long long check_read_number(const char *path)
{
    char text[64];

    return check_read_line(path, text, sizeof text) == 0 && *text >= '0' && *text <= '9'
               ? atoll(text)
               : -1;
}

static long long available_memory(void)
{
    static const char form[] = "MemTotal: %*d kB MemFree: %*d kB MemAvailable: %lld";
    FILE *file = fopen("/proc/meminfo", "re");
    long long kib = -1, left = cgroup_memory_left("");

    if (file && fscanf(file, form, &kib) != 1)
        kib = -1;
    if (file)
        fclose(file);
    return left > 0 && (kib < 0 || left < kib << 10) ? left : kib < 0 ? -1 : kib << 10;
}

static int host_cores(void)
{
    struct cpus cpus;

    return cpus_of_process(0, &cpus) == 0 ? cpus_count(&cpus) : (int)sysconf(_SC_NPROCESSORS_ONLN);
}

static const char *temporary_folder(void)
{
    const char *chosen = getenv("TMPDIR");

    return chosen && *chosen ? chosen : "/tmp";
}

static int gpu_count(void)
{
    static struct gpus gpus;

    gpus_read(&gpus, "");
    return gpus.count;
}

static int has_library(const char *name)
{
    /* the library is not unloaded, since the process ends soon */
    return dlopen(name, RTLD_LAZY | RTLD_LOCAL) != NULL;
}

/* ---- ctrun --------------------------------------------------------------------------- */

/* Looks for ctrun in ctctl's folder, then along PATH, as branch.c looks for ctctl. */
static int wrong_ctrun(const struct check_input *input, char *text, size_t size)
{
    const char *slash = strrchr(input->ctctl, '/');
    char beside[4096], path[4096];
    char *command[] = { path, "--version", NULL };
    struct text said = { 0 };
    int failed, result;

    snprintf(beside, sizeof beside, "%.*s/ctrun", slash ? (int)(slash - input->ctctl) : 1,
             slash ? input->ctctl : ".");
    memcpy(path, beside, sizeof path);
    if (access(beside, X_OK) < 0 && program_search("ctrun", path, sizeof path) != 0) {
        snprintf(text, size, "there is no %.300s, and no ctrun along PATH", beside);
        return WRONG;
    }
    unsetenv("CT_HOSTS_NODE");
    failed = tool_run(command, VERSION_SECONDS, &said) < 0;
    text_add(&said, "", 1);
    if (!said.data)
        return UNKNOWN;
    said.data[strcspn(said.data, "\n")] = 0;
    result = failed || strcmp(said.data, "ctrun " CT_VERSION) ? WRONG : FINE;
    if (result == FINE)
        snprintf(text, size, "%s", said.data);
    else if (failed || !*said.data)
        snprintf(text, size, "%.200s --version gives no answer within %d s", path, VERSION_SECONDS);
    else
        snprintf(text, size, "%.200s --version says '%.100s', and ctctl is of version %s", path,
                 said.data, CT_VERSION);
    free(said.data);
    return result;
}

/* Checks that the user's folder exists here, since ctrun --hosts changes to it on each host. */
static int wrong_folder(const struct check_input *input, char *text, size_t size)
{
    if (input->hosts == 1)
        return UNKNOWN;
    if (access(input->folder, X_OK) == 0)
        return FINE;
    snprintf(text, size, "%.200s: %s; ctrun --hosts runs in the folder in which it was typed",
             input->folder, strerror(errno));
    return WRONG;
}

/* ---- Limits -------------------------------------------------------------------------- */

/* Returns how many descriptors ctrun or a rank needs, whichever needs more, in a job with a worker
 * for each core of each host. */
static long files_needed(const struct check_input *input)
{
    const long launcher = limits_descriptors(input->cores, 2) + input->hosts;
    const long rank = RANK_FILES + (long)input->cores * input->hosts;

    return launcher > rank ? launcher : rank;
}

static int wrong_nofile(const struct check_input *input, char *text, size_t size)
{
    const long needed = files_needed(input);
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return UNKNOWN;
    snprintf(text, size,
             "a process may open %ld files, and a job with a worker for each core needs %ld",
             (long)limit.rlim_max, needed);
    return limit.rlim_max < (rlim_t)needed ? WRONG : FINE;
}

/* Checks the soft limit, which the workers get.  ctrun raises only its own soft limit to the hard
 * limit. */
static int wrong_soft_nofile(const struct check_input *input, char *text, size_t size)
{
    const long needed = RANK_FILES + (long)input->cores * input->hosts;
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_max < (rlim_t)files_needed(input))
        return UNKNOWN;
    snprintf(text, size,
             "a worker may open %ld files (soft limit), and one for each core on all hosts needs "
             "%ld",
             (long)limit.rlim_cur, needed);
    return limit.rlim_cur < (rlim_t)needed ? WRONG : FINE;
}

/* Checks the limit on locked memory, which matters only to InfiniBand libraries. */
static int wrong_memlock(const struct check_input *input, char *text, size_t size)
{
    DIR *folder = opendir("/sys/class/infiniband");
    const struct dirent *entry;
    struct rlimit limit;
    int adapters = 0;

    (void)input;
    while (folder && (entry = readdir(folder)))
        adapters += *entry->d_name != '.';
    if (folder)
        closedir(folder);
    if (adapters == 0 || getrlimit(RLIMIT_MEMLOCK, &limit) < 0)
        return UNKNOWN;
    snprintf(text, size, "a process may lock %lld KiB of memory, and NCCL over InfiniBand needs it",
             (long long)(limit.rlim_cur >> 10));
    return limit.rlim_cur < (rlim_t)1 << 30 ? WRONG : FINE;
}

static int wrong_pids(const struct check_input *input, char *text, size_t size)
{
    const long needed = (long)input->cores * WORKER_THREADS + 16;
    long long left = cgroup_pids_left("");
    const long long kernel = check_read_number("/proc/sys/kernel/pid_max");
    const char *by = "pids.max of its control group";
    struct rlimit users;

    if (kernel > 0 && (left == 0 || kernel < left)) {
        left = kernel;
        by = "kernel.pid_max";
    }
    if (geteuid() != 0 && getrlimit(RLIMIT_NPROC, &users) == 0 && users.rlim_cur != RLIM_INFINITY
        && (left == 0 || (long long)users.rlim_cur < left)) {
        left = (long long)users.rlim_cur;
        by = "ulimit -u";
    }
    if (left == 0)
        return UNKNOWN;
    snprintf(text, size,
             "%lld processes and threads are allowed (%s), and a worker for each of %d cores "
             "needs %ld",
             left, by, input->cores, needed);
    return left < needed ? WRONG : FINE;
}

static int wrong_cpus(const struct check_input *input, char *text, size_t size)
{
    const long long milli = cgroup_milli_cpus("");

    if (milli == 0)
        return UNKNOWN;
    snprintf(text, size, "%lld.%lld CPUs may be used (cpu.max of its control group) of %d",
             milli / 1000, milli % 1000 / 100, input->cores);
    return milli < 1000LL * input->cores ? WRONG : FINE;
}

static int wrong_memory(const struct check_input *input, char *text, size_t size)
{
    const long long bytes = available_memory();

    (void)input;
    if (bytes < 0)
        return UNKNOWN;
    snprintf(text, size, "%lld MiB of memory are available", bytes >> 20);
    return bytes < LEAST_MEMORY ? WRONG : FINE;
}

/* ---- Shared memory -------------------------------------------------------------------- */

static const char shared_words[] = "written by another process";

/* Acts as a rank that receives shared memory: receives the descriptor and writes to the memory.
 * Returns the exit code, 0 for success. */
static int follow(const char *name)
{
    const int64_t deadline = deadline_after(2000);
    int socket, fd;
    void *base;

    if (socket_connect_unix(name, deadline, &socket) != CT_OK
        || recv_fds(socket, &fd, 1, deadline) != CT_OK
        || !(base = memory_map(fd, 0, sizeof shared_words)))
        return 1;
    memcpy(base, shared_words, sizeof shared_words);
    return 0;
}

/* Shares memory as the ranks of a host do: sends a memfd over an abstract unix socket. */
static int wrong_shared_memory(const struct check_input *input, char *text, size_t size)
{
    const int64_t deadline = deadline_after(3000);
    int fd = -1, listener = -1, socket = -1, result = WRONG;
    char name[64];
    void *base = NULL;
    pid_t pid = 0;

    (void)input;
    if (memory_file("ct-doctor", 1 << 20, 1 << 20, &fd) != CT_OK)
        snprintf(text, size, "no shared memory: %s", ct_last_error());
    else if (!(base = memory_map(fd, 0, 1 << 20)))
        snprintf(text, size, "shared memory can't be mapped: %s", strerror(errno));
    else if (socket_listen_unix(NULL, &listener) != CT_OK
             || socket_unix_name(listener, name, sizeof name) != CT_OK)
        snprintf(text, size, "no unix socket: %s", ct_last_error());
    else if ((pid = fork()) == 0)
        _exit(follow(name));
    else if (pid < 0)
        snprintf(text, size, "no second process: %s", strerror(errno));
    else if (socket_accept(listener, deadline, &socket) != CT_OK
             || send_fds(socket, &fd, 1, deadline) != CT_OK)
        snprintf(text, size, "no descriptor can be sent to another process: %s", ct_last_error());
    if (pid > 0)
        waitpid(pid, NULL, 0);
    if (socket >= 0) {
        result = memcmp(base, shared_words, sizeof shared_words) ? WRONG : FINE;
        if (result == FINE)
            *text = 0;
        else if (!*text)
            snprintf(text, size, "what another process writes into shared memory is not seen");
        close(socket);
    }
    if (base)
        munmap(base, 1 << 20);
    if (listener >= 0)
        close(listener);
    if (fd >= 0)
        close(fd);
    return result;
}

static int wrong_dev_shm(const struct check_input *input, char *text, size_t size)
{
    struct statvfs info;

    (void)input;
    if (statvfs("/dev/shm", &info) < 0) {
        snprintf(text, size, "/dev/shm: %s; PyTorch's data loaders need it", strerror(errno));
        return WRONG;
    }
    snprintf(text, size, "/dev/shm has %lld MiB, and PyTorch's data loaders pass batches there",
             (long long)info.f_frsize * (long long)info.f_blocks >> 20);
    return (long long)info.f_frsize * (long long)info.f_blocks < LEAST_DEV_SHM ? WRONG : FINE;
}

/* ---- Files ----------------------------------------------------------------------------- */

static int wrong_tmp(const struct check_input *input, char *text, size_t size)
{
    char path[4096];
    int fd;

    (void)input;
    snprintf(path, sizeof path, "%s/ct-doctor-XXXXXX", temporary_folder());
    fd = mkstemp(path);
    if (fd >= 0) {
        unlink(path);
        close(fd);
        snprintf(text, size, "%s", temporary_folder());
        return FINE;
    }
    snprintf(text, size, "%.200s can't be written: %s", temporary_folder(), strerror(errno));
    return WRONG;
}

static int wrong_room(const struct check_input *input, char *text, size_t size)
{
    struct statvfs info;
    long long room;

    (void)input;
    if (statvfs(temporary_folder(), &info) < 0 || info.f_flag & ST_RDONLY)
        return UNKNOWN; /* wrong_tmp() reports it */
    room = (long long)info.f_frsize * (long long)info.f_bavail;
    snprintf(text, size, "%.200s has room for %lld MiB", temporary_folder(), room >> 20);
    return room < LEAST_ROOM ? WRONG : FINE;
}

static int wrong_secret(const struct check_input *input, char *text, size_t size)
{
    struct secret secret;

    (void)input;
    if (!getenv("CT_STORE_SECRET_FILE") || !*getenv("CT_STORE_SECRET_FILE"))
        return UNKNOWN;
    if (secret_read(&secret, NULL) == CT_OK)
        return FINE;
    snprintf(text, size, "%s", ct_last_error());
    return WRONG;
}

/* ---- The network of this host ------------------------------------------------------------ */

static int wrong_loopback(const struct check_input *input, char *text, size_t size)
{
    const char *fault = interface_loopback_fault(0);

    (void)input;
    if (!fault)
        return FINE;
    snprintf(text, size, "%s; ctrun starts no worker then", fault);
    return WRONG;
}

static int wrong_name(const struct check_input *input, char *text, size_t size)
{
    struct addresses found;
    char name[256] = "";

    if (input->hosts == 1)
        return UNKNOWN;
    gethostname(name, sizeof name - 1);
    addresses_find(&found, name);
    if (found.count == 0)
        snprintf(text, size, "its own name %.100s: %s", name, found.error);
    for (int i = 0; i < found.count; i++)
        if (!is_loopback_address(found.text[i])) {
            snprintf(text, size, "%.100s is %s", name, found.text[i]);
            return FINE;
        }
    if (found.count > 0)
        snprintf(text, size,
                 "its own name %.100s resolves to %s only, an address that no other host reaches; "
                 "libct does not use it, gloo does",
                 name, found.text[0]);
    return WRONG;
}

static int wrong_port_range(const struct check_input *input, char *text, size_t size)
{
    static const int ours[][2] = { { STATIC_PORT, STATIC_PORT },
                                   { C10D_PORT, C10D_PORT },
                                   { SLURM_FIRST_PORT, SLURM_LAST_PORT } };
    char line[64];
    int first, last;

    (void)input;
    if (check_read_line("/proc/sys/net/ipv4/ip_local_port_range", line, sizeof line) < 0
        || sscanf(line, "%d %d", &first, &last) != 2)
        return UNKNOWN;
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (first <= ours[i][1] && ours[i][0] <= last) {
            snprintf(text, size,
                     "the kernel takes ports %d to %d for connections, so another program's may "
                     "have the store's, %d%s%.0d",
                     first, last, ours[i][0], ours[i][1] > ours[i][0] ? " to " : "",
                     ours[i][1] > ours[i][0] ? ours[i][1] : 0);
            return WRONG;
        }
    return FINE;
}

static int wrong_port(const struct check_input *input, char *text, size_t size)
{
    static const int ports[] = { STATIC_PORT, C10D_PORT };
    int fd;

    if (input->hosts == 1)
        return UNKNOWN;
    for (size_t i = 0; i < sizeof ports / sizeof *ports; i++) {
        if (socket_listen(NULL, ports[i], &fd) != CT_OK) {
            snprintf(text, size, "the store's port of a job without --hosts: %.200s",
                     ct_last_error());
            return WRONG;
        }
        close(fd);
    }
    return FINE;
}

static int wrong_somaxconn(const struct check_input *input, char *text, size_t size)
{
    const long long most = check_read_number("/proc/sys/net/core/somaxconn");
    const long long ranks = (long long)input->cores * input->hosts;

    if (most < 0)
        return UNKNOWN;
    snprintf(text, size, "net.core.somaxconn is %lld, and %lld ranks may come to the store at once",
             most, ranks);
    return most < 128 || most < ranks / 8 ? WRONG : FINE;
}

static int wrong_clock(const struct check_input *input, char *text, size_t size)
{
    struct timex time = { 0 };

    if (input->hosts == 1 || adjtimex(&time) < 0)
        return UNKNOWN;
    if (!(time.status & STA_UNSYNC))
        return FINE;
    snprintf(text, size, "the kernel says that nothing keeps its clock right");
    return WRONG;
}

/* ---- GPUs -------------------------------------------------------------------------------- */

static int wrong_driver(const struct check_input *input, char *text, size_t size)
{
    const int gpus = gpu_count();

    (void)input;
    if (gpus == 0)
        return UNKNOWN;
    if (has_library("libcuda.so.1"))
        return FINE;
    snprintf(text, size, "%d GPU%s, but libcuda.so.1 is not found", gpus, gpus == 1 ? "" : "s");
    return WRONG;
}

static int wrong_nvml(const struct check_input *input, char *text, size_t size)
{
    (void)input;
    if (gpu_count() < 2)
        return UNKNOWN;
    if (has_library("libnvidia-ml.so.1"))
        return FINE;
    snprintf(text, size, "libnvidia-ml.so.1 is not found: ctrun --report does not show NVLinks");
    return WRONG;
}

static int wrong_nccl(const struct check_input *input, char *text, size_t size)
{
    const char *chosen = getenv("CT_LIBNCCL");
    const char *name = chosen && *chosen ? chosen : "libnccl.so.2";

    if (gpu_count() == 0 || gpu_count() * input->hosts < 2)
        return UNKNOWN;
    if (has_library(name))
        return FINE;
    snprintf(text, size,
             "%.200s is not found: libct carries GPU memory between GPUs by itself, which may be "
             "slower (programs that load PyTorch have the one of PyTorch)",
             name);
    return WRONG;
}

/* ---- The table ---------------------------------------------------------------------------- */

#define BY_UNIT ", or in the unit of sshd or slurmd: "

static const struct check {
    const char *name;
    int (*wrong)(const struct check_input *input, char *text, size_t size);
    enum finding_level level;
    const char *remedy;
} checks[] = {
    { "ctrun", wrong_ctrun, LEVEL_FAIL,
      "install the same build at the same path on all hosts, or along the PATH that ssh gives" },
    { "folder", wrong_folder, LEVEL_WARN, "type ctrun in a folder that is on all hosts" },
    { "nofile", wrong_nofile, LEVEL_FAIL,
      "ulimit -Hn 65536 (limits.conf)" BY_UNIT "LimitNOFILE=65536" },
    { "soft nofile", wrong_soft_nofile, LEVEL_WARN,
      "ulimit -n 65536 (limits.conf)" BY_UNIT "LimitNOFILE=65536" },
    { "memlock", wrong_memlock, LEVEL_FAIL,
      "ulimit -l unlimited (limits.conf)" BY_UNIT "LimitMEMLOCK=infinity" },
    { "pids", wrong_pids, LEVEL_FAIL,
      "ulimit -u 65536 (limits.conf), TasksMax= of the unit, docker run --pids-limit, or sysctl "
      "kernel.pid_max" },
    { "cpus", wrong_cpus, LEVEL_WARN,
      "raise the quota (CPUQuota=, docker run --cpus), or start fewer workers: --nproc-per-node" },
    { "memory", wrong_memory, LEVEL_WARN, "end what uses it, or raise the control group's limit" },
    { "shared memory", wrong_shared_memory, LEVEL_FAIL,
      "allow memfd_create() and unix sockets to the container (seccomp), and files of any size: "
      "ulimit -f unlimited" },
    { "/dev/shm", wrong_dev_shm, LEVEL_WARN, "docker run --shm-size=8g, or --ipc=host" },
    { "tmp", wrong_tmp, LEVEL_FAIL,
      "make it writable for this user, or export TMPDIR as a folder that is" },
    { "room", wrong_room, LEVEL_WARN, "make room there, or export TMPDIR as another folder" },
    { "secret", wrong_secret, LEVEL_FAIL, "openssl rand -hex 32 >secret && chmod 600 secret" },
    { "loopback", wrong_loopback, LEVEL_FAIL, "ip link set lo up" },
    { "own name", wrong_name, LEVEL_WARN,
      "give the name its address in /etc/hosts, or name the interface: ctrun --iface=eth0, and "
      "GLOO_SOCKET_IFNAME=eth0 for gloo" },
    { "port range", wrong_port_range, LEVEL_WARN,
      "sysctl -w net.ipv4.ip_local_port_range='32768 60999'" },
    { "port", wrong_port, LEVEL_WARN, "end that program, or choose another port: --master-port" },
    { "somaxconn", wrong_somaxconn, LEVEL_WARN, "sysctl -w net.core.somaxconn=4096" },
    { "clock", wrong_clock, LEVEL_WARN, "run chrony, ntpd or systemd-timesyncd" },
    { "GPU driver", wrong_driver, LEVEL_FAIL,
      "install the driver's libcuda, or in a container: docker run --gpus=all" },
    { "NVML", wrong_nvml, LEVEL_WARN, "install the driver's libnvidia-ml" },
    { "NCCL", wrong_nccl, LEVEL_WARN, "install libnccl2, or name it: CT_LIBNCCL=/path/to/it" },
};

/* Reports facts that should be the same on all hosts. */
static void facts_run(const struct check_input *input, finding_hook *hook)
{
    static const char alike[] = "make the hosts alike; a job runs at the pace of the slowest";
    struct utsname kernel;
    char text[300];

    if (uname(&kernel) == 0)
        hook(LEVEL_OK, "kernel", kernel.release, alike);
    snprintf(text, sizeof text, "%d", input->cores);
    hook(LEVEL_OK, "cores", text, alike);
    snprintf(text, sizeof text, "%d", gpu_count());
    hook(LEVEL_OK, "GPUs", text, alike);
    if (check_read_line("/proc/driver/nvidia/version", text, sizeof text) == 0)
        hook(LEVEL_OK, "GPU driver version", text, alike);
    hook(LEVEL_OK, "OpenSSL 3 (--encrypt)", libssl_load() == CT_OK ? "yes" : "no", alike);
}

void checks_run(int hosts, const char *ctctl, const char *folder, finding_hook *hook)
{
    const struct check_input input = { hosts, ctctl, folder, host_cores() };
    char text[512];

    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        const struct check *check = &checks[i];
        int what;

        *text = 0;
        what = check->wrong(&input, text, sizeof text);
        if (what != UNKNOWN)
            hook(what == WRONG ? check->level : LEVEL_OK, check->name, text,
                 what == WRONG ? check->remedy : "");
    }
    if (hosts > 1)
        facts_run(&input, hook);
}
