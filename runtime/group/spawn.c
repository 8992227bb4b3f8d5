/* SPDX-License-Identifier: Apache-2.0 */
/* spawn.c - ct_spawn(): forks n processes that run one function as ranks.
 *
 * The parent opens the store's listening socket before the first fork, forks all children, and only
 * then starts the thread that serves the store.  So a child never inherits a lock that this thread
 * holds.  A child sets the environment variables of a launcher and runs fn.  The child ends with
 * _exit(), so that exit handlers of the parent do not run twice.
 *
 * The parent waits on a pidfd of each child.  When the first child fails, the parent stops the
 * other children with SIGTERM and, after GRACE_MS, with SIGKILL.  If the parent dies, the kernel
 * kills the children. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/group/group.h"
#include "runtime/net/socket.h"
#include "runtime/store/server/server_thread.h"
#include "runtime/util/clock.h"
#include "runtime/util/forks.h"
#include "runtime/util/log.h"
#include "runtime/util/process_state.h"

#define GRACE_MS 5000
#define LOOK_MS 20 /* how often the parent looks for a child that has no pidfd */
#define NUMBER_OF_PIDFD_SEND_SIGNAL 424 /* the same on all architectures */

struct child {
    pid_t pid; /* 0 before the start and after the child was reaped */
    int pidfd; /* -1 before the start, after the child was reaped, and without pidfd_open() */
};

struct spawned {
    int size, running;
    struct child *children;
    struct pollfd *polls;
    int first_code;  /* exit code of the first child that failed; 0 if none has failed */
    int first_rank;  /* rank of that child */
    char how[96];    /* how that child ended, for the error message */
    int look_ms;     /* longest sleep in poll() */
    int64_t kill_at; /* when to send SIGKILL; NO_DEADLINE while no child is being stopped */
};

static void set_number(const char *name, int value)
{
    char text[16];

    snprintf(text, sizeof text, "%d", value);
    setenv(name, text, 1);
}

static _Noreturn void run_child(int rank, int size, int port, uint64_t generation, pid_t parent,
                                int (*fn)(int, int, void *), void *arg)
{
    char text[24];
    int code;

    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
        _exit(1);
    default_group_forget(); /* needed if the parent is a rank itself */
    snprintf(text, sizeof text, "%016" PRIx64, generation);
    set_number("RANK", rank);
    set_number("LOCAL_RANK", rank);
    set_number("WORLD_SIZE", size);
    set_number("LOCAL_WORLD_SIZE", size);
    setenv("MASTER_ADDR", "127.0.0.1", 1);
    set_number("MASTER_PORT", port);
    setenv("TORCHELASTIC_USE_AGENT_STORE", "True", 1);
    unsetenv("CT_CONTROL"); /* only the parent is a worker of ctrun */
    setenv("CT_GENERATION", text, 1);
    code = fn(rank, size, arg);
    fflush(NULL);
    _exit(code & 0xff);
}

static void signal_running(const struct spawned *s, int number)
{
    for (int i = 0; i < s->size; i++)
        if (s->children[i].pidfd >= 0)
            syscall(NUMBER_OF_PIDFD_SEND_SIGNAL, s->children[i].pidfd, number, NULL, 0);
        else if (s->children[i].pid > 0)
            kill(s->children[i].pid, number);
}

static void stop_others(struct spawned *s)
{
    if (s->kill_at != NO_DEADLINE)
        return;
    signal_running(s, SIGTERM);
    s->kill_at = clock_ms() + GRACE_MS;
}

static ct_status fork_all(struct spawned *s, int listener, int (*fn)(int, int, void *), void *arg)
{
    const pid_t parent = getpid();
    const int port = socket_port(listener);
    uint64_t generation;

    if (getrandom(&generation, sizeof generation, 0) != (ssize_t)sizeof generation)
        return ct_fail(CT_ERR_SYSTEM, "ct_spawn: getrandom: %s", strerror(errno));
    fflush(NULL); /* or the children would write the parent's buffered output again */
    for (int i = 0; i < s->size; i++) {
        const pid_t pid = fork();

        if (pid == 0) {
            close(listener);
            run_child(i, s->size, port, generation, parent, fn, arg);
        }
        if (pid < 0)
            return ct_fail(CT_ERR_SYSTEM, "ct_spawn: fork of rank %d: %s", i, strerror(errno));
        s->children[i].pid = pid;
        s->children[i].pidfd = process_open(pid);
        descriptor_own(s->children[i].pidfd);
        s->running++;
        if (s->children[i].pidfd < 0)
            s->look_ms = LOOK_MS;
    }
    return CT_OK;
}

static void reap_child(struct spawned *s, int rank)
{
    struct child *c = &s->children[rank];
    const pid_t pid = c->pid;
    int status = 0, code;

    if (waitpid(pid, &status, 0) < 0)
        /* the program has reaped the child, so the exit code is lost; this is not a failure */
        status = 0;
    if (c->pidfd >= 0)
        descriptor_close(c->pidfd);
    *c = (struct child){ .pidfd = -1 };
    s->running--;
    code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (code == 0 || s->first_code != 0)
        return;
    s->first_code = code;
    s->first_rank = rank;
    if (WIFSIGNALED(status))
        snprintf(s->how, sizeof s->how, "was killed by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(s->how, sizeof s->how, "exited with code %d", code);
    ct_fail(CT_ERR_PEER,
            "ct_spawn: rank %d (pid %d) failed first: it %s. ct_spawn() stopped the others", rank,
            (int)pid, s->how);
    stop_others(s);
}

static int has_ended(const struct child *c, const struct pollfd *poll)
{
    return c->pidfd >= 0 ? poll->revents != 0 : process_has_ended(c->pid);
}

static void wait_for_children(struct spawned *s)
{
    while (s->running > 0) {
        for (int i = 0; i < s->size; i++)
            s->polls[i] = (struct pollfd){ .fd = s->children[i].pidfd, .events = POLLIN };
        if (poll(s->polls, (nfds_t)s->size, time_left_ms(s->kill_at, s->look_ms)) < 0)
            continue; /* poll() failed with EINTR, since the program got a signal */
        for (int i = 0; i < s->size; i++)
            if (s->children[i].pid > 0 && has_ended(&s->children[i], &s->polls[i]))
                reap_child(s, i);
        if (s->running > 0 && clock_ms() >= s->kill_at) {
            signal_running(s, SIGKILL);
            s->kill_at = clock_ms() + GRACE_MS; /* an exit may take a while in the kernel */
        }
    }
}

static ct_status spawn_ranks(struct spawned *s, int (*fn)(int, int, void *), void *arg)
{
    struct store_thread *host = NULL;
    int listener;
    ct_status status = socket_listen("127.0.0.1", 0, &listener);

    if (status != CT_OK)
        return status;
    status = fork_all(s, listener, fn, arg);
    if (status == CT_OK)
        status = store_thread_start(listener, &host);
    else
        close(listener);
    if (status != CT_OK)
        stop_others(s);
    wait_for_children(s);
    store_thread_stop(host);
    return status;
}

int ct_spawn(int nprocs, int (*fn)(int rank, int size, void *arg), void *arg)
{
    struct spawned s = { .size = nprocs, .look_ms = 60000, .kill_at = NO_DEADLINE };
    ct_status status = CT_OK;

    if (nprocs < 1 || !fn)
        return ct_fail(CT_ERR_INVALID,
                       "ct_spawn: %d processes of %s; it needs at least one process and a function",
                       nprocs, fn ? "a function" : "NULL");
    s.children = calloc((size_t)nprocs, sizeof *s.children);
    s.polls = calloc((size_t)nprocs, sizeof *s.polls);
    if (!s.children || !s.polls)
        status = ct_fail(CT_ERR_NOMEM, "ct_spawn: no memory for %d processes", nprocs);
    for (int i = 0; s.children && i < nprocs; i++)
        s.children[i].pidfd = -1;
    if (status == CT_OK)
        status = spawn_ranks(&s, fn, arg);
    free(s.children);
    free(s.polls);
    return status != CT_OK ? (int)status : s.first_code;
}
